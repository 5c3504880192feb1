/* Repair of value logs (layout=local). The headers of those that are known by their first block are written again; and
 * of a job that was cut short, what its logs have behind the last committed epoch is cut off. Where that begins is
 * known only if all blocks of the job's committed epochs are seen to be there, by the number of their records: then
 * nothing else that stands there can be one of them. If not, everything stays as it is, and is damage to whoever reads
 * it. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include "base/coding.h"
#include "directory/format/directory_format.h"
#include "repair/repair_state.h"
#include "directory/format/value_log.h"

#define WALK_AHEAD ((size_t)256 << 10) /* bytes read at a time */

/* The blocks of a log, one after the other. */
struct walk {
    struct io_file file;
    struct window window;
    uint32_t seed, writer;
    uint64_t size, at;
};

/* A block that is right: where it ends, its epoch and records. */
struct walked {
    uint64_t end;
    uint32_t epoch, records;
};

/* Read the block at w->at. Returns whether there is one; damage and the file's end are the same here. */
static int walk_block(struct walk *w, struct walked *out)
{
    const uint8_t *h;
    struct error ignored;
    uint64_t left = w->size - w->at;

    if (left < BLOCK_HEADER_SIZE ||
        window_read(&w->window, &w->file, w->size, w->at, BLOCK_HEADER_SIZE, &h, &ignored) != DELTAFS_OK)
        return 0;
    size_t n = block_values_length(h);
    if (n == 0 || n > left || get_u32(h + 16) != w->writer || get_u64(h + 24) != w->at ||
        window_read(&w->window, &w->file, w->size, w->at, n, &h, &ignored) != DELTAFS_OK ||
        !log_is_sealed(w->seed, h, n))
        return 0;
    *out = (struct walked){w->at + n, get_u32(h + 20), get_u16(h + 6)};
    return 1;
}

static int walk_open(struct walk *w, struct repair *r, uint32_t writer, struct error *e)
{
    char path[PATH_ROOM];

    *w = (struct walk){.file.fd = -1,
                       .window.ahead = WALK_AHEAD,
                       .seed = log_seed(r->manifest.uuid),
                       .writer = writer,
                       .at = LOG_HEADER_SIZE};
    values_path(path, r->path, r->manifest.partitions, writer);
    int status = io_file_open(&r->io, path, r->options->dry_run ? O_RDONLY : O_RDWR, &w->file, e);
    return status == DELTAFS_OK ? io_file_size(&w->file, &w->size, e) : status;
}

static void walk_close(struct walk *w)
{
    struct error ignored; /* what was written has been synced */

    window_fini(&w->window);
    io_file_close(&w->file, &ignored);
}

static int repair_values_header(struct repair *r, struct walk *w, struct error *e)
{
    uint8_t h[LOG_HEADER_SIZE];
    struct walked first;
    struct error damage;

    if (w->size < LOG_HEADER_SIZE || !walk_block(w, &first) ||
        log_check_header(&w->file, LOG_KIND_VALUES, w->writer, r->manifest.uuid, &damage) != DELTAFS_ERR_DAMAGED)
        return DELTAFS_OK;
    log_put_header(h, LOG_KIND_VALUES, w->writer, r->manifest.uuid);
    int status = r->options->dry_run ? DELTAFS_OK : io_file_write(&w->file, 0, h, sizeof h, e);
    if (status == DELTAFS_OK && !r->options->dry_run)
        status = io_file_sync(&w->file, e);
    if (status == DELTAFS_OK)
        repair_report(r, "%s; it is written again, from what the manifest says", damage.text);
    return status;
}

/* Epochs that count once the repair is done. */
static uint64_t repair_values_epochs(const struct repair *r)
{
    return r->manifest.epoch_count + (r->is_kept != 0);
}

/* Add up the records of each epoch of a job in one of its logs; returns where the last block of one that counts ends.
 * The job may have begun an epoch that the next one wrote anew. */
