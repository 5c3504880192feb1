/* Attributes. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <utime.h>
#include "posix/begin.h"
#include "posix/follow.h"
#include "posix/locks.h"
#include "posix/logical_view.h"
#include "posix/next.h"
#include "posix/particles.h"
#include "posix/pooled.h"
#include "posix/posix_tree.h"
#include "posix/route.h"
#include "posix/undeclared.h"

/* The attributes of an open file; EBADF if it is none of a mount. */
static int stat_descriptor(int fd, struct stat *out)
{
    struct file *f = file_get(fd);
    int error = f ? file_stat(f, fd, out) : EBADF;

    file_put(f);
    return error;
}

/* Whether a call that gave a folder is to be made again, since that is a logical file. */
static int is_logical(struct route *r, mode_t mode, int flags, const void *from)
{
    return !r->mount && S_ISDIR(mode) && logical_find(r, !(flags & AT_SYMLINK_NOFOLLOW), from);
}

static int stat_kernel(int fd, struct stat *out, const void *from)
{
    int result = next.fstat(fd, out);

    if (result == 0 && S_ISDIR(out->st_mode) && logical_take(fd, from))
        return posix_result(stat_descriptor(fd, out));
    return result;
}

static int stat_route(const struct route *r, struct stat *out, int flags)
{
    return r->mount ? posix_result(inside_stat(r->mount, r->path, flags, out))
                    : next.fstatat(r->folder, r->path, out, flags);
}

/* Of a path that is not known to be outside of mounts, or that the kernel has been asked about (`is_asked`), and has
 * failed. */
static APART int stat_path(int folder, const char *path, struct stat *out, int flags, const void *from, int is_asked)
{
    int has_last = !(flags & AT_SYMLINK_NOFOLLOW);
    struct route r;

    route_find(&r, folder, path);
    int result = is_asked ? -1 : stat_route(&r, out, flags);
    while (result != 0 ? follow_route(&r, has_last) : is_logical(&r, out->st_mode, flags, from))
        result = stat_route(&r, out, flags);
    return result;
}

static inline int stat_call(int folder, const char *path, struct stat *out, int flags, const void *from)
{
    posix_begin();
    if ((flags & AT_EMPTY_PATH) && path_is_empty(path) && file_is_ours(folder))
        return posix_result(stat_descriptor(folder, out));
    if ((flags & AT_EMPTY_PATH) && path_is_empty(path) && folder != AT_FDCWD)
        return stat_kernel(folder, out, from);
    int is_outside = !mounts.has_logical && route_is_outside(folder, path);
    if (is_outside && next.fstatat(folder, path, out, flags) == 0)
        return 0;
    return stat_path(folder, path, out, flags, from, is_outside);
}

CALL int fstatat(int folder, const char *path, struct stat *out, int flags)
{
    return stat_call(folder, path, out, flags, CALLER);
}

CALL int stat(const char *path, struct stat *out)
{
    return stat_call(AT_FDCWD, path, out, 0, CALLER);
}

CALL int lstat(const char *path, struct stat *out)
{
    return stat_call(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW, CALLER);
}

CALL int fstat(int fd, struct stat *out)
{
    posix_begin();
    return file_is_ours(fd) ? posix_result(stat_descriptor(fd, out)) : stat_kernel(fd, out, CALLER);
}

/* The C library does this with a stat of its own. */
CALL key_t ftok(const char *path, int project)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return -1;
    return (key_t)((st.st_ino & 0xffff) | ((st.st_dev & 0xff) << 16) | (((unsigned)project & 0xff) << 24));
}

/* struct stat64 is struct stat here. */
CALL int stat64(const char *path, struct stat64 *out)
{
    return stat_call(AT_FDCWD, path, (struct stat *)(void *)out, 0, CALLER);
}

CALL int lstat64(const char *path, struct stat64 *out)
{
    return stat_call(AT_FDCWD, path, (struct stat *)(void *)out, AT_SYMLINK_NOFOLLOW, CALLER);
}

CALL int fstat64(int fd, struct stat64 *out)
{
    posix_begin();
    return file_is_ours(fd) ? posix_result(stat_descriptor(fd, (struct stat *)(void *)out))
                            : stat_kernel(fd, (struct stat *)(void *)out, CALLER);
}

CALL int fstatat64(int folder, const char *path, struct stat64 *out, int flags)
{
    return stat_call(folder, path, (struct stat *)(void *)out, flags, CALLER);
}

