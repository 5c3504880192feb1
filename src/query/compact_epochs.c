/* Compaction: all records of some epochs are written to a new directory by key, and for each key by epoch, so that a
 * trajectory lies in one place.
 *
 * Each rank has a share of the new directory's partitions. By hash, they are those of the old one. By ranges of keys,
 * all epochs get the pivots of the last of them, and a partition is read from all old ones that overlap it. In each
 * partition a rank takes one range of keys after the other, as wide as the writer has room for, and
 * reads the range from one epoch after the other. The writer's sort is stable: it puts the records of a key side by
 * side and leaves them in the order in which they were read. A range becomes a run, so no key is in two of them (but
 * one that has more records than there is room for, or if values differ in size and those of the range are larger than
 * the others).
 *
 * How wide a range may be is estimated from the first keys of all leaves. With keys of bytes, ranges end where the
 * shortest form of the hashes can tell them apart.
 *
 * All records are stored with the first epoch, and the others are empty in the logs. But their lines in the manifest
 * say how many records each has. The last of these lines, without which nobody can open the directory, is written when
 * all ranks have written everything. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/crc32c.h"
#include "base/path.h"
#include "base/sized.h"
#include "directory/dir.h"
#include "directory/format/partition.h"
#include "directory/read/scan.h"
#include "directory/write/writer.h"
#include "query/compact_epochs.h"

#define MEMORY_DEFAULT (256u << 20) /* bytes of each process, if the option memory is auto */
#define ROOM_SHARE     16           /* this part of the room is left free, because records are estimated */
#define PROGRESS_EVERY 8192u        /* records */
#define VALUE_EXTRA    16           /* bytes that a value takes besides its own, where sizes differ */

/* What a partition has of one epoch in one segment. */
struct piece {
    const struct segment *segment;
    struct part_reader *part;
    uint32_t first, end; /* epochs */
};

struct compacting {
    const struct collective *group;
    const struct deltafs_compact_options *options;
    deltafs_options *defaults;
    deltafs_dir *dir;
    struct reader *from;
    uint32_t first, end;   /* epochs */
    struct partitioner by; /* of the new directory */
    struct writer_config config;
    struct writer *writer;
    struct lease lease; /* on rank 0, until the writer has it */
    int is_made;        /* the new directory is there */
    uint64_t records;   /* put by this rank */
    uint64_t reported;  /* of them, to the caller */
    /* Of a partition: */
    struct piece *piece;
    size_t pieces, pieces_most;
    unsigned shift; /* the most bits that a segment's keys are shortened by */
    struct scan scan;
    struct scan_to to;
    struct damages damages;
    /* Of the record put last: */
    uint64_t label;
    int has_label;
    int is_cancelled;
};

/* ---- Records ---- */

/* Let the caller know. */
static void report(struct compacting *c)
{
    const struct deltafs_compact_options *o = c->options;

    if (o->progress && o->progress(c->records - c->reported, o->arg) != 0)
        c->is_cancelled = 1;
    c->reported = c->records;
}

static int check_cancelled(const struct compacting *c, struct error *e)
{
    return c->is_cancelled ? error_set(e, DELTAFS_ERR_CANCELLED, "%s: the compaction was cancelled", c->config.path)
                           : DELTAFS_OK;
}

/* A deltafs_record_fn. An error of the writer is that of the epoch's end. */
static int put_record(const struct deltafs_record *record, void *arg)
{
    struct compacting *c = arg;
    const void *value = record->value;
    size_t size = record->size;

    if (!c->has_label || record->label != c->label) {
        const struct deltafs_range one = {record->label, record->label};
        uint32_t epoch, end;
        reader_epochs(c->from, &one, &epoch, &end);
        deltafs_private_writer_stamp(c->writer, epoch - c->first);
        c->label = record->label;
        c->has_label = 1;
    }
    if (record->key_bytes) { /* as it is stored: behind its key, and that behind its size */
        value = (const uint8_t *)record->key_bytes - 1;
        size += 1 + record->key_size;
    }
    deltafs_private_writer_put(c->writer, 1, 1, (const uint8_t *)&record->key, 0, value, 0, size);
    if (++c->records - c->reported >= PROGRESS_EVERY)
        report(c);
    return c->is_cancelled;
}

/* ---- Ranges of keys ---- */