static uint64_t repair_values_count(struct repair *r, const struct manifest_job *job, struct walk *w, uint64_t *records)
{
    uint64_t end = LOG_HEADER_SIZE, epochs = repair_values_epochs(r);
    struct walked block;

    while (w->at < w->size) {
        if (!walk_block(w, &block)) {
            w->at += VALUES_ALIGN;
            continue;
        }
        if (block.epoch < epochs && manifest_job_of(&r->manifest, block.epoch) == job) {
            records[block.epoch] += block.records;
            end = block.end;
        }
        w->at = block.end;
    }
    return end;
}

/* The first epoch of a job that has other records than were counted in its logs; NO_EPOCH if there is none. */
static uint64_t repair_values_short(const struct repair *r, const struct manifest_job *job, const uint64_t *records)
{
    const struct manifest *m = &r->manifest;

    for (uint64_t i = job->epochs; i < repair_values_epochs(r) && manifest_job_of(m, i) == job; i++)
        if (records[i] != (i < m->epoch_count ? m->epoch[i].records : r->last.records))
            return i;
    return NO_EPOCH;
}

/* Nothing but a copy helps; and nothing is cut off. */
static void repair_values_remark(const struct repair *r, uint64_t epoch, uint64_t records)
{
    const struct manifest *m = &r->manifest;
    struct error e;

    if (epoch >= m->epoch_count || !r->fn)
        return;
    error_set(&e, DELTAFS_ERR_DAMAGED,
              "%s: of the epoch labelled %" PRIu64 " the value logs have %" PRIu64 " records of %" PRIu64
              ", and the data after them stays; if you have no copy, discard this and the later epochs by --drop-from "
              "%" PRIu64,
              r->path, m->epoch[epoch].label, records, m->epoch[epoch].records, m->epoch[epoch].label);
    r->fn(DELTAFS_REPAIR_REMARK, e.text, r->arg);
}

static int repair_values_cut(struct repair *r, uint32_t writer, uint64_t end, struct error *e)
{
    struct walk w;
    int status = walk_open(&w, r, writer, e);
    uint64_t n = w.size > end ? w.size - end : 0;

    if (status == DELTAFS_OK && n > 0 && !r->options->dry_run)
        status = io_file_truncate(&w.file, end, e);
    if (status == DELTAFS_OK && n > 0 && !r->options->dry_run)
        status = io_file_sync(&w.file, e);
    if (status == DELTAFS_OK && n > 0)
        repair_report(r, "%s: data after the last committed epoch is truncated: %" PRIu64 " byte%s at offset %" PRIu64,
                      w.file.path, n, repair_plural(n), end);
    walk_close(&w);
    return status;
}

/* What is known of all value logs. */
struct look {
    uint32_t *writer;
    uint64_t *end; /* of each: where what is committed ends */
    size_t count;
    uint64_t *records; /* of each epoch */
    struct buffer writers;
};

static void look_fini(struct look *l)
{
    buffer_fini(&l->writers);
    free(l->end);
    free(l->records);
}

static int look_init(struct look *l, struct repair *r, struct error *e)
{
    const struct manifest *m = &r->manifest;

    *l = (struct look){0};
    int status = values_list(&r->io, r->path, m->partitions, &l->writers, &l->count, e);
    l->writer = (uint32_t *)(void *)l->writers.bytes;
    while (l->count > 0 && l->writer[l->count - 1] >= manifest_writers(m))
        l->count--; /* of jobs that are not told of any more */
    l->records = calloc(repair_values_epochs(r) + 1, sizeof *l->records);
    l->end = calloc(l->count + 1, sizeof *l->end);
    return status == DELTAFS_OK && (!l->records || !l->end)
               ? error_no_memory(e, (l->count + repair_values_epochs(r)) * sizeof *l->end, "the writers")
               : status;
}

