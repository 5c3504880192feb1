/* Repair: look at the manifest's end and at all logs' ends, decide what there is to do, do it, and say what was done;
 * or what would be. What comes last, cutting logs off and closing, is what a writer does that reopens the directory.
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

enum { REPAIR_INDEX, REPAIR_DATA, REPAIR_LOGS };

/* What was found of a partition. */
struct repair_part {
    char *lost;       /* why its index log must be made anew; NULL: it need not */
    int has_last;     /* it has the epoch behind the last committed one, */
    uint64_t records; /* and so many records of it */
    int lacks_tail;   /* though the directory is closed */
    uint64_t size[REPAIR_LOGS], end[REPAIR_LOGS], last_end[REPAIR_LOGS]; /* ends: with the last committed epoch; with
                                                                            one more */
};

struct repair {
    const char *path;
    const struct deltafs_repair_wish *wish;
    const struct repair_how *how;
    deltafs_repair_fn fn;
    void *arg;
    struct io io;
    struct lease lease;
    struct manifest manifest;
    uint64_t manifest_size; /* with a line that was cut short */
    struct error first;     /* of what cannot be repaired */
    struct repair_part *part;
    uint32_t lost;     /* partitions whose index log must be made anew */
    uint64_t *records; /* of each epoch, as the footers say */
    int has_noted;     /* the job noted the epoch whose line was next */
    struct lease_epoch noted;
    int is_kept; /* the epoch behind the last committed one: it is to be committed */
    struct manifest_epoch last;
    uint64_t told;
};

