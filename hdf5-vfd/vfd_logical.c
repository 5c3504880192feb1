/* A logical file: what an HDF5 file is to this driver. HDF5's metadata and raw data go there as HDF5 hands them over.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "h5fd.h"

#define SUPERBLOCK_MAX 96 /* bytes, of version 0; later ones have fewer */

static int logical_fail(struct vfd_file *f, enum vfd_fault fault)
{
    return vfd_fail(f->calls, fault, "deltafs: %s", deltafs_errmsg(NULL));
}

/* With the number of an error of the system that says the same, by which h5py chooses its exceptions. */
static int logical_fail_as(struct vfd_file *f, enum vfd_fault fault, int status)
{
    static const struct {
        int status, number;
    } known[] = {{DELTAFS_ERR_NOT_FOUND, ENOENT},
                 {DELTAFS_ERR_EXISTS, EEXIST},
                 {DELTAFS_ERR_NOT_DELTAFS, EISDIR},
                 {DELTAFS_ERR_NO_SPACE, ENOSPC}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].status == status)
            return vfd_fail(f->calls, fault, "deltafs: %s (errno = %d)", deltafs_errmsg(NULL), known[i].number);
    return logical_fail(f, fault);
}

static int logical_read(struct vfd_file *f, size_t n, const struct deltafs_extent *piece, void *bytes)
{
    size_t got;

    return deltafs_logical_read_list(f->logical, n, piece, bytes, &got) == DELTAFS_OK
               ? 0
               : logical_fail(f, VFD_CANNOT_READ);
}

static int logical_write(struct vfd_file *f, size_t n, const struct deltafs_extent *piece, const void *bytes)
{
    int status = deltafs_logical_write_list(f->logical, n, piece, bytes);

    f->is_changed = 1;
    if (n > 1 || piece->offset > 0 || piece->size > SUPERBLOCK_MAX)
        f->is_bare = 0;
    return status == DELTAFS_OK ? 0 : logical_fail_as(f, VFD_CANNOT_WRITE, status);
}

static int logical_size(struct vfd_file *f, uint64_t *out)
{
    return deltafs_logical_size(f->logical, out) == DELTAFS_OK ? 0 : logical_fail(f, VFD_CANNOT_READ);
}

/* H5Fcreate flushes a file twice that has no more than a superblock. The program did not ask for that, and it would
 * take as long as writing some MiB. Before a flush that a program asks for, HDF5 truncates or has written something
 * else. */
static int logical_flush(struct vfd_file *f)
{
    return f->is_bare || deltafs_logical_sync(f->logical) == DELTAFS_OK ? 0 : logical_fail(f, VFD_CANNOT_FLUSH);
}

static int logical_truncate(struct vfd_file *f, uint64_t size)
{
    f->is_changed = 1;
    return deltafs_logical_truncate(f->logical, size) == DELTAFS_OK ? 0 : logical_fail(f, VFD_CANNOT_TRUNCATE);
}

static int logical_close(struct vfd_file *f)
{
    deltafs_logical *logical = f->logical;

    f->logical = NULL;
    int status = deltafs_logical_close(logical);
    /* Only if it was changed: HDF5 opens a file for writing first and truncates it when it opens it again. */
    if (status == DELTAFS_OK && f->index_path && f->options && f->is_changed)
        status = deltafs_index_closed(f->index_path, f->options);
    return status == DELTAFS_OK ? 0 : logical_fail(f, VFD_CANNOT_CLOSE);
}

/* Its bytes are those of an ordinary HDF5 file, and `deltafs cp` makes one of it. */
const struct vfd_kind vfd_logical_kind = {
    .features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
                H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE,
    .read = logical_read,
    .write = logical_write,
    .size = logical_size,
    .flush = logical_flush,
    .truncate = logical_truncate,
    .close = logical_close,
};

int vfd_logical_options(struct vfd_file *f, const char *path, const struct vfd_config *config)
{
    const char *key = "", *schema = "";
    int status = deltafs_folder_options(path, config->options);

    deltafs_options_get(config->options, "key", &key);
    deltafs_options_get(config->options, "schema", &schema);
    if (status == DELTAFS_OK && *key && !*schema && !strchr(key, '/'))
        return vfd_fail(
            f->calls, VFD_CANNOT_OPEN,
            "deltafs: %s: option key: '%s' is no path of datasets of IDs, such as /Step#*/id: it has no '/'", path,
            key);
    if (status == DELTAFS_OK && *key && !strchr(key, '/'))
        status = deltafs_options_set(config->options, "key", "");
    return status == DELTAFS_OK ? 0 : logical_fail(f, VFD_CANNOT_OPEN);
}

int vfd_logical_open(struct vfd_file *f, unsigned flags, const struct vfd_config *config)
{
    if (flags & (VFD_SWMR_WRITE | VFD_SWMR_READ))
        return vfd_fail(
            f->calls, VFD_UNSUPPORTED,
            "deltafs: %s: single writer, multiple readers (SWMR) is not for a logical file: a reader sees what "
            "was flushed before it opened the file",
            f->path);
    char *path = vfd_absolute(f->path);
    if (!path)
        return vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: no memory", f->path);
    if (f->is_writable && vfd_logical_options(f, path, config) != 0) {
        free(path);
        return -1;
    }
    int status = deltafs_logical_open(path, vfd_open_flags(flags), config->options, &f->logical);
    if (status != DELTAFS_OK) {
        free(path);
        return logical_fail_as(f, VFD_CANNOT_OPEN, status);
    }
    f->kind = &vfd_logical_kind;
    f->index_path = path;
    f->is_changed = (flags & VFD_TRUNC) != 0;
    f->is_bare = (flags & (VFD_TRUNC | VFD_EXCL)) != 0;
    f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (vfd_identify(f, f->path, NULL) == 0)
        return 0;
    logical_close(f);
    return -1;
}