/* Which logs are those of a job: from *first on, up to the one that is returned. */
static size_t look_logs(const struct look *l, const struct manifest_job *job, size_t *first)
{
    size_t end;

    while (*first < l->count && l->writer[*first] < job->first)
        ++*first;
    for (end = *first; end < l->count && l->writer[end] - job->first < job->writers;)
        end++;
    return end;
}

/* Look at a job's logs, `first` to `end` - 1. */
static int repair_values_look(struct repair *r, struct look *l, const struct manifest_job *job, size_t first,
                              size_t end, int may_write, int must_count, struct error *e)
{
    int status = DELTAFS_OK;

    for (; first < end && status == DELTAFS_OK; first++) {
        struct walk w;
        status = walk_open(&w, r, l->writer[first], e);
        if (status == DELTAFS_OK && may_write)
            status = repair_values_header(r, &w, e);
        if (status == DELTAFS_OK && must_count)
            l->end[first] = repair_values_count(r, job, &w, l->records);
        walk_close(&w);
        if (status == DELTAFS_OK)
            status = repair_renew(r, e);
    }
    return status;
}

static int repair_values_job(struct repair *r, struct look *l, const struct manifest_job *job, size_t first, size_t end,
                             struct error *e)
{
    int status = repair_values_look(r, l, job, first, end, 1, !job->is_closed, e);

    if (status != DELTAFS_OK || job->is_closed)
        return status;
    uint64_t lacks = repair_values_short(r, job, l->records);
    if (lacks != NO_EPOCH) {
        repair_values_remark(r, lacks, l->records[lacks]);
        return DELTAFS_OK;
    }
    for (; first < end && status == DELTAFS_OK; first++)
        status = repair_values_cut(r, l->writer[first], l->end[first], e);
    return status;
}

static int repair_values_seek(struct repair *r, struct look *l, const struct manifest_job *job, size_t first,
                              size_t end, struct error *e)
{
    int status = repair_values_look(r, l, job, first, end, 0, 1, e);
    uint64_t lacks = status == DELTAFS_OK ? repair_values_short(r, job, l->records) : NO_EPOCH;

    if (lacks < r->short_values)
        r->short_values = lacks;
    return status;
}

/* Do it for each job. */
static int repair_values_each(struct repair *r,
                              int (*job_do)(struct repair *, struct look *, const struct manifest_job *, size_t, size_t,
                                            struct error *),
                              struct error *e)
{
    const struct manifest *m = &r->manifest;
    struct look l;
    size_t first = 0;

    if (!m->is_local)
        return DELTAFS_OK;
    int status = look_init(&l, r, e);
    for (uint32_t i = 0; i < m->job_count && status == DELTAFS_OK; i++) {
        size_t end = look_logs(&l, &m->job[i], &first);
        status = job_do(r, &l, &m->job[i], first, end, e);
        first = end;
    }
    look_fini(&l);
    return status;
}

int repair_values(struct repair *r, struct error *e)
{
    /* Of epochs that have lost their lines nothing is cut off. */
    if (r->committed > repair_values_epochs(r) && !r->is_dropped)
        return DELTAFS_OK;
    return repair_values_each(r, repair_values_job, e);
}

int repair_find_short_values(struct repair *r, struct error *e)
{
    return repair_values_each(r, repair_values_seek, e);
}

/* Of the job that wrote the epoch behind the last committed one. */
int repair_sync_values(struct repair *r, struct error *e)
{
    const struct manifest *m = &r->manifest;
    struct look l;
    size_t first = 0;

    if (!m->is_local)
        return DELTAFS_OK;
    int status = look_init(&l, r, e);
    size_t end = look_logs(&l, manifest_job_of(m, m->epoch_count), &first);
    for (; first < end && status == DELTAFS_OK; first++) {
        struct walk w;
        status = walk_open(&w, r, l.writer[first], e);
        if (status == DELTAFS_OK)
            status = io_file_sync(&w.file, e);
        walk_close(&w);
    }
    look_fini(&l);
    return status;
}