/* What programs call that were built with a C library before 2.33. The version is that of struct stat, which is one. */
CALL int __xstat(int version, const char *path, struct stat *out)
{
    (void)version;
    return stat(path, out);
}
CALL_ALIAS(__xstat64, __xstat);

CALL int __lxstat(int version, const char *path, struct stat *out)
{
    (void)version;
    return lstat(path, out);
}
CALL_ALIAS(__lxstat64, __lxstat);

CALL int __fxstat(int version, int fd, struct stat *out)
{
    (void)version;
    return fstat(fd, out);
}
CALL_ALIAS(__fxstat64, __fxstat);

CALL int __fxstatat(int version, int folder, const char *path, struct stat *out, int flags)
{
    (void)version;
    return fstatat(folder, path, out, flags);
}
CALL_ALIAS(__fxstatat64, __fxstatat);

/* ---- statx ---- */

static struct statx_timestamp statx_time(struct timespec t)
{
    return (struct statx_timestamp){.tv_sec = t.tv_sec, .tv_nsec = (uint32_t)t.tv_nsec};
}

static void statx_fill(const struct stat *s, struct statx *out)
{
    *out = (struct statx){.stx_mask = STATX_BASIC_STATS,
                          .stx_blksize = (uint32_t)s->st_blksize,
                          .stx_nlink = (uint32_t)s->st_nlink,
                          .stx_uid = s->st_uid,
                          .stx_gid = s->st_gid,
                          .stx_mode = (uint16_t)s->st_mode,
                          .stx_ino = s->st_ino,
                          .stx_size = (uint64_t)s->st_size,
                          .stx_blocks = (uint64_t)s->st_blocks,
                          .stx_atime = statx_time(s->st_atim),
                          .stx_ctime = statx_time(s->st_ctim),
                          .stx_mtime = statx_time(s->st_mtim),
                          .stx_dev_major = major(s->st_dev),
                          .stx_dev_minor = minor(s->st_dev)};
}

/* Gives the result of a call. */
static int statx_result(int error, const struct stat *s, struct statx *out)
{
    if (error == 0)
        statx_fill(s, out);
    return posix_result(error);
}

static int statx_route(const struct route *r, int flags, struct statx *out)
{
    struct stat s;

    return statx_result(inside_stat(r->mount, r->path, flags, &s), &s, out);
}

static int statx_descriptor(int fd, struct statx *out)
{
    struct stat s;

    return statx_result(stat_descriptor(fd, &s), &s, out);
}

CALL int statx(int folder, const char *path, int flags, unsigned mask, struct statx *out)
{
    struct route r;
    int result, is_descriptor = path_is_empty(path) && (flags & AT_EMPTY_PATH);

    posix_begin();
    if (is_descriptor && file_is_ours(folder))
        return statx_descriptor(folder, out);
    route_find(&r, folder, path);
    do
        result = r.mount ? statx_route(&r, flags, out) : next.statx(r.folder, r.path, flags, mask, out);
    while (result != 0 ? follow_route(&r, !(flags & AT_SYMLINK_NOFOLLOW))
                       : is_logical(&r, out->stx_mode, flags, CALLER));
    if (result == 0 && is_descriptor && S_ISDIR(out->stx_mode) && logical_take(folder, CALLER))
        return statx_descriptor(folder, out);
    return result;
}

/* ---- Access ---- */

/* The mode of a file in a namespace is shown, and not enforced; but nothing can be changed in a snapshot, and a file
 * without a bit to execute it is no program. */
static int access_route(const struct route *r, int mode, int flags)
{
    struct stat s;
    int error = inside_stat(r->mount, r->path, flags, &s);

    if (error == 0 && (mode & X_OK) && !S_ISDIR(s.st_mode) && (s.st_mode & 0111) == 0)
        error = EACCES;
    if (error == 0 && (mode & W_OK) && r->mount->kind == MOUNT_NAMESPACE && tree_is_snapshot(r->mount->tree))
        error = EROFS;
    return error;
}

CALL int faccessat(int folder, const char *path, int mode, int flags)
{
    struct route r;
    int result;

    posix_begin();
    route_find(&r, folder, path);
    do
        result = r.mount ? posix_result(access_route(&r, mode, flags)) : next.faccessat(r.folder, r.path, mode, flags);
    while (result != 0 && follow_route(&r, !(flags & AT_SYMLINK_NOFOLLOW)));
    return result;
}

CALL int access(const char *path, int mode)
{
    return faccessat(AT_FDCWD, path, mode, 0);
}

CALL int eaccess(const char *path, int mode)
{
    return faccessat(AT_FDCWD, path, mode, AT_EACCESS);
}
CALL_ALIAS(euidaccess, eaccess);

