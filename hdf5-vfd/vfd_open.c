/* Opening: what is at a path decides the kind of the file.
 *
 * A path that begins with a directory of DeltaFS means a subfile of it, even if a folder of that name is in the
 * directory, such as the buckets of its logs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "h5fd.h"

#define PREFIX "deltafs:" /* of names in MPI-IO; it means nothing here */

static const char *open_path(const char *name)
{
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0 ? name + strlen(PREFIX) : name;
}

/* NULL without memory. */
static char *open_absolute(const char *path)
{
    char here[PATH_MAX], *whole;

    if (path[0] == '/' || !getcwd(here, sizeof here))
        return strdup(path);
    return asprintf(&whole, "%s/%s", here, path) < 0 ? NULL : whole;
}

struct vfd_file *vfd_file_create(const struct vfd_calls *calls, const char *path, unsigned flags)
{
    struct vfd_file *f = calloc(1, sizeof *f);

    if (f && (f->path = open_absolute(open_path(path)))) {
        f->calls = calls;
        f->fd = -1;
        f->is_writable = (flags & VFD_RDWR) != 0;
        return f;
    }
    free(f);
    vfd_fail(calls, VFD_CANNOT_OPEN, "deltafs: %s: no memory", path);
    return NULL;
}

int vfd_open_flags(unsigned flags)
{
    return (flags & VFD_RDWR ? O_RDWR : O_RDONLY) | (flags & VFD_TRUNC ? O_TRUNC : 0) |
           (flags & VFD_CREATE ? O_CREAT : 0) | (flags & VFD_EXCL ? O_EXCL : 0);
}

void vfd_file_free(struct vfd_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    deltafs_pool_file_close(f->pooled);
    deltafs_pool_close(f->pool);
    deltafs_options_destroy(f->options);
    free(f->image);
    free(f->path);
    free(f->identity);
    free(f);
}

int vfd_identify(struct vfd_file *f, const char *path, const char *key)
{
    struct stat s;

    if ((f->fd >= 0 ? fstat(f->fd, &s) : stat(path, &s)) != 0)
        return vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: it is gone", path);
    if (asprintf(&f->identity, "%ju:%ju:%s", (uintmax_t)s.st_dev, (uintmax_t)s.st_ino, key) >= 0)
        return 0;
    f->identity = NULL;
    return vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: no memory", path);
}

/* The subfile's name in `path`, if the part before it is a directory of DeltaFS; otherwise here->key is NULL. */
static int open_find_key(const struct vfd_calls *calls, const char *path, struct vfd_here *here)
{
    char *before = here->container = strdup(path), *slash, kind = '\0';

    if (!before)
        return vfd_fail(calls, VFD_CANNOT_OPEN, "deltafs: %s: no memory", path);
    /* A key of bytes may have slashes of its own, so that any beginning may be the directory. */
    while (!here->key && (slash = strrchr(before, '/')) && slash != before) {
        *slash = '\0';
        int status = path[slash - before + 1] ? deltafs_kind(before, &kind) : DELTAFS_ERR_NOT_FOUND;
        if (status == DELTAFS_ERR_DAMAGED || status == DELTAFS_ERR_VERSION)
            return vfd_result(calls, VFD_CANNOT_OPEN, status);
        if (status == DELTAFS_OK && kind == 'd')
            here->key = path + strlen(before) + 1;
    }
    return 0;
}

void vfd_here_fini(struct vfd_here *here)
{
    deltafs_pool_close(here->pool);
    free(here->container);
}

/* What is at `path`. */
static int open_look(const struct vfd_calls *calls, const char *path, struct vfd_here *here)
{
    char inside[DELTAFS_POOL_PATH_ROOM], kind = '\0';
    struct stat s;

    *here = (struct vfd_here){.what = VFD_NOTHING};
    int status = deltafs_pool_open_path(path, &here->pool, inside);
    if (status != DELTAFS_ERR_NOT_FOUND) {
        here->what = VFD_POOL;
        return status == DELTAFS_OK ? 0
                                    : vfd_fail(calls, VFD_CANNOT_OPEN, "deltafs: %s: %s", path, deltafs_errmsg(NULL));
    }
    status = deltafs_kind(path, &kind);
    if (status == DELTAFS_OK && kind != '-') {
        here->what = kind == 'd' ? VFD_PARTICLES : VFD_LOGICAL;
        return 0;
    }
    if (open_find_key(calls, path, here) != 0)
        return -1;
    if (here->key)
        here->what = VFD_PARTICLES;
    else if (status == DELTAFS_OK)
        here->what = stat(path, &s) == 0 && !S_ISDIR(s.st_mode) ? VFD_PLAIN : VFD_FOLDER;
    else if (status != DELTAFS_ERR_NOT_FOUND)
        return vfd_result(calls, VFD_CANNOT_OPEN, status);
    return 0;
}

int vfd_look_to_open(const struct vfd_file *f, unsigned flags, struct vfd_here *here)
{
    if (open_look(f->calls, f->path, here) != 0)
        return -1;
    if (here->what == VFD_NOTHING && !(flags & VFD_CREATE))
        return vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: there is no such file (errno = %d)", f->path, ENOENT);
    /* What is there does not hinder a logical file, or the library says how. */
    if (here->what == VFD_NOTHING || here->what == VFD_FOLDER)
        here->what = VFD_LOGICAL;
    if (here->what == VFD_LOGICAL && flags & (VFD_SWMR_WRITE | VFD_SWMR_READ))
        return vfd_fail(
            f->calls, VFD_UNSUPPORTED,
            "deltafs: %s: single writer, multiple readers (SWMR) is not for a logical file: a reader sees what "
            "was flushed before it opened the file",
            f->path);
    return 0;
}

int vfd_file_open(struct vfd_file *f, unsigned flags, const struct vfd_config *config)
{
    struct vfd_here here;
    int rc = vfd_look_to_open(f, flags, &here);

    if (rc == 0 && here.what == VFD_PARTICLES)
        rc = vfd_image_open(f, &here, config);
    else if (rc == 0 && here.what == VFD_PLAIN)
        rc = vfd_plain_open(f, flags);
    else if (rc == 0 && here.what == VFD_POOL)
        rc = vfd_pool_open(f, flags);
    else if (rc == 0)
        rc = vfd_logical_open(f, flags, config);
    vfd_here_fini(&here);
    return rc;
}

int vfd_delete(const struct vfd_calls *calls, const char *name)
{
    const char *path = open_path(name);
    struct vfd_here here;
    int rc = open_look(calls, path, &here);

    if (rc == 0 && here.what == VFD_PARTICLES)
        rc = vfd_fail(calls, VFD_CANNOT_DELETE,
                      "deltafs: %s: a directory of DeltaFS and what is in it is not removed through HDF5", path);
    else if (rc == 0 && here.what == VFD_LOGICAL)
        rc = vfd_result(calls, VFD_CANNOT_DELETE, deltafs_logical_remove(path));
    else if (rc == 0 && here.what == VFD_POOL)
        rc = vfd_pool_delete(calls, path);
    else if (rc == 0 && unlink(path) != 0)
        rc = vfd_fail(calls, VFD_CANNOT_DELETE, "deltafs: %s: cannot be removed: %m", path);
    vfd_here_fini(&here);
    return rc;
}
