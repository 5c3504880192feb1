#include "posix/pooled.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "posix/locks.h"
#include "posix/names_open.h"
#include "posix/pooled_parts.h"
#include "posix/posix_tree.h"
#include "posix/route.h"
#include "posix/tree_parts.h"
#include "posix/umask.h"

int pooled_create(struct pooled **out)
{
    struct pooled *p = calloc(1, sizeof *p);

    if (!p)
        return ENOMEM;
    lock_init(&p->lock);
    *out = p;
    return 0;
}

int pooled_begin(const struct mount *m, deltafs_pool **out)
{
    struct pooled *p = m->pooled;

    if (lock_try(&p->lock) != 0)
        return EDEADLK;
    int error = p->pool ? 0 : pooled_error(deltafs_pool_open(m->target, &p->pool));
    if (error == ENOENT) /* of the pool, not of a file */
        posix_say("%s", deltafs_errmsg(NULL));
    *out = p->pool;
    if (error != 0)
        lock_give(&p->lock);
    return error == ENOENT ? EIO : error;
}

int pooled_end(const struct mount *m, int status)
{
    int error = pooled_error(status);

    lock_give(&m->pooled->lock);
    return error;
}

int pooled_error(int status)
{
    int error = status == DELTAFS_OK ? 0 : deltafs_namespace_errno(status);

    if (error == EIO)
        posix_say("%s", deltafs_errmsg(NULL));
    return error;
}

void pooled_hold(struct pooled *p)
{
    lock_take(&p->lock);
}

void pooled_let_go(struct pooled *p, int is_child)
{
    lock_release(&p->lock, is_child);
}

/* ---- Attributes ---- */

void pooled_fill_stat(const struct mount *m, const struct deltafs_pool_stat *s, struct stat *out)
{
    const struct deltafs_namespace_stat same = {.inode = s->inode,
                                                .mode = s->mode,
                                                .uid = s->uid,
                                                .gid = s->gid,
                                                .size = s->size,
                                                .mtime = s->mtime,
                                                .atime = s->atime,
                                                .ctime = s->ctime};

    tree_fill_stat(m, &same, out);
}

int pooled_stat(const struct mount *m, const char *path, int flags, struct stat *out)
{
    struct deltafs_pool_stat s = {.struct_size = sizeof s};
    deltafs_pool *pool;
    int error = pooled_begin(m, &pool), is_folder = path[strlen(path) - 1] == '/';

    if (error == 0)
        error = pooled_end(m, deltafs_pool_stat(pool, path, is_folder ? 0 : flags & AT_SYMLINK_NOFOLLOW, &s));
    if (error != 0)
        return error;
    pooled_fill_stat(m, &s, out);
    return !S_ISDIR(s.mode) && is_folder ? ENOTDIR : 0;
}

int pooled_check_slash(const struct mount *m, const char *path)
{
    struct stat st;

    return path[strlen(path) - 1] == '/' ? pooled_stat(m, path, 0, &st) : 0;
}

_Static_assert((int)DELTAFS_POOL_MODE == (int)DELTAFS_NAMESPACE_MODE &&
                   (int)DELTAFS_POOL_ATIME == (int)DELTAFS_NAMESPACE_ATIME,
               "both have the same numbers");

int pooled_set(const struct mount *m, const char *path, int flags, const struct deltafs_namespace_attributes *a)
{
    const struct deltafs_pool_attributes same = {.struct_size = sizeof same,
                                                 .set = a->set,
                                                 .mode = a->mode,
                                                 .uid = a->uid,
                                                 .gid = a->gid,
                                                 .mtime = a->mtime,
                                                 .atime = a->atime};
    deltafs_pool *pool;
    int error = pooled_check_slash(m, path);

    error = error == 0 ? pooled_begin(m, &pool) : error;
    return error == 0 ? pooled_end(m, deltafs_pool_set_attributes(pool, path, flags & AT_SYMLINK_NOFOLLOW, &same))
                      : error;
}

/* The space of all servers. */
void pooled_statfs(const struct mount *m, struct statfs *out)
{
    struct deltafs_pool_status s = {.struct_size = sizeof s};
    uint64_t used = 0, room = 0, files = 0;
    deltafs_pool *pool;

    if (pooled_begin(m, &pool) == 0) {
        int status = DELTAFS_OK;
        for (uint32_t i = 0; i < deltafs_pool_servers(pool) && status == DELTAFS_OK; i++) {
            status = deltafs_pool_status(pool, i, &s);
            used += status == DELTAFS_OK ? s.bytes : 0;
            room += status == DELTAFS_OK ? s.room : 0;
            files += status == DELTAFS_OK ? s.files + s.folders : 0;
        }
        pooled_end(m, status);
    }
    *out = (struct statfs){.f_bsize = 4096,
                           .f_frsize = 4096,
                           .f_blocks = (used + room) / 4096,
                           .f_bfree = room / 4096,
                           .f_bavail = room / 4096,
                           .f_files = files,
                           .f_ffree = 0};
}

/* ---- Names ---- */

int pooled_make_folder(const struct mount *m, const char *path, mode_t mode)
{
    deltafs_pool *pool;
    int error = pooled_begin(m, &pool);

    return error == 0 ? pooled_end(m, deltafs_pool_mkdir(pool, path, mode & 07777 & ~current_umask())) : error;
}

int pooled_symlink(const struct mount *m, const char *target, const char *path)
{
    deltafs_pool *pool;
    int error = pooled_begin(m, &pool);

    return error == 0 ? pooled_end(m, deltafs_pool_symlink(pool, target, path)) : error;
}

