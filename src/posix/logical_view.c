#include "posix/logical_view.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "posix/handover.h"
#include "posix/internal.h"
#include "posix/locks.h"
#include "posix/next.h"
#include "posix/posix_tree.h"
#include "posix/tree_parts.h"

#define HEAD_SIZE 256        /* bytes of a manifest in which is what it is of */
#define HEAD_LINE "\nFile "  /* of a logical file */
#define MANIFEST  "MANIFEST" /* the folder's */

struct mount *logical_mount(void)
{
    return mounts.has_logical ? &mounts.mount[MOUNTS_MAX] : NULL;
}

/* ---- Finding ---- */

/* Whether a folder's manifest is that of a logical file. Closes it. */
static int is_manifest(int fd)
{
    char head[HEAD_SIZE];
    ssize_t n = fd < 0 ? -1 : next.pread(fd, head, sizeof head, 0);

    if (fd >= 0)
        next.close(fd);
    return n > 0 && memmem(head, (size_t)n, HEAD_LINE, strlen(HEAD_LINE)) != NULL;
}

/* Whether a call comes from DeltaFS itself: a library, driver or command of it, but not from this library. */
static int sees_folder(const void *from)
{
    Dl_info o;

    if (!dladdr(from, &o) || !o.dli_fname)
        return 0;
    const char *slash = strrchr(o.dli_fname, '/'), *name = slash ? slash + 1 : o.dli_fname;
    name += strncmp(name, "lt-", 3) == 0 ? 3 : 0;
    if (strcmp(name, "deltafs") == 0 || strcmp(name, "deltafs-mpi") == 0)
        return 1;
    return strstr(name, "deltafs") && strstr(name, ".so") && !strstr(name, "deltafs_posix");
}

/* The path of a descriptor. */
static int path_of(int fd, char out[static PATH_MAX])
{
    char name[64];

    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t n = next.readlinkat(AT_FDCWD, name, out, PATH_MAX);
    if (n <= 0 || n >= PATH_MAX || *out != '/')
        return 0;
    out[n] = '\0';
    return 1;
}

/* That of a name. */
static int path_of_name(const struct route *r, int flags, char out[static PATH_MAX])
{
    int fd = next.openat(r->folder, r->path, O_PATH | O_CLOEXEC | flags);
    int is = fd >= 0 && path_of(fd, out);

    if (fd >= 0)
        next.close(fd);
    return is;
}

