/* What there is to be repaired of a directory's logs: where they end, which of their parts are damaged; and what of
 * that is stored elsewhere is restored at once (log_restore.c). */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "directory/format/directory_format.h"
#include "repair/repair_state.h"

void repair_say(struct repair *r, int status, const char *fmt, ...)
{
    char text[1800];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->reported += status == DELTAFS_OK;
    if (r->fn)
        r->fn(status, text, r->arg);
}

const char *repair_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

int repair_renew(struct repair *r, struct error *e)
{
    return r->options->dry_run ? DELTAFS_OK : lease_renew(&r->lease, r->has_noted ? &r->noted : NULL, e);
}

int repair_size(struct repair *r, const char *path, uint64_t *size, struct error *e)
{
    struct io_file file;
    int status = log_open_read(&r->io, path, &file, size, e);

    io_file_close(&file, error_ignored());
    return status;
}

char *repair_log_path(const struct repair *r, int log, uint32_t partition, char path[PATH_ROOM])
{
    return log == REPAIR_INDEX ? io_path_in(path, r->path, LOG_NAME_INDEX, partition % BUCKET_COUNT, partition)
                               : io_path_in(path, r->path, LOG_NAME_DATA, partition % BUCKET_COUNT, partition);
}

/* ---- A partition ---- */

/* The ends of a partition's logs with the last committed epoch, and with one more. */
static int examine_ends(struct repair *r, struct repair_part *p, const struct index_reader *index, struct error *e)
{
    const struct manifest *m = &r->manifest;
    uint32_t epochs = (uint32_t)m->epoch_count;
    struct index_end end = {.log_end = LOG_HEADER_SIZE};
    int status = epochs > 0 ? index_find_end(index, epochs, &end, &p->end[REPAIR_DATA], e) : DELTAFS_OK;

    if (status != DELTAFS_OK)
        return status;
    p->end[REPAIR_INDEX] = end.log_end;
    p->lacks_tail = m->is_closed && index->tail_offset == 0;
    p->has_last = index_find_end(index, epochs + 1, &end, &p->last_end[REPAIR_DATA], error_ignored()) == DELTAFS_OK;
    p->last_end[REPAIR_INDEX] = end.log_end;
    return DELTAFS_OK;
}

static void examine_records(struct repair *r, struct repair_part *p, const struct index_reader *index)
{
    p->records = 0;
    for (uint32_t i = 0; i < index->count; i++) {
        const struct footer *f = &index->segment[i].footer;
        if (f->epoch == r->manifest.epoch_count)
            p->records += f->records;
        else if (f->epoch < r->manifest.epoch_count)
            r->records[f->epoch] += f->records;
    }
}

/* Whether what an index log has behind its last committed epoch is a tail and nothing else. */
static int examine_is_tail(struct index_reader *index, uint64_t end)
{
    uint8_t t[TAIL_TRAILER_SIZE];

    return index->size >= end + sizeof t &&
           io_file_read(&index->file, index->size - sizeof t, t, sizeof t, error_ignored()) == DELTAFS_OK &&
           memcmp(t + 24, TAIL_MAGIC, 8) == 0 && t[4] == FORMAT_TAIL && get_u64(t + 16) == index->size - end;
}

/* How many epochs, the first, the logs have all of. */
static uint64_t examine_whole(const struct repair *r, const struct repair_part *p, const struct index_reader *index)
{
    struct index_end end;
    uint64_t data_end;

    for (uint64_t n = r->manifest.epoch_count; n > 0; n--)
        if (index_find_end(index, (uint32_t)n, &end, &data_end, error_ignored()) == DELTAFS_OK &&
            data_end <= p->size[REPAIR_DATA])
            return n;
    return 0;
}

/* What the index log has; *lost: the first epoch of which it says that records are lost. */
static int examine_index(struct repair *r, struct repair_part *p, struct index_reader *index, uint64_t *lost,
                         struct error *e)
{
    int status = examine_ends(r, p, index, e);

    if (status != DELTAFS_OK || r->manifest.epoch_count == 0)
        return status;
    status = restore_segments(r, index, &p->whole, e);
    if (status == DELTAFS_OK && r->manifest.keys == KEYS_BYTES)
        status = restore_check_leaves(r, index, lost, e);
    if (status == DELTAFS_OK)
        status = restore_header(r, index, index->file.path, LOG_KIND_INDEX, e);
    return status;
}

/* The data log, which must not end before its last committed epoch does; nor must the index log. */
static int examine_data(struct repair *r, struct repair_part *p, struct index_reader *index, char *const *path,
                        struct error *e)
{
    for (int log = 0; log < REPAIR_LOGS; log++) {
        uint64_t missing = p->end[log] - p->size[log];
        if (p->size[log] < p->end[log])
            return error_damaged(e, path[log], p->size[log],
                                 "the file ends %" PRIu64 " byte%s before its last committed epoch does", missing,
                                 repair_plural(missing));
    }
    int status = restore_header(r, index, path[REPAIR_DATA], LOG_KIND_DATA, e);
    if (status == DELTAFS_ERR_DAMAGED)
        p->whole = 0;
    return status;
}

/* Note why a partition's index log must be rebuilt, or why the partition cannot be repaired. */
static int examine_note(struct repair *r, struct repair_part *p, const struct error *why, int can_rebuild,
                        struct error *e)
{
    char **text = can_rebuild ? &p->lost : &p->bad;

    if (why->status != DELTAFS_ERR_DAMAGED) {
        *e = *why;
        return e->status;
    }
    if (p->lost || p->bad)
        return DELTAFS_OK;
    if (!(*text = strdup(why->text)))
        return error_no_memory(e, strlen(why->text), "a message");
    r->lost += can_rebuild != 0;
    return DELTAFS_OK;
}