int pooled_readlink(const struct mount *m, const char *path, char *target, size_t room, size_t *size)
{
    deltafs_pool *pool;
    int error = pooled_begin(m, &pool);

    return error == 0 ? pooled_end(m, deltafs_pool_readlink(pool, path, target, room, size)) : error;
}

static int count_open(struct file *f, int fd, void *count)
{
    (void)fd;
    *(int *)count += f->mount->kind == MOUNT_POOL && f->kind == FILE_TREE;
    return 0;
}

static int is_file(const struct file *f, const struct stat *st)
{
    return f->kind == FILE_TREE && f->st.st_ino == st->st_ino && f->st.st_dev == st->st_dev;
}

/* What a file is that this process may have open; st_ino 0: it has not. */
static void find_open(struct mount *m, const char *path, struct stat *out)
{
    int count = 0;

    file_each(count_open, &count);
    if (count == 0 || pooled_stat(m, path, AT_SYMLINK_NOFOLLOW, out) != 0)
        *out = (struct stat){.st_ino = 0};
}

static int load_open(struct file *f, int fd, void *stat)
{
    int error = 0;

    if (!is_file(f, stat) || f->flags & O_PATH || !file_take(f, fd))
        return 0;
    error = file_load(f, fd);
    lock_give(&f->lock);
    return error;
}

/* It was not removed. */
static int unload_open(struct file *f, int fd, void *stat)
{
    if (is_file(f, stat) && !(f->flags & O_PATH) && file_take(f, fd)) {
        pooled_unload(f);
        lock_give(&f->lock);
    }
    return 0;
}

static int note_removed(struct file *f, int fd, void *stat)
{
    (void)fd;
    f->is_removed |= is_file(f, stat);
    return 0;
}

/* Remove a name. Files that this process has open go on in their memfds. */
static int remove_file(struct mount *m, const char *path)
{
    struct stat st;
    deltafs_pool *pool;

    int error = pooled_check_slash(m, path);
    if (error != 0)
        return error;
    find_open(m, path, &st);
    error = st.st_ino != 0 ? file_each(load_open, &st) : 0;
    if (error == 0)
        error = pooled_begin(m, &pool);
    if (error == 0)
        error = pooled_end(m, deltafs_pool_unlink(pool, path));
    if (st.st_ino != 0)
        file_each(error == 0 ? note_removed : unload_open, &st);
    return error;
}

int pooled_remove(struct mount *m, const char *path, int is_folder)
{
    deltafs_pool *pool;

    if (!is_folder)
        return remove_file(m, path);
    int error = pooled_begin(m, &pool);
    return error == 0 ? pooled_end(m, deltafs_pool_rmdir(pool, path)) : error;
}

static int is_open(struct file *f, int fd, void *stat)
{
    (void)fd;
    return is_file(f, stat);
}

static int rename_entry(const struct mount *m, const char *from, const char *to)
{
    deltafs_pool *pool;
    int error = pooled_begin(m, &pool);

    return error == 0 ? pooled_end(m, deltafs_pool_rename(pool, from, to)) : error;
}

/* What this process has open gets new paths, too. */
static int rename_open(struct renaming *n)
{
    names_hold(n);
    int error = rename_entry(n->mount, n->old, n->new);
    if (error == 0)
        working_folder_renamed(n->mount, n->old, n->new);
    int noted = names_end(n, error == 0);
    return error == 0 ? noted : error;
}

int pooled_rename(struct mount *m, const char *from, const char *to, unsigned flags)
{
    struct renaming n = {.mount = m, .old = from, .new = to};
    int error = pooled_stat(m, from, AT_SYMLINK_NOFOLLOW, &n.from);

    if (error == 0 && !S_ISDIR(n.from.st_mode) && to[strlen(to) - 1] == '/')
        error = ENOTDIR;
    if (error != 0)
        return error;
    if (pooled_stat(m, to, AT_SYMLINK_NOFOLLOW, &n.to) != 0)
        n.to.st_ino = 0;
    if (n.to.st_ino != 0 && (flags & RENAME_NOREPLACE))
        return EEXIST;
    if (n.to.st_ino == n.from.st_ino) /* also two names, of a folder whose renaming was interrupted */
        n.to.st_ino = 0;
    if (n.to.st_ino != 0)
        error = file_each(load_open, &n.to);
    int is_noted = S_ISDIR(n.from.st_mode) || n.to.st_ino != 0 || file_each(is_open, &n.from);
    if (error == 0)
        error = is_noted ? rename_open(&n) : rename_entry(m, from, to);
    if (error != 0 && n.to.st_ino != 0)
        file_each(unload_open, &n.to);
    return error;
}

int pooled_truncate(const struct mount *m, const char *path, uint64_t size)
{
    deltafs_pool *pool;
    int error = pooled_check_slash(m, path);

    error = error == 0 ? pooled_begin(m, &pool) : error;
    return error == 0 ? pooled_end(m, deltafs_pool_truncate(pool, path, size)) : error;
}

int pooled_list(const struct mount *m, const char *path,
                int (*fn)(void *arg, const char *name, ino_t inode, mode_t mode), void *arg)
{
    const struct deltafs_pool_entry *e = NULL;
    deltafs_pool_list *list = NULL;
    deltafs_pool *pool;
    int error = pooled_begin(m, &pool), stopped = 0;

    if (error != 0)
        return error;
    int status = deltafs_pool_list_open(pool, path, &list);
    while (status == DELTAFS_OK && stopped == 0 && (status = deltafs_pool_list_next(list, &e)) == DELTAFS_OK && e)
        stopped = fn(arg, e->name, e->inode, e->mode);
    deltafs_pool_list_close(list);
    error = pooled_end(m, status);
    return error != 0 ? error : stopped;
}