/* ---- Setting ---- */

/* Set attributes of a path in a mount, or, if that is "", of an open file. */
static int set_route(const struct route *r, int flags, const struct deltafs_namespace_attributes *a)
{
    deltafs_namespace *ns;

    if (r->mount->kind == MOUNT_PARTICLES)
        return EPERM;
    if (r->mount->kind == MOUNT_LOGICAL)
        return logical_set(r->path, a);
    if (r->mount->kind == MOUNT_POOL)
        return pooled_set(r->mount, r->path, flags, a);
    int error = tree_begin(r->mount->tree, 1, &ns);
    if (error != 0)
        return error;
    return tree_end(r->mount->tree, deltafs_namespace_set_attributes(ns, r->path, flags & AT_SYMLINK_NOFOLLOW, a));
}

/* The same of a path that descriptors here may be open at. */
static int set_path(const struct route *r, int flags, const struct deltafs_namespace_attributes *a)
{
    int error =
        r->mount->kind == MOUNT_NAMESPACE ? tree_publish_path(r->mount, r->path, flags & AT_SYMLINK_NOFOLLOW) : 0;

    if (r->mount->kind == MOUNT_LOGICAL)
        return logical_set(r->path, a);
    if (r->mount->kind == MOUNT_POOL)
        return pooled_set(r->mount, r->path, flags, a);
    if (error == 0)
        error = set_route(r, flags, a);
    return error == 0 ? tree_refresh_path(r->mount, r->path, flags & AT_SYMLINK_NOFOLLOW) : error;
}

static int set_descriptor(int fd, const struct deltafs_namespace_attributes *a)
{
    struct file *f = file_get(fd);
    struct route r = {.mount = f ? f->mount : NULL};
    struct stat now;

    if (!f)
        return EBADF;
    lock_take(&f->lock);
    r.path = f->path;
    int error = f->kind == FILE_PARTICLE ? 0 : f->mount->kind != MOUNT_PARTICLES ? file_publish(f, fd) : EPERM;
    if (error == 0 && f->kind != FILE_PARTICLE && !f->is_removed)
        error = set_route(&r, f->flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0, a);
    if (error == 0 && f->mount->kind != MOUNT_PARTICLES && inside_stat(f->mount, f->path, 0, &now) == 0 &&
        now.st_ino == f->st.st_ino)
        f->st = now;
    lock_give(&f->lock);
    file_put(f);
    return error;
}

static struct deltafs_namespace_attributes attributes_of_mode(mode_t mode)
{
    return (struct deltafs_namespace_attributes){.struct_size = sizeof(struct deltafs_namespace_attributes),
                                                 .set = DELTAFS_NAMESPACE_MODE,
                                                 .mode = mode & 07777};
}

CALL int fchmodat(int folder, const char *path, mode_t mode, int flags)
{
    const struct deltafs_namespace_attributes a = attributes_of_mode(mode);
    struct route r;
    int result;

    posix_begin();
    route_find(&r, folder, path);
    if (mode & 0444 & ~(mode << 2)) /* a folder could be listed, and not entered */
        logical_find(&r, !(flags & AT_SYMLINK_NOFOLLOW), CALLER);
    do
        result = r.mount ? posix_result(set_path(&r, flags, &a)) : next.fchmodat(r.folder, r.path, mode, flags);
    while (result != 0 && follow_route(&r, !(flags & AT_SYMLINK_NOFOLLOW)));
    return result;
}

CALL int chmod(const char *path, mode_t mode)
{
    return fchmodat(AT_FDCWD, path, mode, 0);
}

CALL int lchmod(const char *path, mode_t mode)
{
    return fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW);
}

CALL int fchmod(int fd, mode_t mode)
{
    const struct deltafs_namespace_attributes a = attributes_of_mode(mode);

    posix_begin();
    logical_take(fd, CALLER);
    return file_is_ours(fd) ? posix_result(set_descriptor(fd, &a)) : next.fchmod(fd, mode);
}

static struct deltafs_namespace_attributes attributes_of_owner(uid_t uid, gid_t gid)
{
    return (struct deltafs_namespace_attributes){.struct_size = sizeof(struct deltafs_namespace_attributes),
                                                 .set = (uid == (uid_t)-1 ? 0u : DELTAFS_NAMESPACE_UID) |
                                                        (gid == (gid_t)-1 ? 0u : DELTAFS_NAMESPACE_GID),
                                                 .uid = uid,
                                                 .gid = gid};
}

