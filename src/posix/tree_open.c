#include "posix/posix_tree.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "posix/file_lock.h"
#include "posix/locks.h"
#include "posix/logical_view.h"
#include "posix/mark.h"
#include "posix/next.h"
#include "posix/pooled.h"
#include "posix/tree_parts.h"
#include "posix/umask.h"

#define ALL_MAX        ((uint64_t)4 << 20) /* a file of so many bytes is in its memfd when it is opened */
#define MEMFD_NAME_MAX 200                 /* the kernel takes 249 bytes */

int tree_fill_memfd(struct file *f, int fd, deltafs_namespace_file *from)
{
    struct tree *t = f->mount->tree;
    uint64_t size = (uint64_t)f->st.st_size;
    int status = DELTAFS_OK;

    /* If it was read from the memfd until now, a child may go on with that. */
    f->has_all = size == 0 || ((f->flags & O_ACCMODE) != O_WRONLY && (f->has_all || size <= ALL_MAX));
    for (uint64_t at = 0; f->has_all && at < size && status == DELTAFS_OK;) {
        size_t got = 0;
        status = deltafs_namespace_file_read(from, at, t->copy, COPY_SIZE, &got);
        if (status == DELTAFS_OK && (got == 0 || next.pwrite(fd, t->copy, got, (off_t)at) != (ssize_t)got))
            status = got == 0 ? DELTAFS_ERR_IO : DELTAFS_ERR_MEMORY;
        at += got;
    }
    if (status == DELTAFS_OK && !f->has_all && next.ftruncate(fd, f->st.st_size) != 0)
        status = DELTAFS_ERR_MEMORY;
    return status;
}

static void forget_reader(struct file *f)
{
    if (!f->reader)
        return;
    lock_take(&f->mount->tree->lock);
    tree_close_reader(f);
    lock_give(&f->mount->tree->lock);
}

static int close_file(struct file *f, int fd)
{
    lock_take(&f->lock);
    int error = file_publish(f, fd);
    file_lock_end(f);
    lock_give(&f->lock);
    forget_reader(f);
    return error;
}

/* Another thread may have read from it while it was closed. */
static void release_file(struct file *f)
{
    forget_reader(f);
    file_free(f);
}

void tree_take_over(struct file *f)
{
    f->close = f->mount->kind == MOUNT_LOGICAL ? logical_close
               : f->mount->kind == MOUNT_POOL  ? pooled_close
                                               : close_file;
    f->release = f->mount->kind == MOUNT_LOGICAL ? logical_release
                 : f->mount->kind == MOUNT_POOL  ? pooled_release
                                                 : release_file;
}

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

int file_make_descriptor(struct file *f, int *fd)
{
    char name[MEMFD_NAME_MAX + 1];

    snprintf(name, sizeof name, "%s", last_name(f->path));
    *fd = memfd_create(name, f->flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
    if (*fd < 0)
        return errno;
    if ((f->flags & O_APPEND) && next.fcntl(*fd, F_SETFL, O_APPEND) != 0)
        return errno;
    return 0;
}

/* Open what is no file of bytes: a folder, or anything with O_PATH. */
static int open_other(struct file *f, deltafs_namespace *ns)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    int status = deltafs_namespace_stat(ns, f->path, f->flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0, &s);

    if (status != DELTAFS_OK)
        return status;
    tree_fill_stat(f->mount, &s, &f->st);
    f->kind = S_ISDIR(s.mode) ? FILE_FOLDER : FILE_TREE;
    return DELTAFS_OK;
}

static int open_bytes(struct file *f, deltafs_namespace *ns, mode_t mode, int *fd)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    deltafs_namespace_file *h = NULL;
    int is_change = f->mount->tree->is_change, is_read = (f->flags & O_ACCMODE) == O_RDONLY;
    int flags = (f->flags & O_NOFOLLOW) | (is_change ? O_RDWR | (f->flags & (O_CREAT | O_EXCL | O_TRUNC)) : O_RDONLY);
    int status = deltafs_namespace_file_open(ns, f->path, flags, mode, &h);

    if (status == DELTAFS_ERR_FOLDER && is_read && !(f->flags & O_CREAT))
        return open_other(f, ns);
    if (status == DELTAFS_OK)
        status = deltafs_namespace_file_stat(h, &s);
    if (status == DELTAFS_OK) {
        tree_fill_stat(f->mount, &s, &f->st);
        status = tree_fill_memfd(f, *fd, h);
    }
    int closed = status == DELTAFS_OK ? tree_keep_or_close(f, h) : deltafs_namespace_file_close(h);
    return status == DELTAFS_OK ? closed : status;
}

/* What a call of open changes: a file that is there is not created. */
static int open_changes(struct mount *m, const char *path, int flags)
{
    struct stat st;

    if (flags & O_PATH)
        return 0;
    if ((flags & O_TRUNC) || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return 1;
    return (flags & O_CREAT) && tree_stat(m, path, 0, &st) != 0;
}

static int open_once(struct file *f, mode_t mode, int is_change, int *fd)
{
    deltafs_namespace *ns;
    int error = tree_begin(f->mount->tree, is_change, &ns);

    if (error != 0)
        return error;
    return tree_end(f->mount->tree, f->flags & (O_PATH | O_DIRECTORY) ? open_other(f, ns)
                                                                      : open_bytes(f, ns, mode & ~current_umask(), fd));
}

int file_end_open(struct file *f, int fd, int error)
{
    if (error == 0 && fd <= STDERR_FILENO && (error = mark_begin(f, fd)) != 0)
        file_forget(fd);
    file_put(f);
    if (error != 0 && fd >= 0)
        next.close(fd);
    return error;
}

int tree_open(struct mount *m, const char *path, int flags, mode_t mode, int *fd)
{
    struct file *f;

    *fd = -1;
    if (m->tree->is_snapshot && (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH))
        return EROFS;
    int error = file_create(FILE_TREE, m, strdup(path), flags, &f);
    if (error != 0)
        return error;
    tree_take_over(f);
    error = file_make_descriptor(f, fd);
    if (error == 0 && !(flags & (O_PATH | O_DIRECTORY)))
        error = tree_publish_path(m, path, 0);
    int is_change = open_changes(m, path, flags);
    if (error == 0)
        error = open_once(f, mode, is_change, fd);
    if (error == ENOENT && (flags & O_CREAT) && !is_change) /* it was removed since */
        error = open_once(f, mode, 1, fd);
    if (error == 0 && (flags & O_DIRECTORY) && !S_ISDIR(f->st.st_mode))
        error = ENOTDIR;
    if (error == 0 && (flags & O_TRUNC) && !(flags & O_PATH)) /* other descriptors that are this file */
        error = file_each(file_refresh_same, &f->st);
    if (error == 0)
        error = file_set(f, *fd);
    if (error != 0)
        close_file(f, *fd);
    return file_end_open(f, *fd, error);
}
