/* Open files, and changes that are not made by their descriptors: by their paths, or by other processes. */
#include <errno.h>
#include <fcntl.h>
#include "posix/locks.h"
#include "posix/follow.h"
#include "posix/logical_view.h"
#include "posix/mark.h"
#include "posix/next.h"
#include "posix/posix_tree.h"
#include "posix/tree_parts.h"

/* ---- The state that the namespace has ---- */

static int is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Have the bytes and the attributes of the file `from`. If that fails, they are read later. */
static int take_state(struct file *f, int fd, deltafs_namespace_file *from, const struct stat *now)
{
    /* A child that reads from the memfd meanwhile must not find it empty. But with O_APPEND all is put at the end. */
    off_t size = f->has_all && !(f->flags & O_APPEND) ? now->st_size : 0;

    tree_close_reader(f);
    f->st = *now;
    spans_clear(&f->dirty);
    int status = next.ftruncate(fd, size) == 0 ? tree_fill_memfd(f, fd, from) : DELTAFS_ERR_MEMORY;
    if (status != DELTAFS_OK) {
        f->has_all = 0;
        next.ftruncate(fd, now->st_size);
    }
    int error = mark_set_at_end(f, fd);
    return status == DELTAFS_OK && error != 0 ? DELTAFS_ERR_MEMORY : status;
}

/* A file that is lost stays as it is. */
static int look_again(struct file *f, int fd, deltafs_namespace *ns)
{
    deltafs_namespace_file *from = NULL;
    struct stat now;
    int status = tree_open_same(f, ns, O_RDONLY, &now, &from);

    if (!from)
        return status;
    if (is_same_time(now.st_ctim, f->st.st_ctim) && now.st_size == f->st.st_size)
        return deltafs_namespace_file_close(from);
    status = take_state(f, fd, from, &now);
    int closed = status == DELTAFS_OK ? tree_keep_or_close(f, from) : deltafs_namespace_file_close(from);
    return status == DELTAFS_OK ? closed : status;
}

int file_refresh(struct file *f, int fd)
{
    struct tree *t = f->mount->tree;
    deltafs_namespace *ns;

    if (f->kind != FILE_TREE || (f->flags & O_PATH) || f->is_removed || f->is_mapped || file_has_changes(f, fd))
        return 0;
    if (f->mount->kind == MOUNT_LOGICAL)
        return logical_refresh(f, fd);
    int error = tree_begin(t, 0, &ns);
    return error == 0 ? tree_end(t, look_again(f, fd, ns)) : error;
}

/* ---- Files that are open here, by a path ---- */

static int is_same_file(const struct file *f, const struct stat *st)
{
    return f->kind != FILE_PARTICLE && f->st.st_ino == st->st_ino && f->st.st_dev == st->st_dev;
}

static int count_changed(struct file *f, int fd, void *count)
{
    *(int *)count += file_has_changes(f, fd);
    return 0;
}

static int publish_same(struct file *f, int fd, void *stat)
{
    return f->kind == FILE_TREE && is_same_file(f, stat) ? file_publish_locked(f, fd, NULL) : 0;
}

int tree_publish_path(struct mount *m, const char *path, int flags)
{
    struct stat st;
    int count = 0;

    file_each(count_changed, &count);
    return count > 0 && tree_stat(m, path, flags, &st) == 0 ? file_each(publish_same, &st) : 0;
}

static int count_open(struct file *f, int fd, void *count)
{
    (void)fd;
    *(int *)count += f->kind != FILE_PARTICLE;
    return 0;
}

/* The bytes of a file that is mapped are changed by the mapping, so it only gets its size. */
int file_refresh_same(struct file *f, int fd, void *stat)
{
    const struct stat *now = stat;
    struct stat memfd;
    int error = 0;

    if (!is_same_file(f, now) || !file_take(f, fd))
        return 0;
    if (f->is_mapped && (next.fstat(fd, &memfd) != 0 || memfd.st_size != now->st_size))
        file_forget_sum(f);
    if (f->kind == FILE_TREE && f->is_mapped && next.ftruncate(fd, now->st_size) != 0)
        error = errno;
    if (f->kind == FILE_TREE && !f->is_mapped && !(f->flags & O_PATH))
        error = file_refresh(f, fd);
    else
        f->st = *now;
    lock_give(&f->lock);
    return error;
}

int tree_refresh_path(struct mount *m, const char *path, int flags)
{
    struct stat st;
    int count = 0;

    file_each(count_open, &count);
    return count > 0 && inside_stat(m, path, flags, &st) == 0 ? file_each(file_refresh_same, &st) : 0;
}
