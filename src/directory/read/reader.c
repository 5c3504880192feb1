#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "directory/format/partition.h"
#include "directory/read/lookup.h"
#include "directory/read/value_log_read.h"
#include "io/store_format.h"

#define INDEX_AHEAD   ((size_t)256 << 10) /* bytes of a scan's reads of the index log */
#define RUNS_AHEAD    ((size_t)8 << 20)   /* and of all of a segment's runs, */
#define RUN_AHEAD_MIN ((size_t)16 << 10)  /* but for each not less than this */
#define RUN_AHEAD_MAX ((size_t)256 << 10) /* nor more */
#define RUNS_HELD_MAX ((size_t)64 << 20)  /* and of what all of a scan's runs have in memory, about */
#define AWAY_RECORDS  ((size_t)256 << 10) /* records whose values are fetched from their writers' logs at once, */
#define AWAY_BYTES    ((size_t)32 << 20)  /* of so many bytes at most */

static void part_reader_close(struct part_reader *p)
{
    struct error ignored; /* opened for reading: nothing can be lost */

    if (!p->is_open)
        return;
    index_reader_close(&p->index, &ignored);
    io_file_close(&p->data, &ignored);
    p->is_open = 0;
}

int reader_open(const char *path, uint32_t threads, uint64_t cache, struct reader **out, struct error *e)
{
    struct reader *r = calloc(1, sizeof *r);

    if (!r)
        return error_no_memory(e, sizeof *r, "a reader");
    r->io = io_default();
    r->cache = cache;
    r->path = strdup(path);
    int status = r->path ? io_stay(&r->io, path, e) : error_no_memory(e, strlen(path), "a path");
    if (status == DELTAFS_OK)
        status = manifest_read(&r->io, path, &r->manifest, e);
    if (status == DELTAFS_OK && !(r->is_lost = calloc(r->manifest.epoch_count + 1, sizeof *r->is_lost)))
        status = error_no_memory(e, r->manifest.epoch_count, "a reader");
    if (status == DELTAFS_OK)
        status = team_create(threads, &r->team, e);
    if (status == DELTAFS_OK)
        status = lookup_scratch_create(&r->scratch, e);
    if (status == DELTAFS_OK)
        status = leaf_cache_create(cache, &r->leaves, e);
    if (status == DELTAFS_OK)
        status = values_reader_create(&r->values, e);
    if (status != DELTAFS_OK) {
        reader_close(r);
        return status;
    }
    *out = r;
    return DELTAFS_OK;
}

void reader_close(struct reader *r)
{
    if (!r)
        return;
    for (int i = 0; i < READER_OPEN_PARTS; i++)
        part_reader_close(&r->part[i]);
    team_destroy(r->team);
    lookup_scratch_destroy(r->scratch);
    leaf_cache_destroy(r->leaves);
    values_reader_destroy(r->values);
    manifest_fini(&r->manifest);
    free(r->is_lost);
    free(r->path);
    io_leave(&r->io);
    free(r);
}

/* Whether the manifest `now` goes on where `m` ended. */
static int reader_is_continued(const struct manifest *m, const struct manifest *now)
{
    return now->epoch_count >= m->epoch_count &&
           (m->epoch_count == 0 || memcmp(now->epoch, m->epoch, m->epoch_count * sizeof *m->epoch) == 0);
}

int reader_refresh(struct reader *r, struct error *e)
{
    struct manifest now;
    struct leaf_cache *leaves = NULL;
    int status = manifest_read(&r->io, r->path, &now, e);

    if (status != DELTAFS_OK)
        return status;
    if (memcmp(now.uuid, r->manifest.uuid, sizeof now.uuid) != 0)
        status = error_set(e, DELTAFS_ERR_NOT_FOUND,
                           "%s: another directory has taken this one's place; close it, and open that", r->path);
    uint8_t *is_lost = calloc(now.epoch_count + 1, sizeof *is_lost);
    if (status == DELTAFS_OK && !is_lost)
        status = error_no_memory(e, now.epoch_count, "a reader");
    /* An epoch that was given up after all, because its commit failed, may have left leaves that others replace. */
    if (status == DELTAFS_OK && !reader_is_continued(&r->manifest, &now))
        status = leaf_cache_create(r->cache, &leaves, e);
    if (status != DELTAFS_OK) {
        free(is_lost);
        manifest_fini(&now);
        return status;
    }
    for (int i = 0; i < READER_OPEN_PARTS; i++)
        part_reader_close(&r->part[i]);
    values_reader_forget(r->values);
    if (leaves) {
        leaf_cache_destroy(r->leaves);
        r->leaves = leaves;
    }
    free(r->is_lost);
    r->is_lost = is_lost;
    manifest_fini(&r->manifest);
    r->manifest = now;
    return DELTAFS_OK;
}

