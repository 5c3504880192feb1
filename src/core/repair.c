/* Repair: look at the manifest's end and at all logs' ends, say what there is to do, and do it. What comes last,
 * cutting logs off and closing, is what a writer does that reopens the directory.
 *
 * An epoch behind the last committed one is whole if all partitions have its footers, and all its leaves and blocks are
 * right. That all ranks had brought their records to it is known only if the job had agreed upon that: then it noted
 * the epoch in its lease before it began to write the line. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/reader.h"
#include "core/repair.h"
#include "store/lease.h"
#include "store/store_format.h"

struct repair {
    const char *path;
    const struct deltafs_repair_wish *wish;
    deltafs_repair_fn fn;
    void *arg;
    struct io io;
    struct manifest manifest;
    struct error first; /* of what cannot be repaired */
    uint8_t *is_lost;   /* of each partition: its index log must be made anew */
    uint64_t *records;  /* of each epoch, as the footers say */
    int has_noted;      /* the job noted the epoch whose line was next */
    struct lease_epoch noted;
    int is_last_whole; /* whether all partitions have footers behind the last committed epoch */
    struct manifest_epoch last;
};

__attribute__((format(printf, 2, 3))) static void repair_tell(struct repair *r, const char *fmt, ...)
{
    char text[1200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (r->fn)
        r->fn(DELTAFS_OK, text, r->arg);
}

static void repair_fail(struct repair *r, const struct error *e)
{
    if (r->first.status == DELTAFS_OK)
        r->first = *e;
    if (r->fn)
        r->fn(e->status, e->text, r->arg);
}

/* A line that was cut short. */
static int repair_manifest(struct repair *r, struct error *e)
{
    char *path = io_path(r->path, MANIFEST_NAME);
    struct io_file file;
    struct error ignored;
    uint64_t size;
    int status = path ? io_file_open(&r->io, path, O_RDONLY, &file, e) : error_no_memory(e, 1, "a path");

    if (status == DELTAFS_OK) {
        status = io_file_size(&file, &size, e);
        io_file_close(&file, &ignored);
        if (status == DELTAFS_OK && size > r->manifest.size)
            repair_tell(r, "%.800s: a line cut short is removed, %" PRIu64 " bytes at offset %" PRIu64, path,
                        size - r->manifest.size, r->manifest.size);
    }
    free(path);
    return status;
}

/* What a log has behind its last committed epoch, at `end`: a tail does not count. */
static void repair_log(struct repair *r, const char *path, uint64_t end, uint64_t size, int has_tail)
{
    struct error e;

    if (size < end) {
        error_damaged(&e, path, size, "the file ends %" PRIu64 " bytes before its last committed epoch does",
                      end - size);
        repair_fail(r, &e);
    } else if (size > end && !has_tail) {
        repair_tell(r, "%.800s: what has no commit is cut off, %" PRIu64 " bytes at offset %" PRIu64, path, size - end,
                    end);
    }
}

/* The end of a partition's logs with the last committed epoch, and whether one more is there. */
static int repair_find_ends(struct repair *r, const char *path, uint32_t partition, struct index_reader *index,
                            struct index_end *end, uint64_t *data_end, struct error *e)
{
    struct manifest *m = &r->manifest;
    uint32_t epochs = (uint32_t)m->epoch_count;
    struct index_end more;
    struct error ignored;
    uint64_t more_end;
    int status = index_reader_open(index, &r->io, path, partition, m->uuid, epochs + 1,
                                   m->is_closed ? m->tail_length : 0, &ignored, e);

    *end = (struct index_end){.log_end = LOG_HEADER_SIZE};
    *data_end = LOG_HEADER_SIZE;
    if (status == DELTAFS_OK && epochs > 0)
        status = index_find_end(index, epochs, end, data_end, e);
    if (status != DELTAFS_OK)
        return status;
    for (uint32_t i = 0; i < index->count && index->segment[i].footer.epoch < epochs; i++)
        r->records[index->segment[i].footer.epoch] += index->segment[i].footer.records;
    if (index_find_end(index, epochs + 1, &more, &more_end, &ignored) != DELTAFS_OK)
        r->is_last_whole = 0;
    else
        r->last.bytes_stored += more.log_end - end->log_end + more_end - *data_end;
    return DELTAFS_OK;
}

static void repair_partition(struct repair *r, uint32_t partition)
{
    uint32_t bucket = partition % BUCKET_COUNT;
    char *data = io_path(r->path, LOG_NAME_DATA, bucket, partition);
    char *index = io_path(r->path, LOG_NAME_INDEX, bucket, partition);
    struct index_reader reader = {.file.fd = -1};
    struct io_file file;
    struct index_end end;
    struct error e, ignored;
    uint64_t data_end, size;
    int status = data && index ? DELTAFS_OK : error_no_memory(&e, 1, "a path");

    if (status == DELTAFS_OK)
        status = repair_find_ends(r, index, partition, &reader, &end, &data_end, &e);
    if (status == DELTAFS_OK) {
        repair_log(r, index, end.log_end, reader.size, reader.tail_offset > 0);
        status = io_file_open(&r->io, data, O_RDONLY, &file, &e);
        if (status == DELTAFS_OK) {
            status = io_file_size(&file, &size, &e);
            io_file_close(&file, &ignored);
        }
        if (status == DELTAFS_OK)
            repair_log(r, data, data_end, size, 0);
    } else if (status == DELTAFS_ERR_DAMAGED && r->manifest.keys == KEYS_BYTES && r->manifest.epoch_count > 0) {
        repair_tell(r, "%s; it is made anew from the data log", e.text);
        r->is_lost[partition] = 1;
        r->is_last_whole = 0;
        status = DELTAFS_OK;
    }
    /* Without an epoch, logs may not have been begun. */
    if (status != DELTAFS_OK && r->manifest.epoch_count > 0)
        repair_fail(r, &e);
    if (status != DELTAFS_OK)
        r->is_last_whole = 0;
    index_reader_close(&reader, &ignored);
    free(data);
    free(index);
}

static int count_record(const struct deltafs_record *record, void *arg)
{
    struct repair *r = arg;

    r->last.records++;
    r->last.bytes_raw += (record->key_bytes ? record->key_size : 8) + record->size;
    return 0;
}

/* Whether all records of the epoch behind the last committed one are right; counts them. */
static int repair_check_last(struct repair *r, uint64_t label, struct error *e)
{
    struct deltafs_verify_stat counts = {0};
    struct scan_damages damages = {0};
    struct part_reader *p;
    struct reader *reader;
    int status = reader_open(r->path, 0, 0, &reader, e);

    if (status != DELTAFS_OK)
        return status;
    struct manifest *m = &reader->manifest;
    struct manifest_epoch *grown = realloc(m->epoch, (m->epoch_count + 1) * sizeof *grown);
    if (grown) {
        m->epoch = grown;
        m->epoch_capacity = m->epoch_count + 1;
        m->epoch[m->epoch_count++] = (struct manifest_epoch){.label = label};
        m->is_closed = 0;
    } else {
        status = error_no_memory(e, m->epoch_count * sizeof *grown, "the epochs");
    }
    for (uint32_t i = 0; i < m->partitions && status == DELTAFS_OK; i++) {
        status = reader_part(reader, i, &p, e);
        if (status == DELTAFS_OK)
            status = part_scan(reader, p, (uint32_t)m->epoch_count - 1, count_record, r, &counts, &damages, e);
    }
    if (status == DELTAFS_OK && damages.count > 0) {
        *e = damages.first;
        status = e->status;
    }
    reader_close(reader);
    return status;
}

/* The label that the epoch behind the last committed one is to be committed under. Returns whether there is one. */
static int repair_label(struct repair *r, uint64_t *label)
{
    const struct manifest *m = &r->manifest;
    struct error e;

    if (r->has_noted && r->noted.number == m->epoch_count) {
        *label = r->noted.label;
    } else if (r->wish->has_label) {
        *label = r->wish->label;
    } else {
        repair_tell(r,
                    "%.800s: epoch number %" PRIu64 " is in all logs, but its job did not say that all its processes "
                    "had finished it; it is cut off unless a label is given for it",
                    r->path, m->epoch_count);
        return 0;
    }
    if (m->epoch_count == 0 || *label > m->epoch[m->epoch_count - 1].label)
        return 1;
    error_set(&e, DELTAFS_ERR_LABEL, "%.800s: the label %" PRIu64 " is not above the last one, %" PRIu64, r->path,
              *label, m->epoch[m->epoch_count - 1].label);
    repair_fail(r, &e);
    return 0;
}

/* Write the line of the epoch behind the last committed one. */
static int repair_commit(struct repair *r, uint64_t label, struct error *e)
{
    char *path = io_path(r->path, MANIFEST_NAME);
    struct io_file file;
    struct error second;
    uint64_t size = r->manifest.size;
    int status = path ? io_file_open(&r->io, path, O_RDWR, &file, e) : error_no_memory(e, 1, "a path");

    free(path);
    if (status != DELTAFS_OK)
        return status;
    r->last.label = label;
    status = io_file_truncate(&file, size, e);
    if (status == DELTAFS_OK)
        status = manifest_append_epoch(&file, &size, r->manifest.epoch_count, &r->last, 1, e);
    int closed = io_file_close(&file, status == DELTAFS_OK ? e : &second);
    return status != DELTAFS_OK ? status : closed;
}

static int repair_last(struct repair *r, struct error *e)
{
    struct error damage;
    uint64_t label;

    if (!r->is_last_whole || !repair_label(r, &label))
        return DELTAFS_OK;
    if (repair_check_last(r, label, &damage) != DELTAFS_OK) {
        repair_tell(r, "%.800s: epoch number %" PRIu64 " had no commit, and is not whole: %.300s", r->path,
                    r->manifest.epoch_count, damage.text);
        return DELTAFS_OK;
    }
    repair_tell(r,
                "%.800s: epoch number %" PRIu64 ", whole but without its commit, is committed: %" PRIu64
                " records labelled %" PRIu64,
                r->path, r->manifest.epoch_count, r->last.records, label);
    return r->wish->is_dry ? DELTAFS_OK : repair_commit(r, label, e);
}

/* Make the index logs anew that must be; and put them into their places if no record is missing then. */
static int repair_indexes(struct repair *r, struct error *e)
{
    const struct manifest *m = &r->manifest;
    int status = DELTAFS_OK, is_any = 0;

    for (uint32_t i = 0; i < m->partitions && status == DELTAFS_OK; i++)
        if (r->is_lost[i]) {
            status = rebuild_index(&r->io, r->path, m, i, r->records, e);
            is_any = 1;
        }
    for (uint64_t i = 0; is_any && i < m->epoch_count && status == DELTAFS_OK; i++)
        if (r->records[i] != m->epoch[i].records)
            status = error_set(e, DELTAFS_ERR_DAMAGED,
                               "%.800s: epoch %" PRIu64 " has %" PRIu64 " records in the logs, its commit says %" PRIu64
                               ": the index logs are not replaced",
                               r->path, m->epoch[i].label, r->records[i], m->epoch[i].records);
    for (uint32_t i = 0; i < m->partitions && status == DELTAFS_OK; i++)
        if (r->is_lost[i])
            status = rebuild_adopt(&r->io, r->path, i, e);
    return status;
}

static int repair_all(struct repair *r, struct error *e)
{
    struct manifest *m = &r->manifest;
    int status = repair_manifest(r, e);

    r->is_lost = calloc(m->partitions, 1);
    r->records = calloc(m->epoch_count + 1, sizeof *r->records);
    if (status == DELTAFS_OK && (!r->is_lost || !r->records))
        status = error_no_memory(e, m->partitions + m->epoch_count * sizeof *r->records, "the partitions");
    r->is_last_whole = 1;
    for (uint32_t i = 0; i < m->partitions && status == DELTAFS_OK; i++)
        repair_partition(r, i);
    if (status == DELTAFS_OK && !r->wish->is_dry)
        status = repair_indexes(r, e);
    if (status == DELTAFS_OK)
        status = repair_last(r, e);
    if (status == DELTAFS_OK && r->first.status != DELTAFS_OK) {
        *e = r->first;
        status = e->status;
    }
    if (status == DELTAFS_OK && !m->is_closed)
        repair_tell(r, "%.800s: the directory is closed", r->path);
    free(r->is_lost);
    free(r->records);
    return status;
}

/* Have the lease, with what the job noted in it. */
static int repair_take_lease(struct repair *r, struct lease *lease, uint64_t seconds, struct error *e)
{
    int status = lease_take(lease, &r->io, r->path, seconds, 1, e);

    return status == DELTAFS_OK && r->has_noted ? lease_renew(lease, &r->noted, e) : status;
}

int repair_directory(const char *path, const struct deltafs_repair_wish *wish, uint64_t seconds, deltafs_repair_fn fn,
                     void *arg, struct error *e)
{
    struct repair r = {.path = path, .wish = wish, .fn = fn, .arg = arg, .io = io_default()};
    struct lease lease = {0};
    struct error second;
    int status = manifest_read(&r.io, path, &r.manifest, e);

    /* What a job noted that lives is no business of ours: its lease cannot be taken. */
    r.has_noted = lease_find_epoch(&r.io, path, &r.noted);
    if (status == DELTAFS_OK && !wish->is_dry) {
        status = repair_take_lease(&r, &lease, seconds, e);
        manifest_fini(&r.manifest);
        if (status == DELTAFS_OK)
            status = manifest_read(&r.io, path, &r.manifest, e);
    }
    if (status == DELTAFS_OK)
        status = repair_all(&r, e);
    manifest_fini(&r.manifest);
    int dropped = lease_drop(&lease, status == DELTAFS_OK ? e : &second);
    return status != DELTAFS_OK ? status : dropped;
}
