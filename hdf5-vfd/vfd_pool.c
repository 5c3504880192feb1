/* A file of a pool that runs. The driver is the pool's client itself, so this needs no `deltafs run`. All processes see
 * at once what was written. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <deltafs/deltafs_namespace.h>
#include "h5fd.h"

/* The library names files of a pool by their paths in it. */
static int pool_result(const struct vfd_calls *calls, const char *path, enum vfd_fault fault, int status)
{
    if (status == DELTAFS_OK)
        return 0;
    return vfd_fail(calls, fault, "deltafs: %s: in its pool: %s (errno = %d)", path, deltafs_errmsg(NULL),
                    deltafs_namespace_errno(status));
}

static int pool_move(struct vfd_file *f, int is_write, size_t n, const struct deltafs_extent *piece, void *bytes)
{
    uint8_t *place = bytes;
    int status = DELTAFS_OK;

    if (is_write)
        return pool_result(f->calls, f->path, VFD_CANNOT_WRITE,
                           deltafs_pool_file_write_list(f->pooled, n, piece, bytes));
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        size_t size = (size_t)piece[i].size, got = 0;
        status = deltafs_pool_file_read(f->pooled, piece[i].offset, place, size, &got);
        memset(place + got, 0, size - got);
        place += size;
    }
    return pool_result(f->calls, f->path, VFD_CANNOT_READ, status);
}

static int pool_size(struct vfd_file *f, uint64_t *out)
{
    struct deltafs_pool_stat s = {.struct_size = sizeof s};
    int status = deltafs_pool_file_stat(f->pooled, &s);

    *out = s.size;
    return pool_result(f->calls, f->path, VFD_CANNOT_READ, status);
}

static int pool_truncate(struct vfd_file *f, uint64_t size)
{
    return pool_result(f->calls, f->path, VFD_CANNOT_TRUNCATE, deltafs_pool_file_truncate(f->pooled, size));
}

static const struct vfd_kind pool_kind = {
    .features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
                H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE,
    .move = pool_move,
    .size = pool_size,
    .truncate = pool_truncate,
};

int vfd_pool_open(struct vfd_file *f, unsigned flags)
{
    struct deltafs_pool_stat s = {.struct_size = sizeof s};
    char inside[DELTAFS_POOL_PATH_ROOM];
    mode_t mask = umask(022);

    umask(mask);
    f->kind = &pool_kind;
    int status = deltafs_pool_open_path(f->path, &f->pool, inside);
    if (status == DELTAFS_OK)
        status = deltafs_pool_file_open(f->pool, inside, vfd_open_flags(flags), 0666 & ~mask, &f->pooled);
    if (status == DELTAFS_OK)
        status = deltafs_pool_file_stat(f->pooled, &s);
    if (pool_result(f->calls, f->path, VFD_CANNOT_OPEN, status) != 0)
        return -1;
    /* All that is open in one pool has one handle of it. */
    if (asprintf(&f->identity, "%p:%ju", (void *)f->pool, (uintmax_t)s.inode) >= 0)
        return 0;
    f->identity = NULL;
    return vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: no memory", f->path);
}

int vfd_pool_delete(const struct vfd_calls *calls, const char *path)
{
    char inside[DELTAFS_POOL_PATH_ROOM];
    deltafs_pool *pool = NULL;
    int status = deltafs_pool_open_path(path, &pool, inside);

    if (status == DELTAFS_OK)
        status = deltafs_pool_unlink(pool, inside);
    int rc = pool_result(calls, path, VFD_CANNOT_DELETE, status);
    deltafs_pool_close(pool);
    return rc;
}