/* With an index log that is right, whatever it took. */
static int examine_found(struct repair *r, struct repair_part *p, struct index_reader *index, uint64_t lost,
                         char *const *path, struct error *e)
{
    struct error why;
    int status = repair_size(r, path[REPAIR_DATA], &p->size[REPAIR_DATA], &why);

    examine_records(r, p, index);
    p->whole = examine_whole(r, p, index);
    if (lost < p->whole)
        p->whole = lost;
    p->has_tail = examine_is_tail(index, p->end[REPAIR_INDEX]);
    if (status == DELTAFS_OK)
        status = examine_data(r, p, index, path, &why);
    return status == DELTAFS_OK ? DELTAFS_OK : examine_note(r, p, &why, 0, e);
}

/* That a log, if there is one, may be written to: what a writer would be refused is no repair. */
static int examine_may_write(struct repair *r, const char *path, struct error *e)
{
    struct io_file file;
    int status = io_file_open(&r->io, path, O_RDONLY, &file, error_ignored());

    if (status != DELTAFS_OK)
        return DELTAFS_OK; /* the examination says why */
    status = io_file_check_names(&file, e);
    if (status == DELTAFS_OK && r->manifest.epoch_count == 0)
        status = log_check_restart(&file, r->manifest.uuid, e);
    return io_file_finish(&file, status, e);
}

int repair_partition(struct repair *r, uint32_t partition, struct error *e)
{
    const struct manifest *m = &r->manifest;
    struct repair_part *p = &r->part[partition];
    char index_path[PATH_ROOM], data_path[PATH_ROOM];
    char *const path[REPAIR_LOGS] = {[REPAIR_INDEX] = repair_log_path(r, REPAIR_INDEX, partition, index_path),
                                     [REPAIR_DATA] = repair_log_path(r, REPAIR_DATA, partition, data_path)};
    struct index_reader index = {.file.fd = -1};
    struct error why, tail;
    uint64_t lost = NO_EPOCH;
    int status = DELTAFS_OK;

    for (int log = 0; log < REPAIR_LOGS; log++)
        if (examine_may_write(r, path[log], e) != DELTAFS_OK)
            return e->status;
    status = index_reader_open(&index, &r->io, path[REPAIR_INDEX], partition, m->uuid, (uint32_t)m->epoch_count,
                               (uint32_t)m->epoch_count + 1, m->is_closed ? m->tail_length : 0, &tail, &why);

    index.compacted = m->compacted;
    p->end[REPAIR_DATA] = p->end[REPAIR_INDEX] = LOG_HEADER_SIZE;
    p->has_index = index.file.path != NULL;
    p->size[REPAIR_INDEX] = index.size;
    p->committed = index_committed(&index, m->is_closed);
    p->seen = index.seen.epochs;
    p->whole = NO_EPOCH;
    if (status == DELTAFS_OK)
        status = examine_index(r, p, &index, &lost, &why);
    if (m->epoch_count == 0) {
        /* Logs may not have been begun. */
        if (repair_size(r, path[REPAIR_DATA], &p->size[REPAIR_DATA], error_ignored()) != DELTAFS_OK)
            p->size[REPAIR_DATA] = 0;
        examine_records(r, p, &index);
        status = DELTAFS_OK;
    } else if (status == DELTAFS_OK) {
        status = examine_found(r, p, &index, lost, path, e);
    } else {
        uint64_t in_place = p->whole;
        struct error lacks;
        int has_data = repair_size(r, path[REPAIR_DATA], &p->size[REPAIR_DATA], &lacks) == DELTAFS_OK;
        p->whole = examine_whole(r, p, &index);
        p->whole = in_place < p->whole ? in_place : p->whole;
        int can_rebuild = has_data && m->keys == KEYS_BYTES && !m->is_local && m->compacted == 0;
        status = examine_note(r, p, has_data ? &why : &lacks, can_rebuild, e);
    }
    index_reader_close(&index, error_ignored());
    return status;
}

/* ---- All of them ---- */

int repair_inspect(struct repair *r, struct error *e)
{
    const struct manifest *m = &r->manifest;
    char path[PATH_ROOM];
    int status = DELTAFS_OK;

    r->manifest_size = m->size;
    if (!r->text.bytes)
        status = repair_size(r, io_path_in(path, r->path, MANIFEST_NAME), &r->manifest_size, e);
    r->part = calloc(m->partitions, sizeof *r->part);
    r->records = calloc(m->epoch_count + 1, sizeof *r->records);
    if (status == DELTAFS_OK && (!r->part || !r->records))
        status =
            error_no_memory(e, m->partitions * sizeof *r->part + m->epoch_count * sizeof *r->records, "the partitions");
    if (status == DELTAFS_OK)
        status = manifest_check_buckets(&r->io, r->path, m, e);
    for (uint32_t i = 0; i < m->partitions && status == DELTAFS_OK; i++) {
        status = repair_renew(r, e);
        if (status == DELTAFS_OK)
            status = repair_partition(r, i, e);
        if (r->part[i].committed.epochs > r->committed) {
            r->committed = r->part[i].committed.epochs;
            r->committed_in = i;
        }
        if (r->part[i].seen > r->seen)
            r->seen = r->part[i].seen;
    }
    return status;
}

void repair_forget(struct repair *r)
{
    for (uint32_t i = 0; r->part && i < r->manifest.partitions; i++) {
        free(r->part[i].lost);
        free(r->part[i].bad);
    }
    free(r->part);
    free(r->records);
    r->part = NULL;
    r->records = NULL;
    r->lost = 0;
}
