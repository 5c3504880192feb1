/* Open logical files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "posix/locks.h"
#include "posix/file_lock.h"
#include "posix/logical_view.h"
#include "posix/mark.h"
#include "posix/next.h"
#include "posix/posix_tree.h"
#include "posix/tree_parts.h"

#define ALL_MAX ((off_t)4 << 20) /* a file of so many bytes is in its memfd when it is opened */

static int end_reading(struct file *f)
{
    int status = f->logical ? deltafs_logical_close(f->logical) : DELTAFS_OK;

    f->logical = NULL;
    return status;
}

void logical_release(struct file *f)
{
    end_reading(f);
    file_free(f);
}

static int forget(struct file *f, int fd, void *unused)
{
    (void)fd;
    (void)unused;
    f->logical = NULL;
    return 0;
}

void logical_forget(void)
{
    if (mounts.has_logical)
        file_each(forget, NULL);
}

/* Open what an open file is. *out stays NULL if its path is that of another file by now, or of none. Returns a status.
 */
static int open_same(const struct file *f, int flags, deltafs_logical **out)
{
    struct stat now;

    if (next.fstatat(AT_FDCWD, f->path, &now, 0) != 0)
        return errno == ENOENT || errno == ENOTDIR ? DELTAFS_OK : DELTAFS_ERR_IO;
    if (now.st_ino != f->st.st_ino || now.st_dev != f->st.st_dev)
        return DELTAFS_OK;
    int status = deltafs_logical_open(f->path, flags, NULL, out);
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

/* ---- Reading ---- */

int logical_read(struct file *f, void *bytes, size_t size, uint64_t at, size_t *got)
{
    int status = f->logical ? DELTAFS_OK : open_same(f, O_RDONLY, &f->logical);

    if (status == DELTAFS_OK && !f->logical)
        return ESTALE;
    if (status == DELTAFS_OK)
        status = deltafs_logical_read(f->logical, at, bytes, size, got);
    return logical_error(status);
}

/* ---- Writing ---- */

/* Bytes of the memfd become those of the file at `to`. */
static int put_span(int fd, deltafs_logical *h, struct span s, uint64_t to)
{
    uint8_t *bytes = malloc(COPY_SIZE);
    int status = bytes ? DELTAFS_OK : DELTAFS_ERR_MEMORY;

    while (s.from < s.to && status == DELTAFS_OK) {
        size_t want = s.to - s.from < COPY_SIZE ? (size_t)(s.to - s.from) : COPY_SIZE;
        ssize_t got = next.pread(fd, bytes, want, (off_t)s.from);
        if (got <= 0) {
            status = got < 0 ? DELTAFS_ERR_MEMORY : DELTAFS_OK; /* it was truncated meanwhile */
            break;
        }
        status = deltafs_logical_write(h, to, bytes, (size_t)got);
        s.from += (uint64_t)got;
        to += (uint64_t)got;
    }
    free(bytes);
    return status;
}

static int put_spans(struct file *f, int fd, deltafs_logical *h, uint64_t end)
{
    int is_added = (f->flags & O_APPEND) && f->cut == UINT64_MAX && !f->is_placed, status = DELTAFS_OK;
    uint64_t before = end;

    for (size_t i = 0; i < f->dirty.count && status == DELTAFS_OK; i++) {
        const struct span *s = &f->dirty.span[i];
        status = put_span(fd, h, *s, is_added ? end : s->from);
        end += s->to - s->from;
    }
    if (status != DELTAFS_OK && is_added) /* all of it will be put again */
        deltafs_logical_truncate(h, before);
    return status;
}

/* Bring the file to the state of the memfd, where this process has changed it. */
static int put_changes(struct file *f, int fd, deltafs_logical *h)
{
    struct stat now;
    uint64_t size = 0;
    int status = next.fstat(fd, &now) != 0 ? DELTAFS_ERR_MEMORY : deltafs_logical_size(h, &size);

    if (status == DELTAFS_OK && f->cut < size) {
        status = deltafs_logical_truncate(h, f->cut);
        size = f->cut;
    }
    if (status == DELTAFS_OK && f->is_unbounded)
        status = put_span(fd, h, (struct span){0, (uint64_t)now.st_size}, 0);
    if (status == DELTAFS_OK)
        status = put_spans(f, fd, h, size);
    if (status == DELTAFS_OK && f->cut != UINT64_MAX)
        status = deltafs_logical_extend(h, (uint64_t)now.st_size);
    return status;
}

int logical_publish(struct file *f, int fd, struct span *unseen)
{
    deltafs_logical *h = NULL;
    int error = mark_collect(f, fd, unseen), status = DELTAFS_OK;

    if (error != 0)
        return error;
    end_reading(f);
    status = open_same(f, O_RDWR, &h);
    f->is_removed = status == DELTAFS_OK && !h;
    if (f->is_removed)
        return 0;
    if (status == DELTAFS_OK)
        status = put_changes(f, fd, h);
    int closed = h ? deltafs_logical_close(h) : DELTAFS_OK;
    error = logical_error(status == DELTAFS_OK ? closed : status);
    return error == 0 && unseen->from < unseen->to ? mark_set(f, fd, unseen->to) : error;
}

/* All that the file system has: the logs of the file are several. */
int logical_sync(const char *path)
{
    int fd = next.openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fd < 0 || next.syncfs(fd) != 0 ? errno : 0;

    if (fd >= 0)
        next.close(fd);
    return error;
}

/* ---- Opening and closing ---- */

int logical_close(struct file *f, int fd)
{
    lock_take(&f->lock);
    int error = file_publish(f, fd);
    end_reading(f);
    file_lock_end(f);
    lock_give(&f->lock);
    return error;
}

/* Fill the memfd, as far as the file is small and is to be read. If others have it, too, and it had all until now, they
 * go on reading from it, also meanwhile. */
static int fill_memfd(struct file *f, int fd)
{
    int is_small = f->st.st_size <= ALL_MAX || (f->is_shared && f->has_all);

    if (next.ftruncate(fd, f->st.st_size) != 0)
        return errno;
    f->has_all = f->st.st_size == 0;
    return (f->flags & O_ACCMODE) != O_WRONLY && is_small ? file_load(f, fd) : 0;
}

int logical_refresh(struct file *f, int fd)
{
    end_reading(f);
    spans_clear(&f->dirty);
    int error = logical_error(open_same(f, O_RDONLY, &f->logical));
    if (error != 0 || !f->logical)
        return error;
    error = logical_stat_open(f->path, f->logical, &f->st);
    if (error == 0)
        error = fill_memfd(f, fd);
    int marked = mark_set_at_end(f, fd);
    return error == 0 ? marked : error;
}

static int open_bytes(struct file *f, int fd)
{
    int is_written = (f->flags & O_ACCMODE) != O_RDONLY, error = 0;

    if (is_written && next.faccessat(AT_FDCWD, f->path, W_OK, AT_EACCESS) != 0)
        return errno;
    error = is_written && (f->flags & O_TRUNC) ? logical_truncate(f->path, 0) : logical_publish_open(f->path);
    if (error == 0)
        error = logical_error(deltafs_logical_open(f->path, O_RDONLY, NULL, &f->logical));
    if (error == 0)
        error = logical_stat_open(f->path, f->logical, &f->st);
    return error == 0 ? fill_memfd(f, fd) : error;
}

int logical_open(const char *path, int flags, int *fd)
{
    struct file *f;

    *fd = -1;
    int error = flags & O_DIRECTORY ? ENOTDIR : file_create(FILE_TREE, logical_mount(), strdup(path), flags, &f);
    if (error != 0)
        return error;
    tree_take_over(f);
    error = file_make_descriptor(f, fd);
    if (error == 0)
        error = open_bytes(f, *fd);
    if (error == 0)
        error = file_set(f, *fd);
    if (error != 0)
        end_reading(f);
    return file_end_open(f, *fd, error);
}
