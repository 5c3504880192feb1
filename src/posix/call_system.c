/* What a file system tells of itself, and what mounts refuse: special files, sockets, watches, and handles. */
#include <errno.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include "posix/begin.h"
#include "posix/follow.h"
#include "posix/next.h"
#include "posix/pooled.h"
#include "posix/posix_tree.h"
#include "posix/route.h"
#include "posix/undeclared.h"

/* ---- File systems ---- */

/* The folder that has the bytes of a mount: of a snapshot REGISTRY@NAME, the registry. */
static void storage_of(const struct mount *m, char out[static PATH_MAX])
{
    const char *name = strrchr(m->target, '/'), *at = strchr(name ? name : m->target, '@');
    size_t n = at ? (size_t)(at - m->target) : strlen(m->target);

    n = n < PATH_MAX ? n : PATH_MAX - 1;
    memcpy(out, m->target, n);
    out[n] = '\0';
}

/* The space is that of the storage. The kind is that of file systems of user space, which programs such as tail and
 * find know: they expect no notices of changes, and no links to be counted there. */
static void fill_statfs(const struct mount *m, struct statfs *out)
{
    char storage[PATH_MAX];

    storage_of(m, storage);
    if (m->kind == MOUNT_POOL)
        pooled_statfs(m, out);
    else if (next.statfs(storage, out) != 0)
        *out = (struct statfs){.f_bsize = 4096, .f_frsize = 4096};
    out->f_type = FUSE_SUPER_MAGIC;
    out->f_namelen = NAME_MAX;
    out->f_flags = m->kind == MOUNT_NAMESPACE && tree_is_snapshot(m->tree) ? ST_RDONLY : 0;
    memset(&out->f_fsid, 0, sizeof out->f_fsid);
    memcpy(&out->f_fsid, &(int){(int)(m - mounts.mount) + 1}, sizeof(int));
}

/* The mount that a path leads to; NULL: none, or *error is that of its attributes. */
static const struct mount *mount_at(const char *path, struct route *r, int *error)
{
    posix_begin();
    *error = follow_find(r, AT_FDCWD, path);
    *error = r->mount ? *error : 0; /* the kernel says it */
    return *error == 0 ? r->mount : NULL;
}

CALL int statfs(const char *path, struct statfs *out)
{
    struct route r;
    int error;
    const struct mount *m = mount_at(path, &r, &error);

    if (m)
        fill_statfs(m, out);
    return m || error != 0 ? posix_result(error) : next.statfs(r.path, out);
}

CALL int fstatfs(int fd, struct statfs *out)
{
    posix_begin();
    struct file *f = file_get(fd);
    int result = f ? 0 : next.fstatfs(fd, out);
    if (f)
        fill_statfs(f->mount, out);
    file_put(f);
    return result;
}

/* These two are the same here. */
CALL int statfs64(const char *path, struct statfs64 *out)
{
    return statfs(path, (struct statfs *)(void *)out);
}

CALL int fstatfs64(int fd, struct statfs64 *out)
{
    return fstatfs(fd, (struct statfs *)(void *)out);
}

static void fill_statvfs(const struct mount *m, struct statvfs *out)
{
    struct statfs s;

    fill_statfs(m, &s);
    *out = (struct statvfs){.f_bsize = (unsigned long)s.f_bsize,
                            .f_frsize = (unsigned long)s.f_frsize,
                            .f_blocks = s.f_blocks,
                            .f_bfree = s.f_bfree,
                            .f_bavail = s.f_bavail,
                            .f_files = s.f_files,
                            .f_ffree = s.f_ffree,
                            .f_favail = s.f_ffree,
                            .f_fsid = (unsigned long)(m - mounts.mount) + 1,
                            .f_flag = (unsigned long)s.f_flags,
                            .f_namemax = NAME_MAX};
}

CALL int statvfs(const char *path, struct statvfs *out)
{
    struct route r;
    int error;
    const struct mount *m = mount_at(path, &r, &error);

    if (m)
        fill_statvfs(m, out);
    return m || error != 0 ? posix_result(error) : next.statvfs(r.path, out);
}

