#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/collective.h"
#include "base/memory.h"
#include "base/path.h"
#include "io/io.h"

#define IO_DIRECT_MIN (64u << 10) /* bytes worth a write around the page cache */
#define EXT4_MAGIC    0xef53u
#define LOCKED_MAX    64u
#define IO_ROOM_PART  16u /* no more than this part of what is free is set aside at once */

/* An operation that is one call, which returns -1 and sets errno if it fails. */
#define POSIX_OPERATION(type, name, parameters, call)                                                                  \
    static type posix_##name parameters                                                                                \
    {                                                                                                                  \
        (void)ctx;                                                                                                     \
        type rc = call;                                                                                                \
        return rc < 0 ? -errno : rc;                                                                                   \
    }
POSIX_OPERATION(ssize_t, pread, (void *ctx, int fd, void *bytes, size_t n, uint64_t offset),
                pread(fd, bytes, n, (off_t)offset))
POSIX_OPERATION(ssize_t, pwrite, (void *ctx, int fd, const void *bytes, size_t n, uint64_t offset),
                pwrite(fd, bytes, n, (off_t)offset))
POSIX_OPERATION(ssize_t, readlink, (void *ctx, const char *path, char *target, size_t room),
                readlink(path, target, room))
POSIX_OPERATION(int, sync, (void *ctx, int fd), fdatasync(fd))
POSIX_OPERATION(int, truncate, (void *ctx, int fd, uint64_t size), ftruncate(fd, (off_t)size))
POSIX_OPERATION(int, mkdir, (void *ctx, const char *path, mode_t mode), mkdir(path, mode))
POSIX_OPERATION(int, rename, (void *ctx, const char *from, const char *to), rename(from, to))
POSIX_OPERATION(int, exchange, (void *ctx, const char *a, const char *b),
                renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE))
POSIX_OPERATION(int, unlink, (void *ctx, const char *path), unlink(path))
POSIX_OPERATION(int, rmdir, (void *ctx, const char *path), rmdir(path))
POSIX_OPERATION(int, symlink, (void *ctx, const char *target, const char *path), symlink(target, path))

static int posix_check_names(int fd)
{
    struct stat st;

    return fstat(fd, &st) != 0 ? -errno : S_ISREG(st.st_mode) && st.st_nlink > 1 ? -EMLINK : 0;
}

/* A container may come from anybody. A FIFO in it must not make its reader wait, and a symbolic link in the place of a
 * file must not lead a writer, which truncates and replaces, out of it; reading may go through links, and so may
 * folders, which can be on other volumes. Nor may a hard link lead there. GlusterFS opens a file by what it knew of its
 * name, and only the next request says that it has been removed. A file that has just been created has nobody else's
 * work in it. */
static int posix_open(void *ctx, const char *path, int flags, mode_t mode)
{
    int is_reading = (flags & O_ACCMODE) == O_RDONLY, is_awaited = flags & IO_AWAITED;

    (void)ctx;
    flags &= ~IO_AWAITED;
    flags |= O_CLOEXEC | O_NOCTTY | (is_reading ? O_NONBLOCK : O_NOFOLLOW);
    int fd = open(path, flags, mode);
    /* Only a regular file, which another has a lease on, is ever not ready. */
    if (fd < 0 && errno == EWOULDBLOCK && is_reading)
        fd = open(path, flags & ~O_NONBLOCK, mode);
    if (fd < 0)
        return -errno;
    int rc = is_awaited || (flags & O_EXCL) ? 0 : client_cached_refresh(NULL, fd);
    rc = rc == -ENOENT || rc == -ESTALE ? -ESTALE : is_reading || (flags & O_EXCL) ? 0 : posix_check_names(fd);
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

static int posix_attributes_in(void *ctx, int folder, const char *name, struct io_attributes *out)
{
    struct statx st;

    (void)ctx;
    if (statx(folder, name, name[0] == '\0' ? AT_EMPTY_PATH : 0, STATX_BASIC_STATS | STATX_BTIME, &st) != 0)
        return -errno;
    *out = (struct io_attributes){
        .size = st.stx_size,
        .stored = st.stx_blocks * 512,
        .mtime = (uint64_t)st.stx_mtime.tv_sec * 1000000000 + st.stx_mtime.tv_nsec,
        .is_regular = S_ISREG(st.stx_mode),
        .is_removed = st.stx_nlink == 0,
        .names = st.stx_nlink,
        .inode = st.stx_ino,
        .born = st.stx_mask & STATX_BTIME ? (uint64_t)st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec : 0,
    };
    return 0;
}

static int posix_attributes(void *ctx, int fd, struct io_attributes *out)
{
    return posix_attributes_in(ctx, fd, "", out);
}

/* ext4 spends a quarter of the time on pages that are written and have no place on storage yet. Other file systems gain
 * nothing (XFS does this by itself) or lose by it (tmpfs, and those with servers). */
static int posix_allocate(void *ctx, int fd, uint64_t offset, uint64_t n)
{
    struct statfs system;

    (void)ctx;
    if (fstatfs(fd, &system) != 0 || (unsigned)system.f_type != EXT4_MAGIC)
        return -EOPNOTSUPP;
    if (system.f_bavail < IO_ROOM_PART * n / (uint64_t)system.f_bsize)
        return -ENOSPC;
    return fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)n) != 0 ? -errno : 0;
}