/* About how many records of the segment have keys below `key`. */
static double piece_position(const struct piece *p, uint64_t key)
{
    const struct segment *s = p->segment;
    uint32_t low = 0, high = s->footer.leaves;

    key >>= s->footer.key_shift;
    if (high == 0 || key <= s->footer.first_key)
        return 0;
    if (key > s->footer.last_key)
        return (double)s->footer.records;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (fence_leaf(&s->fence, middle).first_key <= key)
            low = middle;
        else
            high = middle;
    }
    double from = (double)fence_leaf(&s->fence, low).first_key;
    double to =
        low + 1 < s->footer.leaves ? (double)fence_leaf(&s->fence, low + 1).first_key : (double)s->footer.last_key + 1;
    double part = to > from ? ((double)key - from) / (to - from) : 0;
    return (low + part) * (double)s->footer.records / s->footer.leaves;
}

static double position(const struct compacting *c, uint64_t key)
{
    double sum = 0;

    for (size_t i = 0; i < c->pieces; i++)
        sum += piece_position(&c->piece[i], key);
    return sum;
}

/* How many records a range may have. */
static double range_room(const struct compacting *c)
{
    uint64_t records, bytes;

    deltafs_private_writer_room(c->writer, &records, &bytes);
    for (size_t i = 0; bytes < UINT64_MAX && i < c->pieces; i++) {
        uint64_t most = bytes / (reader_record_size(c->from, c->piece[i].segment->footer.epoch) + VALUE_EXTRA);
        records = most < records ? most : records;
    }
    return (double)(records - records / ROOM_SHARE);
}

/* The last key of the range that begins with `low`. */
static uint64_t range_end(const struct compacting *c, uint64_t low)
{
    uint64_t step = UINT64_C(1) << c->shift, in = low, out = UINT64_MAX;
    double most = position(c, low) + range_room(c);

    if (position(c, UINT64_MAX) <= most)
        return UINT64_MAX;
    /* Up to `in` there is room; up to `out` there is none. */
    while (out - in > step) {
        uint64_t middle = in + (out - in) / 2;
        if (position(c, middle) <= most)
            in = middle;
        else
            out = middle;
    }
    uint64_t end = in & ~(step - 1);
    return end > low ? end - 1 : low | (step - 1);
}

/* Read what a segment has of the range. */
static int piece_read(struct compacting *c, const struct piece *p, uint64_t low, uint64_t high, struct error *e)
{
    unsigned shift = p->segment->footer.key_shift;
    int status = DELTAFS_OK;

    if (c->scan.part != p->part)
        window_fini(&c->scan.index_window);
    c->scan.part = p->part;
    c->scan.first_epoch = p->first;
    c->scan.end_epoch = p->end;
    scan_begin(&c->scan, p->segment, low >> shift, high >> shift);
    while (status == DELTAFS_OK && !c->is_cancelled && !scan_is_done(&c->scan))
        status = scan_give_portion(&c->scan, SIZE_MAX, e);
    if (c->is_cancelled)
        return check_cancelled(c, e);
    if (status == DELTAFS_OK && c->damages.count > 0)
        status = error_set(e, c->damages.first.status, "%s; nothing is compacted; 'deltafs verify' lists all damage",
                           c->damages.first.text);
    return status;
}

/* ---- Partitions ---- */

/* The segments of an epoch, or of all compacted ones that are wanted. */
static int find_pieces(struct compacting *c, struct part_reader *p, uint32_t first, uint32_t end, struct error *e)
{
    struct segment *segment;
    uint32_t segments;
    int status = reader_epoch(c->from, p, scan_stored_epoch(c->from, first), &segment, &segments, e);

    for (uint32_t i = 0; status == DELTAFS_OK && i < segments; i++) {
        status = memory_extend(NULL, &c->piece, c->pieces, &c->pieces_most, sizeof *c->piece, "segments", e);
        if (status == DELTAFS_OK)
            c->piece[c->pieces++] = (struct piece){&segment[i], p, first, end};
        c->shift = segment[i].footer.key_shift > c->shift ? segment[i].footer.key_shift : c->shift;
    }
    return status;
}

/* Find all segments that can have records of a new partition, which has the keys from `low` to `high`, in the order of
 * epochs. */
static int open_partition(struct compacting *c, uint32_t partition, uint64_t low, uint64_t high, struct error *e)
{
    const struct manifest *m = &c->from->manifest;
    uint32_t compacted = m->compacted, first = partition, last = partition, next;
    struct part_reader *p;
    int status = DELTAFS_OK;

    c->pieces = 0;
    c->shift = 0;
    for (uint32_t epoch = c->first; epoch < c->end && status == DELTAFS_OK; epoch = next) {
        const struct partitioner by = manifest_partitioner(m, epoch, NULL);
        next = epoch + 1;
        if (epoch < compacted)
            next = compacted < c->end ? compacted : c->end;
        if (c->by.pivots)
            partition_range(&by, low, high, &first, &last);
        for (uint32_t i = first; i <= last && status == DELTAFS_OK; i++) {
            status = reader_part(c->from, i, &p, e);
            if (status == DELTAFS_OK)
                status = find_pieces(c, p, epoch, next, e);
        }
    }
    c->to = (struct scan_to){.fn = put_record, .arg = c};
    c->scan = (struct scan){.reader = c->from, .to = &c->to, .damages = &c->damages};
    return status;
}