CALL int fstatvfs(int fd, struct statvfs *out)
{
    posix_begin();
    struct file *f = file_get(fd);
    int result = f ? 0 : next.fstatvfs(fd, out);
    if (f)
        fill_statvfs(f->mount, out);
    file_put(f);
    return result;
}

CALL int statvfs64(const char *path, struct statvfs64 *out)
{
    return statvfs(path, (struct statvfs *)(void *)out);
}

CALL int fstatvfs64(int fd, struct statvfs64 *out)
{
    return fstatvfs(fd, (struct statvfs *)(void *)out);
}

/* Limits are those of the root of the system, but for links. */
static long tell_limit(int name)
{
    return name == _PC_LINK_MAX ? 1 : name == _PC_NAME_MAX ? NAME_MAX : next.pathconf("/", name);
}

CALL long pathconf(const char *path, int name)
{
    struct route r;
    int error;
    const struct mount *m = mount_at(path, &r, &error);

    if (!m)
        return error != 0 ? posix_result(error) : next.pathconf(r.path, name);
    return tell_limit(name);
}

CALL long fpathconf(int fd, int name)
{
    posix_begin();
    return file_is_ours(fd) ? tell_limit(name) : next.fpathconf(fd, name);
}

/* ---- What there is not ---- */

/* A file can be made so, but nothing else. */
static int make_node(const char *path, mode_t mode)
{
    int fd = (mode & S_IFMT) == 0 || S_ISREG(mode) ? open(path, O_WRONLY | O_CREAT | O_EXCL, mode & 07777)
                                                   : posix_result(EPERM);

    return fd < 0 ? -1 : close(fd);
}

CALL int mknodat(int folder, const char *path, mode_t mode, dev_t device)
{
    char whole[PATH_MAX];
    struct route r;

    posix_begin();
    if (!route_find(&r, folder, path))
        return next.mknodat(r.folder, r.path, mode, device);
    if (snprintf(whole, sizeof whole, "%s%s", r.mount->point, r.path) >= (int)sizeof whole)
        return posix_result(ENAMETOOLONG);
    return make_node(whole, mode);
}

CALL int mknod(const char *path, mode_t mode, dev_t device)
{
    return mknodat(AT_FDCWD, path, mode, device);
}

/* What programs call that were built with a C library before 2.33. */
CALL int __xmknod(int version, const char *path, mode_t mode, const dev_t *device)
{
    (void)version;
    return mknod(path, mode, *device);
}

CALL int __xmknodat(int version, int folder, const char *path, mode_t mode, const dev_t *device)
{
    (void)version;
    return mknodat(folder, path, mode, *device);
}

CALL int mkfifoat(int folder, const char *path, mode_t mode)
{
    return mknodat(folder, path, (mode & ~(mode_t)S_IFMT) | S_IFIFO, 0);
}

CALL int mkfifo(const char *path, mode_t mode)
{
    return mkfifoat(AT_FDCWD, path, mode);
}

/* The kernel sees no changes in mounts: programs then look by themselves. */
CALL int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    struct route r;

    posix_begin();
    return route_find(&r, AT_FDCWD, path) ? posix_result(ENOSPC) : next.inotify_add_watch(fd, r.path, mask);
}

/* Sockets with a path are files. The kernel would create one that is not in the mount. */
CALL int bind(int fd, const struct sockaddr *address, socklen_t size)
{
    const struct sockaddr_un *local = (const void *)address;
    size_t n = address && size > offsetof(struct sockaddr_un, sun_path) && size <= sizeof *local &&
                       address->sa_family == AF_UNIX
                   ? size - offsetof(struct sockaddr_un, sun_path)
                   : 0;
    char path[sizeof local->sun_path + 1];
    struct route r;

    posix_begin();
    memcpy(path, n > 0 ? local->sun_path : "", n);
    path[n] = '\0';
    return *path && route_find(&r, AT_FDCWD, path) ? posix_result(EPERM) : next.bind(fd, address, size);
}

CALL int name_to_handle_at(int folder, const char *path, struct file_handle *handle, int *mount, int flags)
{
    struct route r;

    posix_begin();
    if (file_is_ours(folder) || route_find(&r, folder, path))
        return posix_result(EOPNOTSUPP);
    return next.name_to_handle_at(r.folder, r.path, handle, mount, flags);
}