__attribute__((format(printf, 2, 3))) static void repair_tell(struct repair *r, const char *fmt, ...)
{
    char text[1200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->told++;
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

/* ---- What is there ---- */

static int repair_size(struct repair *r, const char *path, uint64_t *size, struct error *e)
{
    struct io_file file;
    struct error ignored;
    int status = io_file_open(&r->io, path, O_RDONLY, &file, e);

    if (status == DELTAFS_OK) {
        status = io_file_size(&file, size, e);
        io_file_close(&file, &ignored);
    }
    return status;
}

static char *repair_log_path(const struct repair *r, int log, uint32_t partition)
{
    return log == REPAIR_INDEX ? io_path(r->path, LOG_NAME_INDEX, partition % BUCKET_COUNT, partition)
                               : io_path(r->path, LOG_NAME_DATA, partition % BUCKET_COUNT, partition);
}

/* The ends of a partition's logs with the last committed epoch, and with one more. */
static int repair_find_ends(struct repair *r, struct repair_part *p, const char *path, uint32_t partition,
                            struct error *e)
{
    struct manifest *m = &r->manifest;
    uint32_t epochs = (uint32_t)m->epoch_count;
    struct index_reader index = {.file.fd = -1};
    struct index_end end = {.log_end = LOG_HEADER_SIZE};
    struct error ignored;
    int status = index_reader_open(&index, &r->io, path, partition, m->uuid, epochs + 1,
                                   m->is_closed ? m->tail_length : 0, &ignored, e);

    p->end[REPAIR_DATA] = LOG_HEADER_SIZE;
    if (status == DELTAFS_OK && epochs > 0)
        status = index_find_end(&index, epochs, &end, &p->end[REPAIR_DATA], e);
    if (status == DELTAFS_OK) {
        p->end[REPAIR_INDEX] = end.log_end;
        p->size[REPAIR_INDEX] = index.size;
        p->lacks_tail = m->is_closed && index.tail_offset == 0;
        p->has_last = index_find_end(&index, epochs + 1, &end, &p->last_end[REPAIR_DATA], &ignored) == DELTAFS_OK;
        p->last_end[REPAIR_INDEX] = end.log_end;
        p->records = 0;
    }
    for (uint32_t i = 0; status == DELTAFS_OK && i < index.count; i++) {
        const struct footer *f = &index.segment[i].footer;
        if (f->epoch == epochs)
            p->records += f->records;
        else if (f->epoch < epochs && !p->lost)
            r->records[f->epoch] += f->records;
    }
    index_reader_close(&index, &ignored);
    return status;
}

/* A log must not end before its last committed epoch does. */
static void repair_check_ends(struct repair *r, const struct repair_part *p, const char *const *path)
{
    struct error e;

    for (int log = 0; log < REPAIR_LOGS && r->manifest.epoch_count > 0; log++)
        if (p->size[log] < p->end[log]) {
            error_damaged(&e, path[log], p->size[log],
                          "the file ends %" PRIu64 " bytes before its last committed epoch does",
                          p->end[log] - p->size[log]);
            repair_fail(r, &e);
        }
}

static void repair_partition(struct repair *r, uint32_t partition)
{
    struct repair_part *p = &r->part[partition];
    char *path[REPAIR_LOGS];
    struct error e;
    int status = DELTAFS_OK;

    for (int log = 0; log < REPAIR_LOGS; log++)
        if (!(path[log] = repair_log_path(r, log, partition)))
            status = error_no_memory(&e, 1, "a path");
    if (status == DELTAFS_OK)
        status = repair_find_ends(r, p, path[REPAIR_INDEX], partition, &e);
    if (status == DELTAFS_OK)
        status = repair_size(r, path[REPAIR_DATA], &p->size[REPAIR_DATA], &e);
    if (status == DELTAFS_OK) {
        repair_check_ends(r, p, (const char *const *)path);
    } else if (status == DELTAFS_ERR_DAMAGED && r->manifest.keys == KEYS_BYTES && r->manifest.epoch_count > 0 &&
               !p->lost && (p->lost = strdup(e.text))) {
        r->lost++;
    } else if (r->manifest.epoch_count > 0) {
        repair_fail(r, &e); /* without an epoch, logs may not have been begun */
    }
    for (int log = 0; log < REPAIR_LOGS; log++)
        free(path[log]);
}

/* ---- The epoch behind the last committed one ---- */

static int repair_is_noted(const struct repair *r)
{
    return r->has_noted && r->noted.number == r->manifest.epoch_count;
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

/* Add up what the logs have of the epoch. Returns whether all partitions have it. */
static int repair_sum_last(struct repair *r, uint64_t *records, uint64_t *bytes)
{
    *records = *bytes = 0;
    for (uint32_t i = 0; i < r->manifest.partitions; i++) {
        const struct repair_part *p = &r->part[i];
        if (!p->has_last)
            return 0;
        *records += p->records;
        for (int log = 0; log < REPAIR_LOGS; log++)
            *bytes += p->last_end[log] - p->end[log];
    }
    return 1;
}

/* The label that the epoch, which all logs have, is to be committed under. Returns whether there is one. */
static int repair_label(struct repair *r, uint64_t records, uint64_t bytes, uint64_t *label)
{
    const struct manifest *m = &r->manifest;
    struct error e;

    /* An index log that was made anew has another length. */
    if (repair_is_noted(r) && r->noted.records == records && (r->lost > 0 || r->noted.bytes_stored == bytes)) {
        *label = r->noted.label;
    } else if (r->wish->has_label && (r->lost < m->partitions || records > 0)) {
        *label = r->wish->label;
    } else {
        repair_tell(r,
                    "%.800s: epoch number %" PRIu64 " is in all logs, but its job did not say that all its processes "
                    "had finished it; it is cut off unless a label is given for it (--label)",
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

/* Who gives a label wants the epoch kept: if it cannot be, nothing is cut off. */
static int repair_check_label(const struct repair *r, struct error *e)
{
    uint64_t label = r->wish->label;

    if (!r->wish->has_label || (r->is_kept && r->last.label == label))
        return DELTAFS_OK;
    if (r->is_kept)
        return error_set(e, DELTAFS_ERR_LABEL,
                         "%.800s: epoch number %" PRIu64 " cannot get the label %" PRIu64 ": its job noted %" PRIu64
                         "; nothing more is changed",
                         r->path, r->manifest.epoch_count, label, r->last.label);
    return error_set(e, DELTAFS_ERR_NOT_FOUND,
                     "%.800s: there is no whole epoch number %" PRIu64 " to get the label %" PRIu64
                     "; nothing more is changed, and without the label what is there of it is cut off",
                     r->path, r->manifest.epoch_count, label);
}

/* Whether the epoch is to be committed. */
static int repair_decide(struct repair *r, struct error *e)
{
    struct error damage;
    uint64_t records, bytes, label;

    if (!repair_sum_last(r, &records, &bytes)) {
        if (repair_is_noted(r) && !(r->wish->is_dry && r->lost > 0))
            repair_tell(r, "%.800s: epoch number %" PRIu64 " had no commit, and is not in all logs", r->path,
                        r->manifest.epoch_count);
        return DELTAFS_OK;
    }
    if (!repair_label(r, records, bytes, &label))
        return DELTAFS_OK;
    int status = repair_check_last(r, label, &damage);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_DAMAGED) {
        *e = damage;
        return status;
    }
    if (status == DELTAFS_OK && r->last.records != records)
        status = error_set(&damage, DELTAFS_ERR_DAMAGED, "%" PRIu64 " records of %" PRIu64 " are in its blocks",
                           r->last.records, records);
    if (status != DELTAFS_OK) {
        repair_tell(r, "%.800s: epoch number %" PRIu64 " had no commit, and is not whole: %.300s", r->path,
                    r->manifest.epoch_count, damage.text);
        return DELTAFS_OK;
    }
    r->last.label = label;
    r->last.bytes_stored = bytes;
    r->is_kept = 1;
    return DELTAFS_OK;
}

static int repair_sync_log(struct repair *r, int log, uint32_t partition, struct error *e)
{
    char *path = repair_log_path(r, log, partition);
    struct io_file file;
    struct error second;
    int status = path ? io_file_open(&r->io, path, O_RDWR, &file, e) : error_no_memory(e, 1, "a path");

    free(path);
    if (status != DELTAFS_OK)
        return status;
    status = io_file_sync(&file, e);
    int closed = io_file_close(&file, status == DELTAFS_OK ? e : &second);
    return status != DELTAFS_OK ? status : closed;
}

/* What a line in the manifest counts on, whatever the job did that wrote it. */
static int repair_sync(struct repair *r, struct error *e)
{
    uint32_t partitions = r->manifest.partitions;
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < partitions && status == DELTAFS_OK; i++) {
        status = repair_sync_log(r, REPAIR_DATA, i, e);
        if (status == DELTAFS_OK)
            status = repair_sync_log(r, REPAIR_INDEX, i, e);
    }
    for (uint32_t b = 0; b < BUCKET_COUNT && b < partitions && status == DELTAFS_OK; b++) {
        char *path = io_path(r->path, BUCKET_NAME, b);
        status = path ? io_sync_folder(&r->io, path, e) : error_no_memory(e, 1, "a path");
        free(path);
    }
    return status == DELTAFS_OK ? io_sync_folder(&r->io, r->path, e) : status;
}

/* Write the epoch's line, at the manifest's end without what was cut short. */
static int repair_write_line(struct repair *r, struct error *e)
{
    char *path = io_path(r->path, MANIFEST_NAME);
    struct io_file file;
    struct error second;
    uint64_t size = r->manifest.size;
    int status = path ? io_file_open(&r->io, path, O_RDWR, &file, e) : error_no_memory(e, 1, "a path");

    free(path);
    if (status != DELTAFS_OK)
        return status;
    status = io_file_truncate(&file, size, e);
    if (status == DELTAFS_OK)
        status = io_file_sync(&file, e);
    if (status == DELTAFS_OK)
        status = manifest_append_epoch(&file, &size, r->manifest.epoch_count, &r->last, 1, e);
    int closed = io_file_close(&file, status == DELTAFS_OK ? e : &second);
    return status != DELTAFS_OK ? status : closed;
}

/* Reading all of the epoch may have taken long: the directory must still be ours. */
static int repair_commit(struct repair *r, struct error *e)
{
    int status = repair_sync(r, e);

    if (status == DELTAFS_OK)
        status = lease_renew(&r->lease, r->has_noted ? &r->noted : NULL, e);
    return status == DELTAFS_OK ? repair_write_line(r, e) : status;
}

/* ---- Index logs ---- */

/* Make the index logs anew that must be; and put them into their places if no record is missing then. */
static int repair_rebuild(struct repair *r, struct error *e)
{
    const struct manifest *m = &r->manifest;
    uint64_t epochs = m->epoch_count + (repair_is_noted(r) || r->wish->has_label);
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < m->partitions && status == DELTAFS_OK; i++)
        if (r->part[i].lost)
            status = rebuild_index(&r->io, r->path, m, epochs, i, r->how->memory, r->records, e);
    for (uint64_t i = 0; i < m->epoch_count && status == DELTAFS_OK; i++)
        if (r->records[i] != m->epoch[i].records)
            status = error_set(e, DELTAFS_ERR_DAMAGED,
                               "%.800s: epoch %" PRIu64 " has %" PRIu64 " records in the logs, its commit says %" PRIu64
                               ": the index logs are not replaced",
                               r->path, m->epoch[i].label, r->records[i], m->epoch[i].records);
    for (uint32_t i = 0; i < m->partitions && status == DELTAFS_OK; i++)
        if (r->part[i].lost)
            status = rebuild_adopt(&r->io, r->path, i, e);
    for (uint32_t i = 0; i < m->partitions && status != DELTAFS_OK; i++)
        if (r->part[i].lost)
            rebuild_discard(&r->io, r->path, i);
    return status;
}

static int repair_indexes(struct repair *r, struct error *e)
{
    int status = r->wish->is_dry ? DELTAFS_OK : repair_rebuild(r, e);

    for (uint32_t i = 0; i < r->manifest.partitions && status == DELTAFS_OK; i++) {
        if (!r->part[i].lost)
            continue;
        repair_tell(r, "%s; it is made anew from the data log", r->part[i].lost);
        if (!r->wish->is_dry)
            repair_partition(r, i);
    }
    if (status == DELTAFS_OK && r->wish->is_dry && repair_is_noted(r))
        repair_tell(r, "%.800s: epoch number %" PRIu64 " has no commit; whether it gets one is seen after that",
                    r->path, r->manifest.epoch_count);
    return status;
}

/* ---- All of it ---- */

/* What a log has behind its last epoch: a tail does not count. */
static void repair_tell_log(struct repair *r, int log, uint32_t partition)
{
    const struct repair_part *p = &r->part[partition];
    uint64_t end = r->is_kept ? p->last_end[log] : p->end[log];
    char *path = repair_log_path(r, log, partition);

    if (!path || (log == REPAIR_INDEX && r->manifest.is_closed && !p->lacks_tail) || (p->lost && r->wish->is_dry))
        ;
    else if (p->size[log] > end)
        repair_tell(r, "%.800s: what has no commit is cut off, %" PRIu64 " bytes at offset %" PRIu64, path,
                    p->size[log] - end, end);
    else if (log == REPAIR_INDEX && p->lacks_tail && !p->lost)
        repair_tell(r, "%.800s: the file's tail is missing, and is written anew", path);
    free(path);
}

/* What a writer does that opens the directory and closes it. */
static void repair_tell_ends(struct repair *r)
{
    const struct manifest *m = &r->manifest;

    if (r->manifest_size > m->size)
        repair_tell(r, "%.800s/%s: a line cut short is removed, %" PRIu64 " bytes at offset %" PRIu64, r->path,
                    MANIFEST_NAME, r->manifest_size - m->size, m->size);
    for (uint32_t i = 0; i < m->partitions; i++)
        for (int log = 0; log < REPAIR_LOGS; log++)
            if (r->part[i].size[log] > 0)
                repair_tell_log(r, log, i);
    if (!m->is_closed)
        repair_tell(r, "%.800s: the directory is closed", r->path);
}

/* Whether there is anything that a writer would do. */
static int repair_is_sound(const struct repair *r)
{
    const struct manifest *m = &r->manifest;

    if (!m->is_closed || r->manifest_size > m->size || r->told > 0)
        return 0;
    for (uint32_t i = 0; i < m->partitions; i++) {
        const struct repair_part *p = &r->part[i];
        if (p->lacks_tail || p->size[REPAIR_DATA] > p->end[REPAIR_DATA])
            return 0;
    }
    return 1;
}

static int repair_inspect(struct repair *r, struct error *e)
{
    struct manifest *m = &r->manifest;
    char *path = io_path(r->path, MANIFEST_NAME);
    int status = path ? repair_size(r, path, &r->manifest_size, e) : error_no_memory(e, 1, "a path");

    free(path);
    r->part = calloc(m->partitions, sizeof *r->part);
    r->records = calloc(m->epoch_count + 1, sizeof *r->records);
    if (status == DELTAFS_OK && (!r->part || !r->records))
        status =
            error_no_memory(e, m->partitions * sizeof *r->part + m->epoch_count * sizeof *r->records, "the partitions");
    for (uint32_t i = 0; i < m->partitions && status == DELTAFS_OK; i++)
        repair_partition(r, i);
    return status;
}

/* All but what the directory's next writer does. */
static int repair_all(struct repair *r, struct error *e)
{
    int status = repair_inspect(r, e);

    if (status == DELTAFS_OK && r->lost > 0)
        status = repair_indexes(r, e);
    if (status == DELTAFS_OK)
        status = repair_decide(r, e);
    if (status == DELTAFS_OK && r->first.status != DELTAFS_OK) {
        *e = r->first;
        status = e->status;
    }
    if (status == DELTAFS_OK)
        status = repair_check_label(r, e);
    if (status == DELTAFS_OK && r->is_kept && !r->wish->is_dry)
        status = repair_commit(r, e);
    if (status == DELTAFS_OK && r->is_kept)
        repair_tell(r,
                    "%.800s: epoch number %" PRIu64 ", whole but without its commit, is committed: %" PRIu64
                    " records labelled %" PRIu64,
                    r->path, r->manifest.epoch_count, r->last.records, r->last.label);
    return status;
}

/* Have the lease, in which stays what the job noted that had it before, and the manifest as it is then. */
static int repair_take(struct repair *r, struct error *e)
{
    int status = lease_take(&r->lease, &r->io, r->path, r->how->lease, 1, e);

    if (status == DELTAFS_OK) {
        r->has_noted = r->lease.has_note;
        r->noted = r->lease.note;
        manifest_fini(&r->manifest);
        status = manifest_read(&r->io, r->path, &r->manifest, e);
    }
    return status;
}

static void repair_fini(struct repair *r)
{
    for (uint32_t i = 0; r->part && i < r->manifest.partitions; i++)
        free(r->part[i].lost);
    free(r->part);
    free(r->records);
    manifest_fini(&r->manifest);
}

int repair_directory(const char *path, const struct deltafs_repair_wish *wish, const struct repair_how *how,
                     deltafs_repair_fn fn, void *arg, struct error *e)
{
    struct repair r = {.path = path, .wish = wish, .how = how, .fn = fn, .arg = arg, .io = io_default()};
    struct error second;
    int status = manifest_read(&r.io, path, &r.manifest, e);

    if (status == DELTAFS_OK && wish->is_dry)
        r.has_noted = lease_find_epoch(&r.io, path, &r.noted);
    else if (status == DELTAFS_OK)
        status = repair_take(&r, e);
    if (status == DELTAFS_OK)
        status = repair_all(&r, e);
    /* Where it failed, what the job noted stays for the next attempt. */
    int dropped = status != DELTAFS_OK && repair_is_noted(&r)
                      ? io_file_close(&r.lease.file, &second)
                      : lease_drop(&r.lease, status == DELTAFS_OK ? e : &second);
    status = status != DELTAFS_OK ? status : dropped;
    if (status == DELTAFS_OK && !repair_is_sound(&r)) {
        if (!wish->is_dry)
            status = how->close(how->ctx, e);
        if (status == DELTAFS_OK)
            repair_tell_ends(&r);
    }
    repair_fini(&r);
    return status;
}