static int compact_partition(struct compacting *c, uint32_t partition, struct error *e)
{
    uint64_t low, end;

    if (!partition_keys(&c->by, partition, &low, &end))
        return DELTAFS_OK;
    deltafs_private_writer_put_to(c->writer, partition);
    int status = open_partition(c, partition, low, end, e), is_last = 0;
    for (uint64_t high; !is_last && status == DELTAFS_OK; low = high + 1) {
        high = range_end(c, low);
        is_last = high >= end;
        high = is_last ? end : high;
        for (size_t i = 0; i < c->pieces && status == DELTAFS_OK; i++)
            status = piece_read(c, &c->piece[i], low, high, e);
        if (status == DELTAFS_OK)
            deltafs_private_writer_cut_run(c->writer);
        if (status == DELTAFS_OK && c->group->rank == 0)
            status = deltafs_private_writer_check_lease(c->writer, e);
    }
    scan_fini(&c->scan);
    c->scan = (struct scan){.reader = c->from};
    return status;
}

/* This rank's partitions are those before another's. */
static uint32_t first_partition(const struct compacting *c, uint32_t rank)
{
    return partition_first((int)rank, c->config.partitions, (int)c->group->ranks);
}

static int compact_share(struct compacting *c, struct error *e)
{
    uint32_t end = first_partition(c, c->group->rank + 1);
    int status = DELTAFS_OK;

    for (uint32_t p = first_partition(c, c->group->rank); p < end && status == DELTAFS_OK; p++)
        status = compact_partition(c, p, e);
    report(c);
    return status == DELTAFS_OK ? check_cancelled(c, e) : status;
}

/* ---- The old directory ---- */

/* The pivots of the last epoch, or the first that there are. */
static void choose_pivots(struct compacting *c)
{
    const struct manifest *m = &c->from->manifest;

    c->by = manifest_partitioner(m, c->end - 1, NULL);
    if (!c->by.pivots && m->pivots_count > 0)
        c->by.pivots = m->pivots[0].key;
}

/* Open it, and find the epochs. Not collective. */
static int open_source(struct compacting *c, const char *from, struct error *e)
{
    struct error *why;
    int status = error_of_call(deltafs_open(from, c->options->options, &c->dir), e);

    if (status == DELTAFS_OK)
        status = error_of_call(dir_reader(c->dir, "deltafs_compact", NULL, &c->from, &why), e);
    if (status != DELTAFS_OK)
        return status;
    if (c->from->manifest.is_index)
        return error_set(
            e, DELTAFS_ERR_MODE,
            "%s: is an index of files, not a directory of records; 'deltafs-mpi index --compact' frees its "
            "unused space",
            from);
    reader_epochs(c->from, c->options->range, &c->first, &c->end);
    if (c->first < c->end)
        choose_pivots(c);
    return c->first < c->end ? DELTAFS_OK
                             : error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: has no epoch%s", from,
                                         c->options->range ? " with such a label" : "");
}

/* Collective: all ranks see the same epochs. */
static int agree_on_source(struct compacting *c, struct error *e)
{
    int status = collective_agree(c->group, e);
    uint64_t first = c->first, end = c->end, uuid = 0, pivots = 0;

    if (status != DELTAFS_OK)
        return status;
    memcpy(&uuid, c->from->manifest.uuid, sizeof uuid);
    uuid >>= 1;
    if (c->by.pivots)
        pivots = crc32c(0, c->by.pivots, (c->by.partitions - 1) * sizeof *c->by.pivots) + UINT64_C(1);
    uint64_t most[] = {first, UINT32_MAX - first, end,    UINT32_MAX - end,
                       uuid,  INT64_MAX - uuid,   pivots, INT64_MAX - pivots};
    status = collective_max(c->group, most, 8, e);
    if (status == DELTAFS_OK && (most[0] != UINT32_MAX - most[1] || most[2] != UINT32_MAX - most[3] ||
                                 most[4] != INT64_MAX - most[5] || most[6] != INT64_MAX - most[7]))
        status =
            error_set(e, DELTAFS_ERR_BUSY,
                      "%s: was written just now, and not all ranks see that yet; run the command again", c->from->path);
    return status;
}