static void posix_advise(void *ctx, int fd, uint64_t offset, uint64_t n)
{
    (void)ctx;
    posix_fadvise(fd, (off_t)offset, (off_t)n, POSIX_FADV_WILLNEED);
}

static int posix_sync_folder(void *ctx, const char *path)
{
    (void)ctx;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    /* Some network file systems cannot sync folders and say EINVAL: their metadata is synchronous. */
    int status = fsync(fd) != 0 && errno != EINVAL ? -errno : 0;
    close(fd);
    return status;
}

/* A lock belongs to the open file, and a child that is forked has that, too: it would keep the lock after this process
 * was killed. So the child opens such files again. More of them than the table has room for stay as they are. */
static _Atomic int locked[LOCKED_MAX]; /* descriptor + 1; 0: none */

static void locked_reopen(void)
{
    for (size_t i = 0; i < LOCKED_MAX; i++) {
        char path[40];
        int fd = locked[i] - 1;
        if (fd < 0)
            continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        int own = open(path, (fcntl(fd, F_GETFL) & O_ACCMODE) | O_CLOEXEC);
        if (own < 0)
            own = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (own < 0 || dup3(own, fd, O_CLOEXEC) < 0)
            close(fd);
        if (own >= 0)
            close(own);
    }
}

static void locked_begin(void)
{
    pthread_atfork(NULL, NULL, locked_reopen);
}

static void locked_add(int fd)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, locked_begin);
    for (size_t i = 0; i < LOCKED_MAX; i++)
        if (locked[i] == fd + 1)
            return;
    for (size_t i = 0; i < LOCKED_MAX; i++)
        if (atomic_compare_exchange_strong(&locked[i], &(int){0}, fd + 1))
            return;
}

static void locked_remove(int fd)
{
    for (size_t i = 0; i < LOCKED_MAX; i++)
        atomic_compare_exchange_strong(&locked[i], &(int){fd + 1}, 0);
}

static int posix_close(void *ctx, int fd)
{
    (void)ctx;
    locked_remove(fd);
    /* After EINTR Linux has closed the descriptor: it must not be closed again. */
    return close(fd) != 0 && errno != EINTR ? -errno : 0;
}

/* A lock of the open file, not of the process: what else this process has open cannot lose it. */
static int posix_lock(void *ctx, int fd, uint64_t from, uint64_t n, enum io_lock how)
{
    struct flock lock = {.l_type = how == IO_UNLOCK        ? F_UNLCK
                                   : how == IO_LOCK_SHARED ? F_RDLCK
                                                           : F_WRLCK,
                         .l_whence = SEEK_SET,
                         .l_start = (off_t)from,
                         .l_len = (off_t)n};

    (void)ctx;
    if (how != IO_UNLOCK && how != IO_LOCK_QUERY)
        locked_add(fd); /* before it has the lock */
    if (fcntl(fd, how == IO_LOCK_QUERY ? F_OFD_GETLK : how == IO_LOCK_TRY ? F_OFD_SETLK : F_OFD_SETLKW, &lock) == 0)
        return how == IO_LOCK_QUERY && lock.l_type != F_UNLCK ? -EAGAIN : 0;
    return errno == EACCES ? -EAGAIN : -errno;
}