/* The first epoch number whose label is `label` or above. */
static uint32_t reader_epoch_from(const struct reader *r, uint64_t label)
{
    uint64_t low = 0, high = r->manifest.epoch_count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (r->manifest.epoch[middle].label < label)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

void reader_epochs(const struct reader *r, const struct deltafs_range *range, uint32_t *first, uint32_t *end)
{
    *first = range ? reader_epoch_from(r, range->first) : 0;
    *end = (uint32_t)r->manifest.epoch_count;
    if (range && range->last < UINT64_MAX)
        *end = reader_epoch_from(r, range->last + 1);
    if (*end < *first)
        *end = *first;
}

static int part_reader_open(struct reader *r, struct part_reader *p, uint32_t partition, struct error *e)
{
    const struct manifest *m = &r->manifest;
    char *data = io_path(r->path, LOG_NAME_DATA, partition % BUCKET_COUNT, partition);
    char *index = io_path(r->path, LOG_NAME_INDEX, partition % BUCKET_COUNT, partition);
    int status = data && index ? DELTAFS_OK : error_no_memory(e, 1, "a path");

    *p = (struct part_reader){.partition = partition, .is_open = 1, .data.fd = -1, .index.file.fd = -1};
    if (status == DELTAFS_OK)
        status = index_reader_open(&p->index, &r->io, index, partition, m->uuid, (uint32_t)m->epoch_count,
                                   (uint32_t)m->epoch_count, m->is_closed ? m->tail_length : 0, &p->tail, e);
    if (status == DELTAFS_OK) {
        status = io_file_open(&r->io, data, O_RDONLY, &p->data, e);
        if (status == DELTAFS_ERR_NOT_FOUND)
            status = error_damaged(e, data, 0, "the file is missing");
    }
    if (status == DELTAFS_OK)
        status = io_file_size(&p->data, &p->data_size, e);
    free(data);
    free(index);
    if (status != DELTAFS_OK)
        part_reader_close(p);
    return status;
}

int reader_part(struct reader *r, uint32_t partition, struct part_reader **out, struct error *e)
{
    struct part_reader *oldest = &r->part[0];

    r->clock++;
    for (int i = 0; i < READER_OPEN_PARTS; i++) {
        struct part_reader *p = &r->part[i];
        if (p->is_open && p->partition == partition) {
            p->used = r->clock;
            *out = p;
            return DELTAFS_OK;
        }
        if (oldest->is_open && (!p->is_open || p->used < oldest->used))
            oldest = p;
    }
    part_reader_close(oldest);
    int status = part_reader_open(r, oldest, partition, e);
    oldest->used = r->clock;
    *out = oldest;
    return status;
}

int reader_epoch(struct reader *r, struct part_reader *p, uint32_t epoch, struct segment **first, uint32_t *count,
                 struct error *e)
{
    int status = index_epoch(&p->index, epoch, first, count, e);

    for (uint32_t i = 0; status == DELTAFS_OK && r->manifest.keys == KEYS_U64 && i < *count; i++)
        if ((*first)[i].footer.key_shift != 0)
            return error_damaged(e, p->index.file.path, (*first)[i].footer.offset, "a footer shortens keys of numbers");
    return status;
}

int reader_check_place(struct part_reader *p, const struct leaf_place *place, struct error *e)
{
    uint64_t offset = place->at.offset, n = place->at.length;
    struct error ignored;
    unsigned waited = 0;

    while (offset > p->data_size || n > p->data_size - offset)
        if (!io_file_wait(&p->data, &waited) || io_file_size(&p->data, &p->data_size, &ignored) != DELTAFS_OK)
            return error_damaged(e, p->data.path, offset, "the file ends before a block of %llu bytes",
                                 (unsigned long long)n);
    return DELTAFS_OK;
}

int reader_decode_block(struct reader *r, struct part_reader *p, uint32_t epoch, const struct leaf_place *place,
                        const uint8_t *bytes, struct block *block, struct error *e)
{
    struct block_id id = {p->partition, epoch, place->run, place->block, 0};

    return block_decode(block, bytes, place->at.length, &id, p->index.seed, manifest_stored_size(&r->manifest),
                        place->at.count, p->data.path, place->at.offset, e);
}

int reader_is_same_block(const struct leaf_place *a, const struct leaf_place *b)
{
    return a->at.offset == b->at.offset && a->at.length == b->at.length && a->at.count == b->at.count &&
           a->run == b->run && a->block == b->block;
}

int reader_malformed_leaf(struct part_reader *p, const struct segment *s, uint32_t leaf, struct error *e)
{
    return error_damaged(e, p->index.file.path, s->leaf_offsets[leaf], "the leaf's records do not fit its run table");
}

int record_split(const struct reader *r, const uint8_t *stored, size_t size, struct deltafs_record *record)
{
    size_t before = 0;

    record->key_bytes = NULL;
    record->key_size = 0;
    if (r->manifest.keys == KEYS_BYTES) {
        if (size < 2 || stored[0] == 0 || stored[0] > size - 1)
            return -1;
        record->key_size = stored[0];
        record->key_bytes = stored + 1;
        before = 1 + record->key_size;
    }
    record->value = stored + before;
    record->size = size - before;
    return r->manifest.keys == KEYS_BYTES && r->manifest.value_size >= 0 &&
                   record->size != (size_t)r->manifest.value_size
               ? -1
               : 0;
}

/* ---- Scanning ---- */

/* Each run of a leaf is read on its own, block by block. */
struct scan_run {
    uint32_t next;         /* record of the run in the leaf */
    int has_block, is_bad; /* a block was read, or could not be */
    uint32_t epoch;        /* of that block, and its place */
    struct leaf_place place;
    struct window window;
    struct block block;
};

struct scan {
    struct reader *reader;
    struct part_reader *part;
    const struct segment *segment;
    deltafs_record_fn fn;
    void *arg;
    struct deltafs_verify_counts *counts;
    struct scan_damages *damages;
    int is_bad_leaf; /* the rest of the leaf is of no use */
    struct window index_window;
    struct buffer leaf_bytes;
    struct leaf leaf;
    struct scan_run *run; /* by index in the leaf's run table; runs follow each other from leaf to leaf by number */
    uint32_t run_capacity;
    size_t run_ahead, runs_held;
    struct buffer keys;
    /* With layout=local, records whose values are still to be fetched: */
    struct buffer wanted, away;
    size_t away_count;
    struct buffer values; /* of those that have been */
};

/* The key of such a record, shortened as its segment has it. */
struct scan_away {
    uint64_t key;
    unsigned key_shift;
};

static void scan_fini(struct scan *s)
{
    for (uint32_t i = 0; i < s->run_capacity; i++) {
        window_fini(&s->run[i].window);
        block_fini(&s->run[i].block);
    }
    free(s->run);
    window_fini(&s->index_window);
    buffer_fini(&s->leaf_bytes);
    leaf_fini(&s->leaf);
    buffer_fini(&s->keys);
    buffer_fini(&s->wanted);
    buffer_fini(&s->away);
    buffer_fini(&s->values);
}

static int scan_reserve(struct scan *s, uint32_t runs, struct error *e)
{
    if (runs <= s->run_capacity)
        return DELTAFS_OK;
    struct scan_run *grown = realloc(s->run, runs * sizeof *grown);
    if (!grown)
        return error_no_memory(e, runs * sizeof *grown, "a scan");
    memset(grown + s->run_capacity, 0, (runs - s->run_capacity) * sizeof *grown);
    for (uint32_t i = s->run_capacity; i < runs; i++)
        grown[i].window.ahead = s->run_ahead;
    s->run = grown;
    s->run_capacity = runs;
    return DELTAFS_OK;
}

void scan_damage(struct scan_damages *damages, const struct error *e)
{
    if (damages->count++ == 0)
        damages->first = *e;
    if (damages->report)
        damages->report(damages->arg, e);
}

/* An error of one leaf or block: DELTAFS_OK to go on behind it, or what ends the scan. */
static int scan_failed(struct scan *s, const struct error *e)
{
    if (e->status == DELTAFS_ERR_MEMORY)
        return e->status;
    scan_damage(s->damages, e);
    return DELTAFS_OK;
}

static size_t scan_run_bytes(const struct scan_run *run)
{
    const struct block *b = &run->block;

    return run->window.bytes.capacity + b->values.capacity + b->ends.capacity + b->payload.capacity;
}

/* A leaf may name more runs than there is memory for: all but one let go of theirs, and are read anew where they go on.
 */
static void scan_let_go(struct scan *s, const struct scan_run *but)
{
    for (struct scan_run *run = s->run; run < s->run + s->run_capacity; run++) {
        if (run == but)
            continue;
        window_fini(&run->window);
        block_fini(&run->block);
        run->has_block &= run->is_bad;
    }
    s->runs_held = scan_run_bytes(but);
}

static int scan_try_block(struct scan *s, struct scan_run *run, const struct leaf_place *place, struct error *e)
{
    struct part_reader *p = s->part;
    const uint8_t *bytes;
    uint64_t end = s->segment->footer.data_end;
    int status = window_read(&run->window, &p->data, end < p->data_size ? end : p->data_size, place->at.offset,
                             place->at.length, &bytes, e);

    return status == DELTAFS_OK
               ? reader_decode_block(s->reader, p, s->segment->footer.epoch, place, bytes, &run->block, e)
               : status;
}

static int scan_read_block(struct scan *s, struct scan_run *run, const struct leaf_place *place, struct error *e)
{
    unsigned waited = 0;
    int status = reader_check_place(s->part, place, e);

    if (status != DELTAFS_OK)
        return status;
    while ((status = scan_try_block(s, run, place, e)) == DELTAFS_ERR_DAMAGED && io_file_wait(&s->part->data, &waited))
        window_fini(&run->window);
    return status;
}

/* Have the block at `place` in run->block, unless run->is_bad. */
static int scan_block(struct scan *s, struct scan_run *run, const struct leaf_place *place, struct error *e)
{
    uint32_t epoch = s->segment->footer.epoch;

    if (run->has_block && run->epoch == epoch && reader_is_same_block(&run->place, place))
        return DELTAFS_OK;
    run->has_block = 1;
    run->epoch = epoch;
    run->place = *place;
    size_t before = scan_run_bytes(run);
    run->is_bad = scan_read_block(s, run, place, e) != DELTAFS_OK || block_join(&run->block, e) != DELTAFS_OK;
    s->runs_held += scan_run_bytes(run) - before;
    if (s->runs_held > RUNS_HELD_MAX)
        scan_let_go(s, run);
    s->counts->blocks += !run->is_bad;
    return run->is_bad ? scan_failed(s, e) : DELTAFS_OK;
}

/* A record that is not what the index says; `in` is where its value is, NULL: in the partition's data log. */
static int scan_is_wrong(struct scan *s, uint64_t offset, const struct position *in, const char *what, struct error *e)
{
    if (in)
        values_damaged(s->reader, in, what, e);
    else
        error_damaged(e, s->part->data.path, offset, "%s", what);
    return scan_failed(s, e);
}

/* Hand out a record as it is stored. */
static int scan_give(struct scan *s, const struct scan_away *a, const uint8_t *stored, size_t size, uint64_t offset,
                     const struct position *in, struct error *e)
{
    struct deltafs_record record = {.key = a->key, .epoch = s->reader->manifest.epoch[s->segment->footer.epoch].label};

    if (record_split(s->reader, stored, size, &record) != 0)
        return scan_is_wrong(s, offset, in, "a record is not of its key and the value's size", e);
    if (record.key_size > 0) {
        record.key = hash_bytes(record.key_bytes, record.key_size);
        if (record.key >> a->key_shift != a->key)
            return scan_is_wrong(s, offset, in, "a record is not that of the index", e);
    }
    s->counts->records++;
    return s->fn(&record, s->arg);
}

static void scan_note_damage(void *arg, const struct error *e)
{
    scan_damage(arg, e);
}

/* Fetch the values that are away, and hand the records out, in their order. */
static int scan_fetch(struct scan *s, struct error *e)
{
    struct value_wanted *wanted = (struct value_wanted *)(void *)s->wanted.bytes;
    const struct scan_away *away = (const struct scan_away *)(void *)s->away.bytes;
    int status = DELTAFS_OK;

    for (size_t at = 0, done; at < s->away_count && status == DELTAFS_OK; at += done) {
        status = values_fetch(s->reader, wanted + at, s->away_count - at, AWAY_BYTES, &s->values, &done,
                              scan_note_damage, s->damages, &s->counts->blocks, e);
        for (size_t i = at; i < at + done && status == DELTAFS_OK; i++)
            if (!wanted[i].is_bad)
                status = scan_give(s, &away[i], s->values.bytes + wanted[i].at, wanted[i].size, 0, &wanted[i].in, e);
    }
    s->away_count = 0;
    return status;
}

/* A record whose value is with its writer: `bytes` say where. */
static int scan_send_for(struct scan *s, const struct scan_away *a, const uint8_t *bytes, uint64_t offset,
                         struct error *e)
{
    struct value_wanted w = {.epoch = s->segment->footer.epoch, .hash = hash_key(a->key)};
    int status = values_locate(s->reader, w.epoch, bytes, s->part->data.path, offset, &w.in, e);

    if (status != DELTAFS_OK)
        return scan_failed(s, e);
    if (s->away_count == AWAY_RECORDS)
        status = scan_fetch(s, e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->wanted, (s->away_count + 1) * sizeof w, "a scan", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->away, (s->away_count + 1) * sizeof *a, "a scan", e);
    if (status != DELTAFS_OK)
        return status;
    ((struct value_wanted *)(void *)s->wanted.bytes)[s->away_count] = w;
    ((struct scan_away *)(void *)s->away.bytes)[s->away_count++] = *a;
    return DELTAFS_OK;
}

/* A record of the leaf, whose key (shifted) is `key`, as it stands in its block. */
static int scan_take(struct scan *s, struct scan_run *run, uint64_t key, struct error *e)
{
    struct scan_away a = {key, s->segment->footer.key_shift};
    size_t size;
    const uint8_t *stored = block_value(&run->block, run->place.record, &size);

    if (s->reader->manifest.is_local)
        return scan_send_for(s, &a, stored, run->place.at.offset, e);
    return scan_give(s, &a, stored, size, run->place.at.offset, NULL, e);
}

static int scan_record(struct scan *s, uint32_t leaf, uint32_t i, struct error *e)
{
    uint32_t number = leaf_run_of(&s->leaf, i);
    struct leaf_place place;

    if (number >= s->leaf.run_count || leaf_place(&s->leaf, number, s->run[number].next, &place) != 0) {
        s->is_bad_leaf = 1;
        reader_malformed_leaf(s->part, s->segment, leaf, e);
        return scan_failed(s, e);
    }
    struct scan_run *run = &s->run[number];
    run->next++;
    int status = scan_block(s, run, &place, e);
    if (status != DELTAFS_OK || run->is_bad)
        return status;
    run->place.record = place.record;
    return scan_take(s, run, ((const uint64_t *)(const void *)s->keys.bytes)[i], e);
}

static int scan_leaf(struct scan *s, uint32_t leaf, struct error *e)
{
    int status = index_read_leaf(&s->part->index, s->segment, leaf, &s->index_window, &s->leaf_bytes, &s->leaf, e);

    if (status != DELTAFS_OK)
        return scan_failed(s, e);
    status = buffer_reserve(&s->keys, s->leaf.count * sizeof(uint64_t), "a scan", e);
    if (status == DELTAFS_OK)
        status = scan_reserve(s, s->leaf.run_count, e);
    if (status != DELTAFS_OK)
        return status;
    s->counts->leaves++;
    leaf_keys(&s->leaf, (uint64_t *)(void *)s->keys.bytes);
    for (uint32_t i = 0; i < s->leaf.run_count; i++)
        s->run[i].next = 0;
    s->is_bad_leaf = 0;
    for (uint32_t i = 0; i < s->leaf.count && status == DELTAFS_OK && !s->is_bad_leaf; i++)
        status = scan_record(s, leaf, i, e);
    return status;
}

/* A segment's runs share the memory for reading ahead. */
static void scan_share_out(struct scan *s, uint32_t runs)
{
    size_t share = RUNS_AHEAD / (runs > 0 ? runs : 1);

    s->run_ahead = share < RUN_AHEAD_MIN ? RUN_AHEAD_MIN : share > RUN_AHEAD_MAX ? RUN_AHEAD_MAX : share;
    for (uint32_t i = 0; i < s->run_capacity; i++)
        s->run[i].window.ahead = s->run_ahead;
}

int part_scan(struct reader *r, struct part_reader *p, uint32_t epoch, deltafs_record_fn fn, void *arg,
              struct deltafs_verify_counts *counts, struct scan_damages *damages, struct error *e)
{
    struct scan s = {.reader = r,
                     .part = p,
                     .fn = fn,
                     .arg = arg,
                     .counts = counts,
                     .damages = damages,
                     .index_window.ahead = INDEX_AHEAD};
    struct segment *segment;
    uint32_t segments;
    int status = reader_epoch(r, p, epoch, &segment, &segments, e);

    if (status != DELTAFS_OK)
        return scan_failed(&s, e);
    for (; segments > 0 && status == DELTAFS_OK; segment++, segments--) {
        s.segment = segment;
        scan_share_out(&s, segment->footer.runs);
        for (uint32_t leaf = 0; leaf < segment->footer.leaves && status == DELTAFS_OK; leaf++)
            status = scan_leaf(&s, leaf, e);
    }
    if (s.away_count > 0 && status == DELTAFS_OK) {
        s.segment = segment - 1;
        status = scan_fetch(&s, e);
    }
    scan_fini(&s);
    return status;
}

/* ---- The files ---- */

/* Add a file's size; `may_lack`: it may not be there. */
static int reader_add_size(struct reader *r, char *path, int may_lack, uint64_t *sum, struct error *e)
{
    struct io_file file;
    uint64_t size = 0;

    if (!path)
        return error_no_memory(e, 1, "a path");
    int status = io_file_open(&r->io, path, O_RDONLY, &file, e);
    free(path);
    if (status == DELTAFS_ERR_NOT_FOUND && may_lack)
        return DELTAFS_OK;
    if (status != DELTAFS_OK)
        return status;
    status = io_file_size(&file, &size, e);
    struct error ignored;
    io_file_close(&file, &ignored);
    *sum += size;
    return status;
}

static int reader_add_values(struct reader *r, uint64_t *sum, struct error *e)
{
    const struct manifest *m = &r->manifest;
    struct buffer writers = {0};
    size_t count = 0;
    int status = values_list(&r->io, r->path, m->partitions, &writers, &count, e);

    for (size_t i = 0; i < count && status == DELTAFS_OK; i++)
        status = reader_add_size(
            r, values_path(r->path, m->partitions, ((const uint32_t *)(const void *)writers.bytes)[i]), 1, sum, e);
    buffer_fini(&writers);
    return status;
}

int reader_bytes_stored(struct reader *r, uint64_t *out, struct error *e)
{
    const struct manifest *m = &r->manifest;
    int is_empty = m->epoch_count == 0; /* a job that was killed before its first epoch may not have made all logs */
    uint64_t sum = 0;
    int status = reader_add_size(r, io_path(r->path, MANIFEST_NAME), 0, &sum, e);

    for (uint32_t p = 0; p < m->partitions && status == DELTAFS_OK; p++) {
        status = reader_add_size(r, io_path(r->path, LOG_NAME_DATA, p % BUCKET_COUNT, p), is_empty, &sum, e);
        if (status == DELTAFS_OK)
            status = reader_add_size(r, io_path(r->path, LOG_NAME_INDEX, p % BUCKET_COUNT, p), is_empty, &sum, e);
    }
    if (status == DELTAFS_OK && m->is_local)
        status = reader_add_values(r, &sum, e);
    *out = sum;
    return status;
}