/* ---- The new directory ---- */

static int configure(struct compacting *c, const char *to, struct error *e)
{
    const deltafs_options *o = c->options->options;
    int status = o ? DELTAFS_OK : error_of_call(deltafs_options_create(&c->defaults), e);

    if (status == DELTAFS_OK)
        status = deltafs_private_writer_configure_like(&c->config, &c->from->manifest, to, o ? o : c->defaults, e);
    c->config.compacted = c->end - c->first;
    c->config.pivots = c->by.pivots;
    if (status == DELTAFS_OK && c->by.pivots)
        status = reader_keep(c->from, c->by.partitions, e);
    c->config.sync = c->config.sync == SYNC_COMMIT ? SYNC_CLOSE : c->config.sync;
    if (c->config.memory == OPTION_AUTO)
        c->config.memory = MEMORY_DEFAULT;
    return status;
}

/* Collective: create it, and open it with all ranks. */
static int create_target(struct compacting *c, const char *to, struct error *e)
{
    struct bytes uuid = {.used = 0};

    configure(c, to, e);
    int status = collective_agree(c->group, e);
    if (status != DELTAFS_OK)
        return status;
    if (c->group->rank == 0)
        c->is_made = deltafs_private_writer_create_container(&c->config, &c->lease, e) == DELTAFS_OK;
    if (c->is_made)
        bytes_append(&uuid, c->config.uuid, sizeof c->config.uuid, e);
    status = collective_broadcast(c->group, &uuid, e);
    if (status == DELTAFS_OK && uuid.used == sizeof c->config.uuid)
        memcpy(c->config.uuid, uuid.buffer.bytes, sizeof c->config.uuid);
    buffer_fini(&uuid.buffer);
    uint32_t first = first_partition(c, c->group->rank), end = first_partition(c, c->group->rank + 1);
    if (status == DELTAFS_OK)
        deltafs_private_writer_open(&c->config, first, end - first, c->group->rank == 0 ? &c->lease : NULL, &c->writer,
                                    e);
    return collective_agree(c->group, e);
}

/* ---- Commits ---- */

/* Collective: the sums of all ranks. */
static int add_totals(struct compacting *c, struct writer_totals *totals, struct error *e)
{
    struct bytes all = {.used = 0};
    int status = collective_gather(c->group, totals, sizeof *totals, &all, e);

    *totals = (struct writer_totals){0};
    for (size_t at = 0; status == DELTAFS_OK && at < all.used; at += sizeof *totals) {
        const struct writer_totals *one = (const struct writer_totals *)(const void *)(all.buffer.bytes + at);
        totals->records += one->records;
        totals->bytes_raw += one->bytes_raw;
        totals->bytes_stored += one->bytes_stored;
    }
    buffer_fini(&all.buffer);
    return status;
}

/* Whether all records were found. */
static int check_totals(const struct compacting *c, const struct writer_totals *totals, struct error *e)
{
    uint64_t records = 0;

    for (uint32_t i = c->first; i < c->end; i++)
        records += c->from->manifest.epoch[i].records;
    return records == totals->records
               ? DELTAFS_OK
               : error_set(e, DELTAFS_ERR_DAMAGED,
                           "%s: has %" PRIu64 " records, of which %" PRIu64 " are found; run deltafs verify",
                           c->from->path, records, totals->records);
}

/* Collective: write all records, which are stored with the first epoch; *totals gets their sums. */
static int write_records(struct compacting *c, struct writer_totals *totals, struct error *e)
{
    const struct manifest *m = &c->from->manifest;
    struct error own = {0};

    for (size_t i = 0; c->group->rank == 0 && i < m->attributes.count && own.status == DELTAFS_OK; i++)
        deltafs_private_writer_set_attribute(c->writer, &m->attributes.item[i], &own);
    if (own.status == DELTAFS_OK)
        compact_share(c, &own);
    if (own.status != DELTAFS_OK)
        deltafs_private_writer_fail(c->writer, &own);
    deltafs_private_writer_end(c->writer, m->epoch[c->first].label);
    *totals = (struct writer_totals){0};
    *e = (struct error){0};
    deltafs_private_writer_wait_end(c->writer, totals, e);
    int status = add_totals(c, totals, e);
    return status == DELTAFS_OK ? check_totals(c, totals, e) : status;
}

