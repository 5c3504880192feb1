/* Opening: what is at a path decides of which kind a file is.
 *
 * A path whose beginning is a directory of DeltaFS means a subfile of that: also where a folder of that name is in it,
 * as the buckets of its logs are. */
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

struct vfd_file *vfd_file_create(const struct vfd_calls *calls, const char *path, unsigned flags)
{
    struct vfd_file *f = calloc(1, sizeof *f);

    if (!f)
        return vfd_fail_null(calls, VFD_CANNOT_OPEN, "deltafs: %s: no memory", path);
    f->calls = calls;
    f->fd = -1;
    f->is_writable = (flags & VFD_RDWR) != 0;
    f->path = strdup(open_path(path));
    if (!f->path) {
        free(f);
        return vfd_fail_null(calls, VFD_CANNOT_OPEN, "deltafs: %s: no memory", path);
    }
    return f;
}

int vfd_open_flags(unsigned flags)
{
    return (flags & VFD_RDWR ? O_RDWR : O_RDONLY) | (flags & VFD_TRUNC ? O_TRUNC : 0) |
           (flags & VFD_CREATE ? O_CREAT : 0) | (flags & VFD_EXCL ? O_EXCL : 0);
}

char *vfd_absolute(const char *path)
{
    char here[PATH_MAX], *whole;

    if (path[0] == '/' || !getcwd(here, sizeof here))
        return strdup(path);
    return asprintf(&whole, "%s/%s", here, path) < 0 ? NULL : whole;
}

void vfd_file_free(struct vfd_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    vfd_keys_free(f->keys);
    free(f->image);
    free(f->path);
    free(f->identity);
    free(f);
}

int vfd_identify(struct vfd_file *f, const char *path, const char *key)
{
    struct stat s;
    size_t room = 64 + (key ? strlen(key) : 0);

    if ((f->fd >= 0 ? fstat(f->fd, &s) : stat(path, &s)) != 0)
        return vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: it is gone", path);
    f->identity = malloc(room);
    if (!f->identity)
        return vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: no memory", path);
    snprintf(f->identity, room, "%ju:%ju%s%s", (uintmax_t)s.st_dev, (uintmax_t)s.st_ino, key ? ":" : "",
             key ? key : "");
    return 0;
}

/* '\0': nothing there. */
static int open_kind(const struct vfd_calls *calls, const char *path, char *kind)
{
    int status = deltafs_kind(path, kind);

    if (status == DELTAFS_ERR_NOT_FOUND)
        *kind = '\0';
    else if (status != DELTAFS_OK)
        return vfd_fail(calls, VFD_CANNOT_OPEN, "deltafs: %s", deltafs_errmsg(NULL));
    return 0;
}

/* Whether there is a directory of DeltaFS: 1, 0, or -1 if there is one that is damaged. */
static int open_is_dir(const struct vfd_calls *calls, const char *path)
{
    char kind = '\0';
    int status = deltafs_kind(path, &kind);

    if (status == DELTAFS_ERR_DAMAGED || status == DELTAFS_ERR_VERSION)
        return vfd_fail(calls, VFD_CANNOT_OPEN, "deltafs: %s", deltafs_errmsg(NULL));
    return status == DELTAFS_OK && kind == 'd';
}

int vfd_find_key(const struct vfd_calls *calls, const char *path, char **container, const char **key)
{
    char *before = strdup(path), *slash;
    int rc = 0;

    *key = NULL;
    *container = NULL;
    if (!before)
        return vfd_fail(calls, VFD_CANNOT_OPEN, "deltafs: %s: no memory", path);
    /* A key of bytes may have slashes of its own, so that any beginning may be the directory. */
    while (rc == 0 && (slash = strrchr(before, '/')) && slash != before) {
        *slash = '\0';
        rc = path[slash - before + 1] ? open_is_dir(calls, before) : 0;
    }
    if (rc > 0) {
        *key = path + strlen(before) + 1;
        *container = before;
        return 0;
    }
    free(before);
    return rc;
}

static int open_known(struct vfd_file *f, char kind, unsigned flags, const struct vfd_config *config)
{
    struct stat s;

    if (kind == 'd')
        return vfd_image_open(f, f->path, NULL, config);
    if (kind == '-' && stat(f->path, &s) == 0 && !S_ISDIR(s.st_mode))
        return vfd_plain_open(f, flags);
    if (kind == '\0' && !(flags & VFD_CREATE))
        return vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: there is no such file", f->path);
    return vfd_logical_open(f, flags, config, NULL);
}

/* A folder mostly is a logical file: tried first, without looking around. Nothing is made thereby. */
static int open_at_once(struct vfd_file *f, unsigned flags, const struct vfd_config *config, int *is_one)
{
    const unsigned not_now = VFD_EXCL | VFD_SWMR_WRITE | VFD_SWMR_READ;
    struct stat s;

    *is_one = 0;
    if ((flags & not_now) || stat(f->path, &s) != 0 || !S_ISDIR(s.st_mode))
        return 0;
    return vfd_logical_open(f, flags & ~(unsigned)VFD_CREATE, config, is_one);
}

int vfd_open_kinds(struct vfd_file *f, unsigned flags, const struct vfd_config *config)
{
    char *container, kind;
    const char *key;
    int is_one;

    if (open_at_once(f, flags, config, &is_one) != 0 || is_one)
        return f->kind ? 0 : -1;
    if (vfd_find_key(f->calls, f->path, &container, &key) != 0)
        return -1;
    int rc = key ? vfd_image_open(f, container, key, config) : open_kind(f->calls, f->path, &kind);
    if (!key && rc == 0)
        rc = open_known(f, kind, flags, config);
    free(container);
    return rc;
}

struct vfd_file *vfd_file_open(const struct vfd_calls *calls, const char *path, unsigned flags,
                               const struct vfd_config *config)
{
    struct vfd_file *f = vfd_file_create(calls, path, flags);

    if (f && vfd_open_kinds(f, flags, config) == 0)
        return f;
    vfd_file_free(f);
    return NULL;
}

int vfd_delete(const struct vfd_calls *calls, const char *name)
{
    const char *path = open_path(name), *key;
    char *container, kind = '\0';

    if (vfd_find_key(calls, path, &container, &key) != 0)
        return -1;
    free(container);
    if (key || (deltafs_kind(path, &kind) == DELTAFS_OK && kind == 'd'))
        return vfd_fail(calls, VFD_CANNOT_DELETE,
                        "deltafs: %s: a directory of DeltaFS and what is in it is not removed through HDF5", path);
    if (kind == 'f')
        return deltafs_logical_remove(path) == DELTAFS_OK
                   ? 0
                   : vfd_fail(calls, VFD_CANNOT_DELETE, "deltafs: %s", deltafs_logical_errmsg(NULL));
    if (unlink(path) != 0)
        return vfd_fail(calls, VFD_CANNOT_DELETE, "deltafs: %s: cannot be removed: %m", path);
    return 0;
}