CALL int fchownat(int folder, const char *path, uid_t uid, gid_t gid, int flags)
{
    const struct deltafs_namespace_attributes a = attributes_of_owner(uid, gid);
    struct route r;
    int result;

    posix_begin();
    if ((flags & AT_EMPTY_PATH) && path_is_empty(path) && file_is_ours(folder))
        return posix_result(set_descriptor(folder, &a));
    route_find(&r, folder, path);
    do
        result = r.mount ? posix_result(set_path(&r, flags, &a)) : next.fchownat(r.folder, r.path, uid, gid, flags);
    while (result != 0 && follow_route(&r, !(flags & AT_SYMLINK_NOFOLLOW)));
    return result;
}

CALL int chown(const char *path, uid_t uid, gid_t gid)
{
    return fchownat(AT_FDCWD, path, uid, gid, 0);
}

CALL int lchown(const char *path, uid_t uid, gid_t gid)
{
    return fchownat(AT_FDCWD, path, uid, gid, AT_SYMLINK_NOFOLLOW);
}

CALL int fchown(int fd, uid_t uid, gid_t gid)
{
    const struct deltafs_namespace_attributes a = attributes_of_owner(uid, gid);

    posix_begin();
    logical_take(fd, CALLER);
    return file_is_ours(fd) ? posix_result(set_descriptor(fd, &a)) : next.fchown(fd, uid, gid);
}

/* ---- Times ---- */

static int64_t nanoseconds(struct timespec t, struct timespec now)
{
    t = t.tv_nsec == UTIME_NOW ? now : t;
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Those of access and of modification; NULL: now. */
static struct deltafs_namespace_attributes attributes_of_times(const struct timespec times[2])
{
    static const struct timespec both[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    times = times ? times : both;
    return (struct deltafs_namespace_attributes){.struct_size = sizeof(struct deltafs_namespace_attributes),
                                                 .set =
                                                     (times[0].tv_nsec == UTIME_OMIT ? 0u : DELTAFS_NAMESPACE_ATIME) |
                                                     (times[1].tv_nsec == UTIME_OMIT ? 0u : DELTAFS_NAMESPACE_MTIME),
                                                 .atime = nanoseconds(times[0], now),
                                                 .mtime = nanoseconds(times[1], now)};
}

CALL int futimens(int fd, const struct timespec times[2])
{
    posix_begin();
    if (!file_is_ours(fd))
        return next.futimens(fd, times);
    const struct deltafs_namespace_attributes a = attributes_of_times(times);
    return posix_result(set_descriptor(fd, &a));
}

static int set_times(const struct route *r, int flags, const struct timespec times[2])
{
    const struct deltafs_namespace_attributes a = attributes_of_times(times);

    return posix_result(set_path(r, flags, &a));
}

CALL int utimensat(int folder, const char *path, const struct timespec times[2], int flags)
{
    struct route r;
    int result;

    posix_begin();
    if (path_is_empty(path) && file_is_ours(folder))
        return futimens(folder, times);
    route_find(&r, folder, path);
    do
        result = r.mount ? set_times(&r, flags, times) : next.utimensat(r.folder, r.path, times, flags);
    while (result != 0 && follow_route(&r, !(flags & AT_SYMLINK_NOFOLLOW)));
    return result;
}

static const struct timespec *of_microseconds(const struct timeval times[2], struct timespec out[2])
{
    for (int i = 0; times && i < 2; i++)
        out[i] = (struct timespec){.tv_sec = times[i].tv_sec, .tv_nsec = times[i].tv_usec * 1000};
    return times ? out : NULL;
}

CALL int utimes(const char *path, const struct timeval times[2])
{
    struct timespec t[2];

    return utimensat(AT_FDCWD, path, of_microseconds(times, t), 0);
}

CALL int lutimes(const char *path, const struct timeval times[2])
{
    struct timespec t[2];

    return utimensat(AT_FDCWD, path, of_microseconds(times, t), AT_SYMLINK_NOFOLLOW);
}

CALL int futimes(int fd, const struct timeval times[2])
{
    struct timespec t[2];

    return futimens(fd, of_microseconds(times, t));
}

CALL int futimesat(int folder, const char *path, const struct timeval times[2])
{
    struct timespec t[2];

    return utimensat(folder, path, of_microseconds(times, t), 0);
}

CALL int utime(const char *path, const struct utimbuf *times)
{
    struct timespec t[2];

    for (int i = 0; times && i < 2; i++)
        t[i] = (struct timespec){.tv_sec = i == 0 ? times->actime : times->modtime};
    return utimensat(AT_FDCWD, path, times ? t : NULL, 0);
}