/* Where there are no hard links, a rename that replaces nothing gives the name as well. */
static int posix_link(void *ctx, const char *from, const char *to)
{
    (void)ctx;
    int rc = link(from, to) != 0 ? -errno : 0;
    if ((rc == -EPERM || rc == -EOPNOTSUPP || rc == -ENOSYS) &&
        renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    return rc;
}

/* NFS caches a folder's names for half a minute. */
static int posix_list(void *ctx, const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
    struct dirent *entry;
    int rc = 0;

    (void)ctx;
    DIR *folder = opendir(path);
    if (!folder)
        return -errno;
    client_cached_refresh(NULL, dirfd(folder));
    while (rc == 0 && (errno = 0, entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = fn(arg, entry->d_name);
    if (rc == 0 && errno != 0)
        rc = -errno;
    closedir(folder);
    return rc;
}

static const struct io_ops posix_ops = {
    .open = posix_open,
    .pread = posix_pread,
    .pwrite = posix_pwrite,
    .sync = posix_sync,
    .attributes = posix_attributes,
    .attributes_in = posix_attributes_in,
    .refresh = client_cached_refresh,
    .truncate = posix_truncate,
    .allocate = posix_allocate,
    .advise = posix_advise,
    .close = posix_close,
    .mkdir = posix_mkdir,
    .rename = posix_rename,
    .exchange = posix_exchange,
    .unlink = posix_unlink,
    .rmdir = posix_rmdir,
    .sync_folder = posix_sync_folder,
    .lock = posix_lock,
    .link = posix_link,
    .symlink = posix_symlink,
    .readlink = posix_readlink,
    .list = posix_list,
};

static const struct io_ops *default_ops = &posix_ops;
static void *default_ctx;

struct io io_default(void)
{
    return (struct io){.ops = default_ops, .ctx = default_ctx};
}

void io_replace_default(const struct io_ops *ops, void *ctx)
{
    default_ops = ops ? ops : &posix_ops;
    default_ctx = ctx;
}

int io_stay(struct io *io, const char *path, struct error *e)
{
    return path_here(path, &io->here) == 0 ? DELTAFS_OK : error_no_memory(e, strlen(path), "a path");
}

void io_leave(struct io *io)
{
    free(io->here);
    io->here = NULL;
}

const char *io_find(const struct io *io, const char *path, char room[PATH_ROOM])
{
    return io->here && path[0] != '/' ? io_path_in(room, io->here, "%s", path) : path;
}

void io_stat(const struct io *io, struct deltafs_io_stat *out)
{
    *out = (struct deltafs_io_stat){sizeof *out, io->reads, io->bytes_read, io->writes, io->bytes_written};
}

/* What a call for `path` returned: a count, or a negative errno. */
static int io_done(ssize_t rc, const char *what, const char *path, struct error *e)
{
    if (rc >= 0)
        return DELTAFS_OK;
    error_system(e, (int)-rc, what, path);
    if (rc == -ENOENT)
        e->status = DELTAFS_ERR_NOT_FOUND;
    if (rc == -EEXIST)
        e->status = DELTAFS_ERR_EXISTS;
    return e->status;
}

static int io_refuse_names(const char *path, struct error *e)
{
    return error_set(e, DELTAFS_ERR_IO,
                     "%s: has several names (hard links), so writing to it could change another container or a backup; "
                     "put a copy in its place ('cp FILE COPY; mv COPY FILE')",
                     path);
}

int io_file_check_names(struct io_file *f, struct error *e)
{
    struct io_attributes a;
    int status = io_file_attributes(f, &a, e);

    return status == DELTAFS_OK && a.is_regular && a.names > 1 ? io_refuse_names(f->path, e) : status;
}

int io_file_open(struct io *io, const char *path, int flags, struct io_file *out, struct error *e)
{
    char room[PATH_ROOM];
    const char *whole = io_find(io, path, room);
    unsigned waited = 0;
    int fd;

    *out = (struct io_file){.io = io, .path = strdup(path), .fd = -1, .direct = -1, .access = flags & O_ACCMODE};
    if (!out->path)
        return error_no_memory(e, strlen(path) + 1, "a path");
    /* -ESTALE: this host still knows the name of a file that another host has removed. */
    do
        fd = io->ops->open(io->ctx, whole, flags, 0666);
    while (fd == -EINTR || (fd == -ESTALE && client_cached_pause(&waited)));
    out->fd = fd < 0 ? -1 : fd;
    if (fd >= 0)
        return DELTAFS_OK;
    free(out->path);
    out->path = NULL;
    if (fd == -EMLINK)
        return io_refuse_names(path, e);
    io_done(fd, flags & O_CREAT ? "create" : "open", path, e);
    return fd == -ENOTDIR ? (e->status = DELTAFS_ERR_NOT_FOUND) : e->status;
}

const char *io_misfit(const char *path, int is_written)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        return NULL;
    if (S_ISLNK(st.st_mode))
        return is_written || (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) ? "a symbolic link" : NULL;
    return S_ISREG(st.st_mode)    ? is_written && st.st_nlink > 1 ? "a file with several names (hard links)" : NULL
           : S_ISDIR(st.st_mode)  ? "a folder"
           : S_ISFIFO(st.st_mode) ? "a FIFO"
           : S_ISSOCK(st.st_mode) ? "a socket"
                                  : "a device";
}

int io_explain(const char *path, int is_written, const char *advice, struct error *e)
{
    const char *is = io_misfit(path, is_written);

    return is ? error_set(e, e->status, "%s: is %s; %s", path, is, advice) : e->status;
}

void io_file_use_direct(struct io_file *f)
{
    /* GlusterFS says afterwards, and of whatever is done to the file next, that it refused a write whose length is not
     * aligned, such as one that a limit has made shorter. */
    if (f->io->ops->refresh && f->io->ops->refresh(f->io->ctx, f->fd) != 0)
        return;
    int fd = f->io->ops->open(f->io->ctx, f->path, O_WRONLY | O_DIRECT, 0);
    f->direct = fd < 0 ? -1 : fd;
}

int io_file_close(struct io_file *f, struct error *e)
{
    int status = DELTAFS_OK, fds[2] = {f->fd, f->direct};

    for (int i = 0; i < 2 && f->path; i++) {
        int rc = fds[i] >= 0 ? f->io->ops->close(f->io->ctx, fds[i]) : 0;
        if (rc < 0)
            status = error_system(e, -rc, "close", f->path);
    }
    free(f->path);
    *f = (struct io_file){.fd = -1, .direct = -1};
    return status;
}

static int io_sync(struct io_file *f, int fd, struct error *e)
{
    int rc;

    do
        rc = f->io->ops->sync(f->io->ctx, fd);
    while (rc == -EINTR);
    return rc < 0 ? error_system(e, -rc, "sync", f->path) : DELTAFS_OK;
}

int io_file_release(struct io_file *f, int is_synced, struct error *e)
{
    int fd = f->fd, status = is_synced ? io_sync(f, fd, e) : DELTAFS_OK, rc = f->io->ops->close(f->io->ctx, fd);

    f->fd = -1;
    f->is_released = 1;
    f->is_synced = is_synced;
    return rc < 0 && status == DELTAFS_OK ? error_system(e, -rc, "close", f->path) : status;
}

static int io_open_released(struct io_file *f, int *fd, struct error *e)
{
    char room[PATH_ROOM];
    const char *whole = io_find(f->io, f->path, room);

    do
        *fd = f->io->ops->open(f->io->ctx, whole, f->access | IO_AWAITED, 0);
    while (*fd == -EINTR);
    return *fd == -EMLINK ? io_refuse_names(f->path, e) : io_done(*fd, "open", f->path, e);
}

int io_begin(struct io_file *f, int *fd, struct error *e)
{
    *fd = f->fd;
    return f->is_released ? io_open_released(f, fd, e) : DELTAFS_OK;
}

int io_end(struct io_file *f, int fd, int status, struct error *e)
{
    int rc = f->is_released ? f->io->ops->close(f->io->ctx, fd) : 0;

    return rc < 0 && status == DELTAFS_OK ? error_system(e, -rc, "close", f->path) : status;
}

static int io_failed_at(struct io_file *f, int errnum, const char *what, uint64_t offset, size_t n, struct error *e)
{
    char text[96];

    snprintf(text, sizeof text, "%s %zu bytes at offset %llu", what, n, (unsigned long long)offset);
    return error_system(e, errnum, text, f->path);
}

static int io_read(struct io_file *f, int fd, uint64_t offset, uint8_t *p, size_t n, struct error *e)
{
    unsigned waited = 0;

    while (n > 0) {
        ssize_t got = f->io->ops->pread(f->io->ctx, fd, p, n, offset);
        if (got == -EINTR)
            continue;
        if (got < 0)
            return io_failed_at(f, (int)-got, "read", offset, n, e);
        f->io->reads++;
        f->io->bytes_read += (uint64_t)got;
        if (got == 0 && io_file_wait(f, &waited))
            continue;
        if (got == 0)
            return error_damaged(e, f->path, offset, "the file ends %zu bytes too early", n);
        p += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return DELTAFS_OK;
}

int io_file_read(struct io_file *f, uint64_t offset, void *bytes, size_t n, struct error *e)
{
    int fd, status = io_begin(f, &fd, e);

    return status == DELTAFS_OK ? io_end(f, fd, io_read(f, fd, offset, bytes, n, e), e) : status;
}

int io_file_advise(struct io_file *f, uint64_t offset, uint64_t n)
{
    if (!f->io->ops->advise || f->is_released)
        return 0;
    f->io->ops->advise(f->io->ctx, f->fd, offset, n);
    return 1;
}

/* How much of `n` bytes to write next, and by which descriptor: around the page cache only from one page's begin to
 * another's. */
static size_t io_piece(const struct io_file *f, uint64_t offset, const uint8_t *bytes, size_t n, int *fd)
{
    size_t before = (size_t)(MEMORY_PAGE - offset % MEMORY_PAGE) % MEMORY_PAGE;

    if (f->direct < 0 || f->is_refused || (uintptr_t)bytes % MEMORY_PAGE != offset % MEMORY_PAGE ||
        n < before + IO_DIRECT_MIN)
        return n;
    if (before > 0)
        return before;
    *fd = f->direct;
    return n - n % MEMORY_PAGE;
}

static int io_write(struct io_file *f, int cached, uint64_t offset, const uint8_t *p, size_t n, struct error *e)
{
    while (n > 0) {
        int fd = cached;
        size_t part = io_piece(f, offset, p, n, &fd);
        ssize_t put = f->io->ops->pwrite(f->io->ctx, fd, p, part, offset);
        if (put == -EINTR)
            continue;
        if (put == -EINVAL && fd == f->direct) {
            f->is_refused = 1;
            continue;
        }
        if (put <= 0)
            return io_failed_at(f, put < 0 ? (int)-put : ENOSPC, "write", offset, n, e);
        f->io->writes++;
        f->io->bytes_written += (uint64_t)put;
        p += put;
        offset += (uint64_t)put;
        n -= (size_t)put;
    }
    return DELTAFS_OK;
}

int io_file_write(struct io_file *f, uint64_t offset, const void *bytes, size_t n, struct error *e)
{
    int fd, status = io_begin(f, &fd, e);

    if (status != DELTAFS_OK)
        return status;
    status = io_write(f, fd, offset, bytes, n, e);
    if (status == DELTAFS_OK && f->is_synced)
        status = io_sync(f, fd, e);
    return io_end(f, fd, status, e);
}

int io_file_sync(struct io_file *f, struct error *e)
{
    int fd, status = io_begin(f, &fd, e);

    return status == DELTAFS_OK ? io_end(f, fd, io_sync(f, fd, e), e) : status;
}

int io_file_attributes(struct io_file *f, struct io_attributes *out, struct error *e)
{
    int fd, status = io_begin(f, &fd, e);

    if (status != DELTAFS_OK)
        return status;
    int rc = f->io->ops->attributes(f->io->ctx, fd, out);
    return io_end(f, fd, rc < 0 ? error_system(e, -rc, "get size and time of", f->path) : DELTAFS_OK, e);
}

/* The same as io_attributes_in, of a file that is opened for this. */
static int attributes_of_name(struct io_file *folder, const char *name, struct io_attributes *out, struct error *e)
{
    char path[PATH_ROOM];
    struct io_file file;
    int status = io_file_open_name(folder->io, io_path_in(path, folder->path, "%s", name), O_RDONLY, &file, e);

    return status == DELTAFS_OK ? io_file_finish(&file, io_file_attributes(&file, out, e), e) : status;
}

int io_attributes_in(struct io_file *folder, int is_late, const char *name, struct io_attributes *out, struct error *e)
{
    const struct io_ops *ops = folder->io->ops;

    *out = (struct io_attributes){.is_removed = 1};
    if (is_late || !ops->attributes_in) {
        int status = attributes_of_name(folder, name, out, e);
        return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
    }
    int rc = ops->attributes_in(folder->io->ctx, folder->fd, name, out);
    if (rc == 0 || rc == -ENOENT || rc == -ENOTDIR)
        return DELTAFS_OK;
    char path[PATH_ROOM];
    return error_system(e, -rc, "get size and time of", io_path_in(path, folder->path, "%s", name));
}

int io_file_size(struct io_file *f, uint64_t *out, struct error *e)
{
    struct io_attributes a;
    int status = io_file_attributes(f, &a, e);

    if (status == DELTAFS_OK)
        *out = a.size;
    return status;
}

int io_file_mtime(struct io_file *f, uint64_t *out, struct error *e)
{
    struct io_attributes a;
    int status = io_file_attributes(f, &a, e);

    if (status == DELTAFS_OK && !a.is_regular)
        return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: is no regular file", f->path);
    if (status == DELTAFS_OK)
        *out = a.mtime;
    return status;
}

int io_file_truncate(struct io_file *f, uint64_t size, struct error *e)
{
    int rc, fd, status = io_begin(f, &fd, e);

    if (status != DELTAFS_OK)
        return status;
    do
        rc = f->io->ops->truncate(f->io->ctx, fd, size);
    while (rc == -EINTR);
    return io_end(f, fd, rc < 0 ? error_system(e, -rc, "truncate", f->path) : DELTAFS_OK, e);
}

int io_file_allocate(struct io_file *f, uint64_t offset, uint64_t n)
{
    int rc = -EOPNOTSUPP;

    if (f->io->ops->allocate)
        do
            rc = f->io->ops->allocate(f->io->ctx, f->fd, offset, n);
        while (rc == -EINTR);
    return rc == 0;
}

static int io_lock(struct io_file *f, uint64_t from, uint64_t n, enum io_lock how)
{
    int rc;

    do
        rc = f->io->ops->lock(f->io->ctx, f->fd, from, n, how);
    while (rc == -EINTR);
    return rc;
}

int io_file_lock(struct io_file *f, int *is_sure, struct error *e)
{
    struct io_attributes a = {0};
    int rc = io_lock(f, 0, 0, IO_LOCK_TRY);

    *is_sure = rc == 0;
    if (rc == -EAGAIN)
        return error_set(e, DELTAFS_ERR_BUSY, "%s: another process has locked it", f->path);
    /* GlusterFS opens a file only when it must, which may be now, and then the file may be gone. */
    if (rc != -ENOENT && f->io->ops->refresh)
        rc = f->io->ops->refresh(f->io->ctx, f->fd);
    int is_gone = rc == -ENOENT || rc == -ESTALE, status = is_gone ? DELTAFS_OK : io_file_attributes(f, &a, e);
    if (is_gone || a.is_removed)
        return error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: has been removed meanwhile", f->path);
    return status;
}

int io_file_is_locked(struct io_file *f, int *is_free)
{
    int rc = io_lock(f, 0, 0, IO_LOCK_QUERY);

    *is_free = rc == 0;
    return rc == -EAGAIN;
}

int io_file_lock_wait(struct io_file *f, uint64_t from, uint64_t n, int is_shared, struct error *e)
{
    int rc = io_lock(f, from, n, is_shared ? IO_LOCK_SHARED : IO_LOCK);

    return rc < 0 ? error_system(e, -rc, "lock (the file system must have locks for this)", f->path) : DELTAFS_OK;
}

int io_file_unlock(struct io_file *f, uint64_t from, uint64_t n, struct error *e)
{
    int rc = io_lock(f, from, n, IO_UNLOCK);

    return rc < 0 ? error_system(e, -rc, "unlock", f->path) : DELTAFS_OK;
}

/* `what` it does to `path`, for the message. */
#define IO_CALL(name, parameters, arguments, what, path)                                                               \
    int io_##name parameters                                                                                           \
    {                                                                                                                  \
        return io_done(io->ops->name arguments, what, path, e);                                                        \
    }
IO_CALL(mkdir, (struct io * io, const char *path, struct error *e), (io->ctx, path, 0777), "make the folder", path)
IO_CALL(unlink, (struct io * io, const char *path, struct error *e), (io->ctx, path), "remove", path)
IO_CALL(rmdir, (struct io * io, const char *path, struct error *e), (io->ctx, path), "remove the folder", path)
IO_CALL(rename, (struct io * io, const char *from, const char *to, struct error *e), (io->ctx, from, to),
        "rename to its final name", from)
IO_CALL(exchange, (struct io * io, const char *a, const char *b, struct error *e), (io->ctx, a, b),
        "exchange with another folder (as on many network file systems)", a)
IO_CALL(link, (struct io * io, const char *from, const char *to, struct error *e), (io->ctx, from, to),
        "give the file its name", to)
IO_CALL(symlink, (struct io * io, const char *target, const char *path, struct error *e), (io->ctx, target, path),
        "make the symbolic link", path)

int io_readlink(struct io *io, const char *path, char *target, size_t room, struct error *e)
{
    ssize_t n = io->ops->readlink(io->ctx, path, target, room);

    if (n >= 0 && (size_t)n < room) {
        target[n] = '\0';
        return DELTAFS_OK;
    }
    if (n >= 0)
        return error_damaged(e, path, 0, "the symbolic link is too long");
    io_done(n, "read the symbolic link", path, e);
    return n == -EINVAL || n == -ENOTDIR ? (e->status = DELTAFS_ERR_NOT_FOUND) : e->status;
}

struct io_listing {
    int (*fn)(void *arg, const char *name, struct error *e);
    void *arg;
    struct error *e;
    int status;
};

static int io_list_name(void *arg, const char *name)
{
    struct io_listing *l = arg;

    l->status = l->fn(l->arg, name, l->e);
    return l->status == DELTAFS_OK ? 0 : 1;
}

int io_list(struct io *io, const char *folder, int (*fn)(void *arg, const char *name, struct error *e), void *arg,
            struct error *e)
{
    struct io_listing l = {fn, arg, e, DELTAFS_OK};
    char room[PATH_ROOM];
    int rc = io->ops->list(io->ctx, io_find(io, folder, room), io_list_name, &l);

    if (rc >= 0)
        return l.status;
    io_done(rc, "list", folder, e);
    return rc == -ENOTDIR ? (e->status = DELTAFS_ERR_NOT_DELTAFS) : e->status;
}

static int names_add(void *arg, const char *name, struct error *e)
{
    return bytes_append(arg, name, strlen(name) + 1, e);
}

int io_names(struct io *io, const char *folder, struct bytes *names, struct error *e)
{
    return io_list(io, folder, names_add, names, e);
}

int io_sync_folder(struct io *io, const char *path, struct error *e)
{
    char room[PATH_ROOM];
    int rc;

    do
        rc = io->ops->sync_folder(io->ctx, io_find(io, path, room));
    while (rc == -EINTR);
    return io_done(rc, "sync the folder", path, e);
}

int io_sync_parent(struct io *io, const char *path, struct error *e)
{
    char *parent = path_parent(path);
    int status = parent ? io_sync_folder(io, parent, e) : error_no_memory(e, strlen(path), "a path");

    free(parent);
    return status;
}

char *io_path_in(char path[PATH_ROOM], const char *folder, const char *fmt, ...)
{
    size_t n = (size_t)snprintf(path, PATH_ROOM, "%s/", folder);
    va_list ap;

    va_start(ap, fmt);
    if (n < PATH_ROOM)
        vsnprintf(path + n, PATH_ROOM - n, fmt, ap);
    va_end(ap);
    return path;
}