int logical_find(struct route *r, int has_last, const void *from)
{
    char manifest[PATH_MAX + sizeof "/" MANIFEST];

    if (!mounts.has_logical || r->mount || path_is_empty(r->path) || r->path[strlen(r->path) - 1] == '/')
        return 0;
    if (snprintf(manifest, sizeof manifest, "%s/" MANIFEST, r->path) >= (int)sizeof manifest)
        return 0;
    if (!is_manifest(next.openat(r->folder, manifest, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) || sees_folder(from))
        return 0;
    int is = path_of_name(r, O_DIRECTORY | (has_last ? 0 : O_NOFOLLOW), r->room);
    if (is) {
        r->mount = logical_mount();
        r->folder = AT_FDCWD;
        r->path = r->room;
    }
    return is;
}

int logical_may_be(const void *from)
{
    return mounts.has_logical && !sees_folder(from);
}

int logical_route(struct route *r, int has_last, const void *from)
{
    int error = errno;

    if (!mounts.has_logical || (error != EISDIR && error != ENOTDIR && error != ENOTEMPTY && error != EEXIST))
        return 0;
    int is = logical_find(r, has_last, from);
    errno = error;
    return is;
}

/* The descriptor gets another meaning; its offset stays. */
static int replace(int fd, const char *path, int flags)
{
    off_t at = next.lseek(fd, 0, SEEK_CUR);
    int new = -1, error = logical_open(path, flags, &new);

    if (error != 0)
        return error;
    struct file *f = file_get(new);
    if (f) /* the program may have locked it */
        f->lock_fd = internal_keep(next.fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!f || next.dup3(new, fd, flags & O_CLOEXEC) < 0)
        error = f ? errno : EBADF;
    else
        error = file_set(f, fd);
    file_forget(new);
    next.close(new);
    file_put(f);
    if (error == 0 && at > 0)
        next.lseek(fd, at, SEEK_SET);
    return error;
}

int logical_take(int fd, const void *from)
{
    char path[PATH_MAX];
    struct stat st;
    int error = errno, flags;

    if (!mounts.has_logical || file_is_ours(fd) || next.fstat(fd, &st) != 0 || !S_ISDIR(st.st_mode)) {
        errno = error;
        return 0;
    }
    flags = next.fcntl(fd, F_GETFL);
    int is = flags >= 0 && !(flags & (O_PATH | O_DIRECTORY)) &&
             is_manifest(next.openat(fd, MANIFEST, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) && !sees_folder(from) &&
             path_of(fd, path) &&
             replace(fd, path, O_RDONLY | (next.fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0)) == 0;
    errno = error;
    return is;
}

void logical_take_input(void)
{
    struct file *f = logical_take(STDIN_FILENO, NULL) ? file_get(STDIN_FILENO) : NULL;

    if (!f)
        return;
    lock_take(&f->lock);
    int error = handover_load_input(f, STDIN_FILENO, f->st.st_size);
    lock_give(&f->lock);
    file_put(f);
    if (error != 0) { /* what is read then is an error, and not other bytes */
        file_forget(STDIN_FILENO);
        next.close(STDIN_FILENO);
    }
}

/* ---- Whole files ---- */

int logical_error(int status)
{
    int error = status == DELTAFS_OK ? 0 : deltafs_namespace_errno(status);

    if (error == EIO)
        posix_say("%s", deltafs_errmsg(NULL));
    return error;
}

/* End with a handle that was opened to write. */
static int finish(deltafs_logical *h, int status)
{
    int closed = h ? deltafs_logical_close(h) : DELTAFS_OK;

    return logical_error(status == DELTAFS_OK ? closed : status);
}

/* The attributes are those of the folder, as far as a file has the same. */
int logical_stat_open(const char *path, deltafs_logical *h, struct stat *out)
{
    uint64_t size;
    int status = deltafs_logical_size(h, &size);

    if (status != DELTAFS_OK)
        return logical_error(status);
    if (next.fstatat(AT_FDCWD, path, out, 0) != 0)
        return errno;
    out->st_mode = S_IFREG | (out->st_mode & 0666);
    out->st_nlink = 1;
    out->st_size = (off_t)size;
    out->st_blocks = (blkcnt_t)((size + 511) / 512);
    return 0;
}

int logical_stat(const char *path, struct stat *out)
{
    deltafs_logical *h = NULL;
    int status = deltafs_logical_open(path, O_RDONLY, NULL, &h);
    int error = status == DELTAFS_OK ? logical_stat_open(path, h, out) : logical_error(status);

    if (h)
        deltafs_logical_close(h);
    return error == 0 ? file_each(file_note_size, out) : error;
}

static int publish_same(struct file *f, int fd, void *stat)
{
    const struct stat *same = stat;
    int is_same = f->kind == FILE_TREE && f->st.st_ino == same->st_ino && f->st.st_dev == same->st_dev;

    return is_same ? file_publish_locked(f, fd, NULL) : 0;
}

int logical_publish_open(const char *path)
{
    struct stat st;

    return next.fstatat(AT_FDCWD, path, &st, 0) == 0 ? file_each(publish_same, &st) : errno;
}

int logical_truncate(const char *path, uint64_t size)
{
    deltafs_logical *h = NULL;
    int error = logical_publish_open(path);

    if (error != 0)
        return error;
    int status = deltafs_logical_open(path, O_RDWR, NULL, &h);
    if (status == DELTAFS_OK)
        status = deltafs_logical_truncate(h, size);
    error = finish(h, status);
    return error == 0 ? tree_refresh_path(logical_mount(), path, 0) : error;
}

int logical_remove(const char *path)
{
    return logical_error(deltafs_logical_remove(path));
}

/* What is at the one path is put at the other, and the other way round, so that there is always a file; then what was
 * replaced is removed. */
static int replace_name(const struct route *a, const struct route *b, const void *from)
{
    struct route old = *a;

    old.path = a->path == a->room ? old.room : a->path;
    if (next.renameat2(a->folder, a->path, b->folder, b->path, RENAME_EXCHANGE) != 0)
        return errno;
    if (logical_find(&old, 0, from))
        return logical_remove(old.path);
    return next.unlinkat(a->folder, a->path, 0) == 0 ? 0 : errno;
}

static int is_folder(const struct route *r)
{
    struct stat st;

    return next.fstatat(r->folder, r->path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

int logical_rename(const struct route *a, const struct route *b, unsigned flags, const void *from)
{
    int error = errno;
    struct route one = *a, other = *b;

    one.path = a->path == a->room ? one.room : a->path;
    other.path = b->path == b->room ? other.room : b->path;
    if (a->mount || b->mount || flags != 0)
        return error;
    int is_from = logical_route(&one, 0, from), is_to = logical_route(&other, 0, from);
    if (!is_from && !is_to)
        return error;
    if (!is_from && is_folder(a))
        return ENOTDIR;
    return !is_to && is_folder(b) ? EISDIR : replace_name(a, b, from);
}

static int count_logical(struct file *f, int fd, void *count)
{
    (void)fd;
    *(int *)count += f->mount->kind == MOUNT_LOGICAL;
    return 0;
}

int logical_names_hold(struct renaming *n, const struct route *a, const struct route *b, const void *from)
{
    int count = 0;

    if (!mounts.has_logical)
        return 0;
    file_each(count_logical, &count);
    if (count == 0 || sees_folder(from) || !path_of_name(a, O_NOFOLLOW, n->room[0]))
        return 0;
    n->mount = logical_mount();
    n->old = n->room[0];
    n->new = n->room[1];
    if (next.fstatat(b->folder, b->path, &n->to, AT_SYMLINK_NOFOLLOW) != 0)
        n->to.st_ino = 0;
    names_hold(n);
    return 1;
}

void logical_names_end(struct renaming *n, const struct route *b, int is_done)
{
    names_end(n, is_done && path_of_name(b, O_NOFOLLOW, n->room[1]));
}

static struct timespec time_of(int64_t ns, int is_set)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = is_set ? (long)(ns % 1000000000) : UTIME_OMIT};
}

/* A folder that can be read must also be one that can be entered. */
int logical_set(const char *path, const struct deltafs_namespace_attributes *a)
{
    const struct timespec times[2] = {time_of(a->atime, a->set & DELTAFS_NAMESPACE_ATIME),
                                      time_of(a->mtime, a->set & DELTAFS_NAMESPACE_MTIME)};
    uid_t uid = a->set & DELTAFS_NAMESPACE_UID ? a->uid : (uid_t)-1;
    gid_t gid = a->set & DELTAFS_NAMESPACE_GID ? a->gid : (gid_t)-1;

    if ((a->set & DELTAFS_NAMESPACE_MODE) && next.fchmodat(AT_FDCWD, path, a->mode | (a->mode & 0444) >> 2, 0) != 0)
        return errno;
    if ((a->set & (DELTAFS_NAMESPACE_UID | DELTAFS_NAMESPACE_GID)) && next.fchownat(AT_FDCWD, path, uid, gid, 0) != 0)
        return errno;
    if ((a->set & (DELTAFS_NAMESPACE_ATIME | DELTAFS_NAMESPACE_MTIME)) && next.utimensat(AT_FDCWD, path, times, 0) != 0)
        return errno;
    return 0;
}
