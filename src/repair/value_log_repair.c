/* Repair of value logs (layout=local). The header of a log that is known by its first block is written again; and of a
 * job that died, what its logs have behind the last committed epoch is truncated. Where that begins is known only if
 * all blocks before it are right: then none of a committed epoch follows. If not, the log stays as it is. */
#include <fcntl.h>
#include <inttypes.h>
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

/* Read the block at w->at. Returns its bytes; 0 for damage and for the file's end. */
static size_t walk_block(struct walk *w, uint32_t *epoch)
{
    const uint8_t *h;
    uint64_t left = w->size - w->at;

    if (left < BLOCK_HEADER_SIZE ||
        window_read(&w->window, &w->file, w->size, w->at, BLOCK_HEADER_SIZE, &h, error_ignored()) != DELTAFS_OK)
        return 0;
    size_t n = block_values_length(h);
    if (n == 0 || n > left || get_u32(h + 16) != w->writer || get_u64(h + 24) != w->at ||
        window_read(&w->window, &w->file, w->size, w->at, n, &h, error_ignored()) != DELTAFS_OK ||
        !log_is_sealed(w->seed, h, n))
        return 0;
    *epoch = get_u32(h + 20);
    return n;
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

static int repair_values_header(struct repair *r, struct walk *w, struct error *e)
{
    uint8_t h[LOG_HEADER_SIZE];
    uint32_t epoch;
    struct error damage;

    if (w->size < LOG_HEADER_SIZE || walk_block(w, &epoch) == 0 ||
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

/* Truncate the log where its first block of an epoch that does not count begins. */
static int repair_values_truncate(struct repair *r, struct walk *w, const struct manifest_job *job, struct error *e)
{
    uint64_t epochs = r->manifest.epoch_count + (r->is_kept != 0);
    uint32_t epoch = 0;
    size_t n;

    /* The next job may have written an epoch again that this one had begun. */
    while ((n = walk_block(w, &epoch)) > 0 && epoch < epochs && manifest_job_of(&r->manifest, epoch) == job)
        w->at += n;
    if (n == 0)
        return DELTAFS_OK;
    int status = r->options->dry_run ? DELTAFS_OK : io_file_truncate(&w->file, w->at, e);
    if (status == DELTAFS_OK && !r->options->dry_run)
        status = io_file_sync(&w->file, e);
    if (status == DELTAFS_OK)
        repair_report(r, "%s: data after the last committed epoch is truncated: %" PRIu64 " bytes at offset %" PRIu64,
                      w->file.path, w->size - w->at, w->at);
    return status;
}

/* The logs of all jobs that the manifest has are repaired, or those of the last are synced. */
int repair_values(struct repair *r, int is_sync, struct error *e)
{
    const struct manifest *m = &r->manifest;
    struct buffer writers = {0};
    uint32_t k = 0;
    size_t count = 0;

    /* Of epochs that have lost their lines nothing is truncated. */
    if (!is_sync && r->committed > m->epoch_count + (r->is_kept != 0) && !r->is_dropped)
        return DELTAFS_OK;
    int status = m->is_local ? values_list(&r->io, r->path, m->partitions, &writers, &count, e) : DELTAFS_OK;
    const uint32_t *writer = (const uint32_t *)(const void *)writers.bytes;

    for (size_t i = 0; i < count && status == DELTAFS_OK; i++) {
        struct walk w;
        while (k < m->job_count && writer[i] - m->job[k].first >= m->job[k].writers)
            k++;
        if (k == m->job_count)
            break;
        status = walk_open(&w, r, writer[i], e);
        if (status == DELTAFS_OK && !is_sync)
            status = repair_values_header(r, &w, e);
        if (status == DELTAFS_OK && is_sync && k + 1 == m->job_count)
            status = io_file_sync(&w.file, e);
        else if (status == DELTAFS_OK && !is_sync && !m->job[k].is_closed)
            status = repair_values_truncate(r, &w, &m->job[k], e);
        window_fini(&w.window);
        io_file_close(&w.file, error_ignored()); /* what was written has been synced */
        if (status == DELTAFS_OK)
            status = repair_renew(r, e);
    }
    buffer_fini(&writers);
    return status;
}
