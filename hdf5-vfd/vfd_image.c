/* Particles, read as HDF5: the file is made in memory when it is opened (h5_particles.h), and is what it was then until
 * it is closed. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "h5_particles.h"
#include "h5fd.h"

static int image_move(struct vfd_file *f, int is_write, size_t n, const struct deltafs_extent *piece, void *bytes)
{
    uint8_t *to = bytes;

    if (is_write)
        return vfd_fail(f->calls, VFD_CANNOT_WRITE, "deltafs: %s: a directory of DeltaFS is only read through HDF5",
                        f->path);
    for (size_t i = 0; i < n; i++) {
        size_t size = (size_t)piece[i].size, at = (size_t)piece[i].offset;
        size_t left = at < f->image_size ? f->image_size - at : 0, got = size < left ? size : left;
        if (got > 0)
            memcpy(to, f->image + at, got);
        memset(to + got, 0, size - got);
        to += size;
    }
    return 0;
}

static int image_size(struct vfd_file *f, uint64_t *out)
{
    *out = f->image_size;
    return 0;
}

const struct vfd_kind vfd_image_kind = {
    .features = H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_SUPPORTS_SWMR_IO | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE,
    .move = image_move,
    .size = image_size,
};

/* As `deltafs get` takes it: decimal, or hexadecimal after 0x. */
static int image_number(const char *text, uint64_t *out)
{
    int is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    char *end;

    if (!isxdigit((unsigned char)text[is_hex ? 2 : 0]))
        return -1;
    errno = 0;
    *out = strtoull(text, &end, is_hex ? 16 : 10);
    return *end || errno ? -1 : 0;
}

static int image_ask(struct vfd_file *f, deltafs_dir *dir, const char *container, const char *key,
                     deltafs_records **records)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    uint64_t number;
    int status = deltafs_stat(dir, &stat);

    if (status == DELTAFS_OK && strcmp(stat.keys, "bytes") == 0)
        status = deltafs_get_bytes(dir, key, strlen(key), NULL, records);
    else if (status == DELTAFS_OK && image_number(key, &number) != 0)
        return vfd_fail(
            f->calls, VFD_CANNOT_OPEN,
            "deltafs: no such subfile: '%s' in %s, whose keys are numbers (decimal, or hexadecimal after 0x, "
            "below 2^64)",
            key, container);
    else if (status == DELTAFS_OK)
        status = deltafs_get(dir, number, NULL, records);
    if (status == DELTAFS_ERR_NOT_FOUND)
        return vfd_fail(f->calls, VFD_CANNOT_OPEN,
                        "deltafs: no such subfile: '%s' in %s (an epoch is a group of the file %s: h5dump -g /LABEL)",
                        key, container, container);
    if (status != DELTAFS_OK)
        return vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s", deltafs_errmsg(dir));
    return 0;
}

static int image_make(struct vfd_file *f, deltafs_dir *dir, const char *container, const char *key,
                      const struct vfd_config *config)
{
    struct h5_bytes image = {0};
    deltafs_records *records = NULL;
    int rc = key ? image_ask(f, dir, container, key, &records) : 0;

    if (rc == 0) {
        int status = key ? h5_trajectory(dir, container, records, &image)
                         : h5_description(dir, container, config->records, &image);
        if (status != DELTAFS_OK)
            rc = vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s", deltafs_errmsg(dir));
        else if (image.is_lacking)
            rc = vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: no memory for it as an HDF5 file", f->path);
    }
    deltafs_records_destroy(records);
    f->image = image.bytes;
    f->image_size = image.used;
    return rc;
}

/* An index of files' keys is a directory, too, but its records are no particles, but where those are. */
static int image_check_index(struct vfd_file *f, const char *container)
{
    deltafs_fileindex *keys;
    int status = deltafs_fileindex_open(container, NULL, &keys);

    if (status == DELTAFS_ERR_NOT_FOUND || status == DELTAFS_ERR_NOT_DELTAFS)
        return 0;
    if (vfd_result(f->calls, VFD_CANNOT_OPEN, status) != 0)
        return -1;
    deltafs_fileindex_close(keys);
    return vfd_fail(f->calls, VFD_CANNOT_OPEN,
                    "deltafs: %s: is an index of the keys in files, not of particles themselves: 'deltafs get' prints "
                    "the rows that it leads to",
                    container);
}

int vfd_image_open(struct vfd_file *f, const struct vfd_here *here, const struct vfd_config *config)
{
    const char *key = here->key, *container = key ? here->container : f->path;
    deltafs_dir *dir;

    if (f->is_writable)
        return vfd_fail(f->calls, VFD_CANNOT_OPEN,
                        "deltafs: %s: a directory of DeltaFS is only read through HDF5: open it for reading", f->path);
    if (image_check_index(f, container) != 0)
        return -1;
    if (vfd_result(f->calls, VFD_CANNOT_OPEN, deltafs_open(container, config->options, &dir)) != 0)
        return -1;
    int rc = image_make(f, dir, container, key, config);
    deltafs_close(dir); /* nothing was written */
    f->kind = &vfd_image_kind;
    return rc == 0 ? vfd_identify(f, container, key ? key : "") : rc;
}
