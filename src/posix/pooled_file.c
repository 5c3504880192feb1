/* Open files of a pool. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "posix/locks.h"
#include "posix/mark.h"
#include "posix/next.h"
#include "posix/pooled_parts.h"
#include "posix/posix_tree.h"
#include "posix/tree_parts.h"
#include "posix/umask.h"

#define SIZE_TRIES 8

/* ---- The file in the pool ---- */

/* One that was inherited is opened by its path. Another process may have renamed it, and created another file there. */
static int open_inherited(struct file *f, deltafs_pool *pool)
{
    struct deltafs_pool_stat s = {.struct_size = sizeof s};
    deltafs_pool_file *h = NULL;
    int status = deltafs_pool_file_open(pool, f->path, O_RDWR, 0, &h);

    if (status == DELTAFS_OK)
        status = deltafs_pool_file_stat(h, &s);
    if (status == DELTAFS_OK && s.inode != f->st.st_ino)
        status = DELTAFS_ERR_NOT_FOUND;
    if (status == DELTAFS_OK)
        f->pooled = h;
    else
        deltafs_pool_file_close(h);
    return status;
}

/* Begin to use it. The handle is that of the process that was forked, too: it is only a number. */
int pooled_file_begin(struct file *f, deltafs_pool_file **out)
{
    deltafs_pool *pool;
    int error = pooled_begin(f->mount, &pool);

    if (error != 0)
        return error;
    int status = f->pooled ? DELTAFS_OK : open_inherited(f, pool);
    *out = f->pooled;
    return status == DELTAFS_OK ? 0 : pooled_file_end(f, status);
}

int pooled_file_end(struct file *f, int status)
{
    int error = pooled_end(f->mount, status);

    return error == ENOENT ? ESTALE : error;
}

int pooled_stat_open(struct file *f, struct stat *out)
{
    struct deltafs_pool_stat s = {.struct_size = sizeof s};
    deltafs_pool_file *h;
    int has_state = f->kind == FILE_TREE && !(f->flags & O_PATH) && !f->is_removed;
    int error = has_state ? pooled_file_begin(f, &h) : -1;

    if (error == 0)
        error = pooled_file_end(f, deltafs_pool_file_stat(h, &s));
    if (error == 0)
        pooled_fill_stat(f->mount, &s, &f->st);
    *out = f->st;
    return error == -1 ? 0 : error;
}

/* Give the memfd, all of which is published, a size. What others add to it from now on is behind the mark. */
static int set_size(struct file *f, int fd, off_t size)
{
    if (next.ftruncate(fd, size) != 0)
        return errno;
    return f->is_shared && (f->flags & O_APPEND) ? mark_set(f, fd, (uint64_t)size) : 0;
}

int pooled_take_size(struct file *f, int fd)
{
    struct stat now;
    int error = 0;

    if (f->has_all || f->is_mapped || f->is_removed)
        return 0;
    /* Again if another process that shares it has added something meanwhile. */
    for (int i = 0; i < SIZE_TRIES && error == 0 && (i == 0 || file_has_changes(f, fd)); i++) {
        error = file_publish(f, fd);
        error = error == 0 ? pooled_stat_open(f, &now) : error;
    }
    return error == 0 ? set_size(f, fd, now.st_size) : error;
}

int pooled_cut(struct file *f, int fd, uint64_t size)
{
    deltafs_pool_file *h;
    int error = file_publish(f, fd);

    if (error == 0 && !f->is_removed && (error = pooled_file_begin(f, &h)) == 0)
        error = pooled_file_end(f, deltafs_pool_file_truncate(h, size));
    if (error == 0)
        error = set_size(f, fd, (off_t)size);
    if (error == 0)
        f->st.st_size = (off_t)size;
    return error;
}

int pooled_extend(struct file *f, int fd, uint64_t size)
{
    deltafs_pool_file *h;
    int error = file_publish(f, fd);

    if (error == 0 && !f->is_removed && (error = pooled_file_begin(f, &h)) == 0)
        error = pooled_file_end(f, deltafs_pool_file_extend(h, size));
    return error == 0 ? set_size(f, fd, (off_t)size) : error;
}

/* ---- Reading and writing ---- */

int pooled_is_direct(const struct file *f)
{
    return f->mount->kind == MOUNT_POOL && f->kind == FILE_TREE && !f->has_all && !f->is_shared && f->mappings == 0;
}

void pooled_unload(struct file *f)
{
    if (f->dirty.count == 0 && !f->is_mapped && !f->is_removed && !f->is_unbounded)
        f->has_all = 0;
}

int pooled_read_bytes(struct file *f, void *bytes, size_t size, uint64_t at, size_t *got)
{
    deltafs_pool_file *h;
    int error = pooled_file_begin(f, &h);

    return error == 0 ? pooled_file_end(f, deltafs_pool_file_read(h, at, bytes, size, got)) : error;
}

#define AT_OFFSET ((off_t)-1)

ssize_t pooled_read(struct file *f, int fd, void *bytes, size_t size, off_t at)
{
    off_t from = at == AT_OFFSET ? next.lseek(fd, 0, SEEK_CUR) : at;
    size_t got = 0;
    int error = from < 0 ? errno : pooled_read_bytes(f, bytes, size, (uint64_t)from, &got);

    if (error != 0)
        return posix_result(error);
    if (at == AT_OFFSET && got > 0)
        next.lseek(fd, from + (off_t)got, SEEK_SET);
    return (ssize_t)got;
}

#define AT_END UINT64_MAX