/* Rank 0: the line of an epoch. What is stored of each is not known: it is a share by its records. */
static int commit(struct compacting *c, uint32_t epoch, const struct writer_totals *totals, struct error *e)
{
    const struct manifest_epoch *m = &c->from->manifest.epoch[epoch];
    double share = totals->records > 0 ? (double)m->records / (double)totals->records : 0;
    const struct writer_totals line = {m->records, m->bytes_raw, (uint64_t)(share * (double)totals->bytes_stored)};
    int is_unknown;
    int status = deltafs_private_writer_commit(c->writer, &line, &is_unknown, e);

    if (status == DELTAFS_OK)
        deltafs_private_writer_keep(c->writer);
    return status;
}

/* Write the other epochs, which are empty, and close this rank's logs; but on rank 0 the last epoch is ended only. */
static int write_ends(struct compacting *c, const struct writer_totals *totals, uint64_t *tail_length, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint32_t epoch = c->first; epoch < c->end && status == DELTAFS_OK; epoch++) {
        struct writer_totals none;
        if (epoch > c->first) {
            deltafs_private_writer_end(c->writer, c->from->manifest.epoch[epoch].label);
            status = deltafs_private_writer_wait_end(c->writer, &none, e);
        }
        if (status == DELTAFS_OK && c->group->rank > 0)
            deltafs_private_writer_keep(c->writer);
        else if (status == DELTAFS_OK && epoch + 1 < c->end)
            status = commit(c, epoch, totals, e);
    }
    return status == DELTAFS_OK && c->group->rank > 0 ? deltafs_private_writer_finish(c->writer, tail_length, e)
                                                      : status;
}

/* Collective: commit and close. */
static int finish(struct compacting *c, const struct writer_totals *totals, struct error *e)
{
    uint64_t tail_length = 0;

    write_ends(c, totals, &tail_length, e);
    int status = collective_agree(c->group, e);
    if (status != DELTAFS_OK)
        return status;
    if (c->group->rank == 0)
        status = commit(c, c->end - 1, totals, e);
    if (c->group->rank == 0 && status == DELTAFS_OK)
        status = deltafs_private_writer_finish(c->writer, &tail_length, e);
    status = collective_agree(c->group, e);
    if (status == DELTAFS_OK)
        status = collective_max(c->group, &tail_length, 1, e);
    if (status == DELTAFS_OK && c->group->rank == 0)
        deltafs_private_writer_commit_close(c->writer, tail_length, e);
    return collective_agree(c->group, e);
}

/* Collective: close everything; after an error the new directory is removed. */
static int close_all(struct compacting *c, struct error *e)
{
    int status = e->status;

    if (status != DELTAFS_OK)
        deltafs_private_writer_return_lease(c->writer, &c->lease);
    status = error_first(status, deltafs_private_writer_destroy(c->writer, error_after(status, e)));
    deltafs_close(c->dir);
    deltafs_options_destroy(c->defaults);
    free(c->piece);
    status = collective_agree(c->group, e);
    if (status != DELTAFS_OK && c->is_made)
        deltafs_private_writer_remove_container(&c->config, &c->lease);
    /* A launcher may kill all ranks when the first one ends: so they wait for the removal. */
    return status == DELTAFS_OK ? status : collective_agree(c->group, e);
}

int deltafs_private_compact(const struct collective *group, const char *from, const char *to,
                            const struct deltafs_compact_options *options, struct error *e)
{
    struct compacting c = {.group = group, .options = options, .lease.file.fd = -1};
    struct writer_totals totals;

    e->status = DELTAFS_OK;
    open_source(&c, from, e);
    int status = agree_on_source(&c, e);
    if (status == DELTAFS_OK)
        status = create_target(&c, to, e);
    if (status == DELTAFS_OK)
        status = write_records(&c, &totals, e);
    if (status == DELTAFS_OK)
        status = finish(&c, &totals, e);
    return close_all(&c, e);
}

int deltafs_compact(const char *from, const char *to, const struct deltafs_compact_options *options)
{
    static const char call[] = "deltafs_compact";
    const struct collective alone = COLLECTIVE_ALONE;
    struct deltafs_compact_options o = {0};
    struct error *e = deltafs_private_thread_error(), why = {0};

    if (!from || !*from || !to || !*to)
        return error_set(e, DELTAFS_ERR_INVALID, "%s: from and to must be given", call);
    int status = options ? sized_take(&o, options, sizeof o, call, e) : DELTAFS_OK;
    if (status != DELTAFS_OK)
        return status;
    char *whole = path_absolute(to);
    if (!whole)
        return error_no_memory(e, strlen(to), "a path");
    status = deltafs_private_compact(&alone, from, whole, &o, &why);
    if (status != DELTAFS_OK)
        *e = why;
    free(whole);
    return status;
}
