#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "directory/read/lookup.h"
#include "directory/read/reader_open.h"
#include "directory/read/gather.h"

int reader_open(const char *path, uint32_t threads, uint64_t cache, struct reader **out, struct error *e)
{
    struct reader *r = calloc(1, sizeof *r);

    if (!r)
        return error_no_memory(e, sizeof *r, "a reader");
    r->io = io_default();
    r->cache = cache;
    r->part = r->own;
    r->part_count = READER_OPEN_PARTS;
    r->path = strdup(path);
    int status = r->path ? io_stay(&r->io, path, e) : error_no_memory(e, strlen(path), "a path");
    if (status == DELTAFS_OK)
        status = manifest_read(&r->io, path, &r->manifest, e);
    if (status == DELTAFS_OK)
        status = manifest_check_sources(&r->io, path, &r->manifest, e);
    if (status == DELTAFS_OK)
        status = team_create(threads, &r->team, e);
    if (status == DELTAFS_OK)
        status = leaf_cache_create(cache, &r->leaves, e);
    if (status == DELTAFS_OK)
        status = gather_create(&r->gather, e);
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
    reader_close_parts(r);
    if (r->part != r->own)
        free(r->part);
    team_destroy(r->team);
    lookup_scratch_destroy(r->scratch);
    leaf_cache_destroy(r->leaves);
    gather_destroy(r->gather);
    manifest_fini(&r->manifest);
    free(r->path);
    io_leave(&r->io);
    free(r);
}

/* Whether the manifest `now` goes on where `m` ended. */
static int reader_is_continued(const struct manifest *m, const struct manifest *now)
{
    uint64_t i = 0;

    /* Epochs may be covered by now. */
    while (i < m->epoch_count && i < now->epoch_count &&
           memcmp(&now->epoch[i], &m->epoch[i], offsetof(struct manifest_epoch, covers)) == 0)
        i++;
    return i == m->epoch_count;
}

int reader_refresh(struct reader *r, struct error *e)
{
    struct manifest now;
    struct leaf_cache *leaves = NULL;
    int status = manifest_read(&r->io, r->path, &now, e);

    if (status != DELTAFS_OK)
        return status;
    if (memcmp(now.uuid, r->manifest.uuid, sizeof now.uuid) != 0)
        status = reader_replaced(r, e);
    /* An epoch that was discarded after all, because its commit failed, may have left leaves that others replace. */
    if (status == DELTAFS_OK && !reader_is_continued(&r->manifest, &now))
        status = leaf_cache_create(r->cache, &leaves, e);
    if (status != DELTAFS_OK) {
        manifest_fini(&now);
        return status;
    }
    reader_close_parts(r);
    gather_forget(r->gather);
    if (leaves) {
        leaf_cache_destroy(r->leaves);
        r->leaves = leaves;
    }
    now.caller = r->manifest.caller;
    manifest_fini(&r->manifest);
    r->manifest = now;
    return DELTAFS_OK;
}