/* *at: AT_END gets where that was. */
static int write_bytes(struct file *f, const void *bytes, size_t size, uint64_t *at)
{
    deltafs_pool_file *h;
    int error = pooled_file_begin(f, &h);

    if (error != 0)
        return error;
    int status =
        *at == AT_END ? deltafs_pool_file_append(h, bytes, size, at) : deltafs_pool_file_write(h, *at, bytes, size);
    return pooled_file_end(f, status);
}

ssize_t pooled_write(struct file *f, int fd, const void *bytes, size_t size, off_t at)
{
    off_t from = at == AT_OFFSET && !(f->flags & O_APPEND) ? next.lseek(fd, 0, SEEK_CUR) : at;
    uint64_t to = f->flags & O_APPEND ? AT_END : (uint64_t)from;
    int error = to != AT_END && from < 0 ? errno : write_bytes(f, bytes, size, &to);

    if (error != 0)
        return posix_result(error);
    off_t until = (off_t)(to + size);
    if (until > f->st.st_size && next.ftruncate(fd, until) == 0)
        f->st.st_size = until;
    if (at == AT_OFFSET)
        next.lseek(fd, until, SEEK_SET);
    return (ssize_t)size;
}

/* ---- What is only in the memfd ---- */

/* To its own place, or to the end of the file. */
static int put_span(struct file *f, int fd, struct span s, int is_added, uint8_t *bytes)
{
    int error = 0;

    while (s.from < s.to && error == 0) {
        size_t want = s.to - s.from < COPY_SIZE ? (size_t)(s.to - s.from) : COPY_SIZE;
        ssize_t got = next.pread(fd, bytes, want, (off_t)s.from);
        if (got <= 0)
            return got < 0 ? errno : 0; /* it was truncated meanwhile */
        uint64_t to = is_added ? AT_END : s.from;
        error = write_bytes(f, bytes, (size_t)got, &to);
        s.from += (uint64_t)got;
    }
    return error;
}

struct putting {
    struct file *f;
    int is_added;
    uint8_t *bytes;
};

static int put_data(void *arg, int fd, struct span s)
{
    const struct putting *p = arg;

    return put_span(p->f, fd, s, p->is_added, p->bytes);
}

int pooled_publish(struct file *f, int fd, struct span *unseen)
{
    int is_added = (f->flags & O_APPEND) && f->mappings == 0, error = mark_collect(f, fd, unseen);
    uint8_t *bytes = malloc(COPY_SIZE);
    struct stat now = {.st_size = 0};

    if (!bytes)
        error = ENOMEM;
    if (error == 0 && f->is_unbounded && next.fstat(fd, &now) == 0)
        error = put_span(f, fd, (struct span){0, (uint64_t)now.st_size}, 0, bytes);
    struct putting p = {f, is_added, bytes};
    for (size_t i = 0; i < f->dirty.count && error == 0; i++)
        error = file_each_data(f, fd, f->dirty.span[i], put_data, &p);
    free(bytes);
    return error == 0 && unseen->from < unseen->to ? mark_set(f, fd, unseen->to) : error;
}

/* ---- Opening and closing ---- */

int pooled_close(struct file *f, int fd)
{
    lock_take(&f->lock);
    int error = file_publish(f, fd);
    pooled_unlock(f);
    lock_give(&f->lock);
    return error;
}

void pooled_release(struct file *f)
{
    if (f->pooled)
        deltafs_pool_file_close(f->pooled);
    file_free(f);
}

/* A folder, or anything with O_PATH. */
static int open_other(struct file *f)
{
    int error = pooled_stat(f->mount, f->path, f->flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0, &f->st);

    f->kind = error == 0 && S_ISDIR(f->st.st_mode) ? FILE_FOLDER : FILE_TREE;
    return error == 0 && (f->flags & O_DIRECTORY) && f->kind != FILE_FOLDER ? ENOTDIR : error;
}

static int open_bytes(struct file *f, int fd, mode_t mode)
{
    struct deltafs_pool_stat s = {.struct_size = sizeof s};
    int flags = O_RDWR | (f->flags & (O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW)),
        is_read = (f->flags & O_ACCMODE) == O_RDONLY;
    deltafs_pool *pool;
    int error =
        (flags & O_CREAT) && f->path[strlen(f->path) - 1] == '/' ? EISDIR : pooled_check_slash(f->mount, f->path);

    error = error == 0 ? pooled_begin(f->mount, &pool) : error;
    if (error != 0)
        return error;
    int status = deltafs_pool_file_open(pool, f->path, flags, mode & 07777 & ~current_umask(), &f->pooled);
    if (status == DELTAFS_OK)
        status = deltafs_pool_file_stat_opened(f->pooled, &s);
    error = pooled_end(f->mount, status);
    if (error == EISDIR && is_read && !(f->flags & O_CREAT))
        return open_other(f);
    if (error == 0)
        pooled_fill_stat(f->mount, &s, &f->st);
    return error == 0 && s.size > 0 && next.ftruncate(fd, (off_t)s.size) != 0 ? errno : error;
}

int pooled_open(struct mount *m, const char *path, int flags, mode_t mode, int *fd)
{
    struct file *f;

    *fd = -1;
    int error = file_create(FILE_TREE, m, strdup(path), flags, &f);
    if (error != 0)
        return error;
    tree_take_over(f);
    error = file_make_descriptor(f, fd);
    if (error == 0)
        error = flags & (O_PATH | O_DIRECTORY) ? open_other(f) : open_bytes(f, *fd, mode);
    if (error == 0)
        error = file_set(f, *fd);
    return file_end_open(f, *fd, error);
}
