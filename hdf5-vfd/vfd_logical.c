/* A logical file: what an HDF5 file is to this driver. HDF5's metadata and raw data go there as HDF5 hands them over.
 */
#include <fcntl.h>
#include <string.h>
#include "h5fd.h"

#define SUPERBLOCK_MAX 96 /* bytes, of version 0; later ones have fewer */

static int logical_move(struct vfd_file *f, int is_write, size_t n, const struct deltafs_extent *piece, void *bytes)
{
    size_t got;

    if (!is_write)
        return vfd_result(f->calls, VFD_CANNOT_READ, deltafs_logical_read_list(f->logical, n, piece, bytes, &got));
    f->is_changed = 1;
    if (n > 1 || piece->offset > 0 || piece->size > SUPERBLOCK_MAX)
        f->is_bare = 0;
    return vfd_result(f->calls, VFD_CANNOT_WRITE, deltafs_logical_write_list(f->logical, n, piece, bytes));
}

static int logical_size(struct vfd_file *f, uint64_t *out)
{
    return vfd_result(f->calls, VFD_CANNOT_READ, deltafs_logical_size(f->logical, out));
}

/* H5Fcreate flushes a file twice that has no more than a superblock. The program did not ask for that, and it would
 * take as long as writing some MiB. Before a flush that a program asks for, HDF5 truncates or has written something
 * else. */
static int logical_flush(struct vfd_file *f)
{
    return f->is_bare ? 0 : vfd_result(f->calls, VFD_CANNOT_FLUSH, deltafs_logical_sync(f->logical));
}

static int logical_truncate(struct vfd_file *f, uint64_t size)
{
    f->is_changed = 1;
    return vfd_result(f->calls, VFD_CANNOT_TRUNCATE, deltafs_logical_truncate(f->logical, size));
}

static int logical_close(struct vfd_file *f)
{
    deltafs_logical *logical = f->logical;

    f->logical = NULL;
    int status = deltafs_logical_close(logical);
    /* Only if it was changed: HDF5 opens a file for writing first and truncates it when it opens it again. */
    if (status == DELTAFS_OK && f->options && f->is_changed)
        status = deltafs_index_closed(f->path, f->options);
    return vfd_result(f->calls, VFD_CANNOT_CLOSE, status);
}

/* Its bytes are those of an ordinary HDF5 file, and `deltafs cp` makes one of it. */
const struct vfd_kind vfd_logical_kind = {
    .features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
                H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE,
    .move = logical_move,
    .size = logical_size,
    .flush = logical_flush,
    .truncate = logical_truncate,
    .close = logical_close,
};

int vfd_logical_options(struct vfd_file *f, const struct vfd_config *config)
{
    const char *key = "", *schema = "";
    int status = deltafs_folder_options(f->path, config->options);

    deltafs_options_get(config->options, "key", &key);
    deltafs_options_get(config->options, "schema", &schema);
    if (status == DELTAFS_OK && *key && !*schema && !strchr(key, '/'))
        return vfd_fail(
            f->calls, VFD_CANNOT_OPEN,
            "deltafs: %s: option key: '%s' is no path of datasets of IDs, such as /Step#*/id: it has no '/'", f->path,
            key);
    if (status == DELTAFS_OK && *key && !strchr(key, '/'))
        status = deltafs_options_set(config->options, "key", "");
    return vfd_result(f->calls, VFD_CANNOT_OPEN, status);
}

int vfd_logical_open(struct vfd_file *f, unsigned flags, const struct vfd_config *config)
{
    if (f->is_writable && vfd_logical_options(f, config) != 0)
        return -1;
    int status = deltafs_logical_open(f->path, vfd_open_flags(flags), config->options, &f->logical);
    if (vfd_result(f->calls, VFD_CANNOT_OPEN, status) != 0)
        return -1;
    f->kind = &vfd_logical_kind;
    f->is_changed = (flags & VFD_TRUNC) != 0;
    f->is_bare = (flags & (VFD_TRUNC | VFD_EXCL)) != 0;
    f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (vfd_identify(f, f->path, "") == 0)
        return 0;
    logical_close(f);
    return -1;
}
