#include "posix/posix_tree.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "posix/internal.h"
#include "posix/mark.h"
#include "posix/locks.h"
#include "posix/next.h"
#include "posix/pooled.h"
#include "posix/tree_parts.h"

int tree_create(const char *target, struct tree **out)
{
    struct tree *t = calloc(1, sizeof *t);
    const char *base = strrchr(target, '/');

    if (!t)
        return ENOMEM;
    lock_init(&t->lock);
    t->target = strdup(target);
    t->copy = malloc(COPY_SIZE);
    t->is_snapshot = strchr(base ? base : target, '@') != NULL;
    t->run = -1;
    t->stored = UINT64_MAX;
    t->is_synced = t->all_sync = getenv("DELTAFS_POSIX_SYNC") != NULL;
    *out = t;
    return t->target && t->copy ? 0 : ENOMEM;
}

int tree_is_snapshot(const struct tree *t)
{
    return t->is_snapshot;
}

/* ---- The handle ---- */

static int tree_close(struct tree *t)
{
    tree_close_readers(t, 1);
    int status = deltafs_namespace_close(t->ns);
    t->ns = NULL;
    t->is_broken = 0;
    return status;
}

static int open_handle(struct tree *t, int is_writer)
{
    deltafs_options *o = NULL;
    int status = deltafs_options_create(&o);

    if (status == DELTAFS_OK && !t->is_synced)
        status = deltafs_options_set(o, "sync", "none");
    if (status == DELTAFS_OK)
        status = deltafs_namespace_open(t->target, is_writer ? O_RDWR : O_RDONLY, o, &t->ns);
    deltafs_options_destroy(o);
    t->is_writer = is_writer;
    return status;
}

/* RUN, and the number in it. A file system without locks is good for one process at a time. */
static int run_open(struct tree *t)
{
    char path[PATH_MAX];

    if (t->run >= 0 || t->is_snapshot)
        return 0;
    if ((size_t)snprintf(path, sizeof path, "%s/" RUN_NAME, t->target) >= sizeof path)
        return ENAMETOOLONG;
    t->run = next.openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (t->run < 0)
        t->run = next.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    t->run = internal_keep(t->run);
    return 0; /* without it, others change nothing */
}

static int run_lock(struct tree *t, short type)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_len = sizeof t->changes};
    int error;

    do
        error = t->run >= 0 && next.fcntl(t->run, F_OFD_SETLKW, &l) != 0 ? errno : 0;
    while (error == EINTR);
    if (error != 0 && type != F_UNLCK)
        posix_say("%s/" RUN_NAME ": %s: several processes must not change files of this namespace at the same time",
                  t->target, strerror(error));
    return error;
}

/* A process changes something just now, or was killed when it did. */
static int is_odd(uint64_t changes)
{
    return changes % 2 != 0;
}

static uint64_t run_changes(const struct tree *t)
{
    uint64_t n = 0;

    return t->run >= 0 && next.pread(t->run, &n, sizeof n, 0) == sizeof n ? n : 0;
}

/* Returns whether it was written. */
static int run_set_changes(struct tree *t, uint64_t n)
{
    t->changes = n;
    return t->run < 0 || next.pwrite(t->run, &n, sizeof n, 0) == sizeof n;
}

static int tree_look(struct tree *t, int is_change)
{
    int status = DELTAFS_OK;

    if (t->ns && (t->is_broken || (is_change && !t->is_writer)))
        tree_close(t);
    uint64_t changes = run_changes(t);
    if (!t->ns)
        status = open_handle(t, is_change);
    else if (changes != t->changes || is_odd(changes)) {
        tree_close_readers(t, 0); /* what is open keeps the state that it was opened with */
        status = deltafs_namespace_refresh(t->ns);
    }
    if (status == DELTAFS_OK) /* otherwise it is refreshed at the next look */
        t->changes = changes;
    return status;
}

/* The error number of a status; what that does not say is said. */
static int fail(int status)
{
    int error = status == DELTAFS_OK ? 0 : deltafs_namespace_errno(status);

    if (error == EIO)
        posix_say("%s", deltafs_errmsg(NULL));
    return error;
}

/* An error number if the namespace cannot be changed; asked until it was opened to change it. */
static int check_change(const struct tree *t)
{
    if (t->is_snapshot)
        return EROFS;
    int is_refused = !t->is_writer && next.faccessat(AT_FDCWD, t->target, W_OK, AT_EACCESS) != 0;
    return is_refused && (errno == EACCES || errno == EROFS) ? errno : 0;
}

int tree_begin(struct tree *t, int is_change, deltafs_namespace **out)
{
    int refused = is_change ? check_change(t) : 0;

    if (refused != 0)
        return refused;
    if (lock_try(&t->lock) != 0)
        return EDEADLK;
    int error = run_open(t);
    if (error == 0 && is_change)
        run_lock(t, F_WRLCK);
    t->is_change = is_change;
    if (error == 0)
        error = fail(tree_look(t, is_change));
    t->keeps_stored = is_change && t->is_synced && t->changes == t->stored;
    if (error == 0 && is_change)
        run_set_changes(t, t->changes | 1);
    if (error != 0) {
        run_lock(t, F_UNLCK);
        lock_give(&t->lock);
    }
    *out = t->ns;
    return error;
}

int tree_end(struct tree *t, int status)
{
    if (t->is_change) {
        int committed = deltafs_namespace_commit(t->ns);
        t->is_broken |= committed != DELTAFS_OK;
        status = status == DELTAFS_OK ? committed : status;
        if (!run_set_changes(t, t->changes + 1))
            status = status == DELTAFS_OK ? DELTAFS_ERR_IO : status;
        else if (t->keeps_stored && committed == DELTAFS_OK)
            t->stored = t->changes;
        run_lock(t, F_UNLCK);
    }
    t->is_change = 0;
    lock_give(&t->lock);
    return fail(status);
}

/* ---- Durability ---- */

/* Sync a file or a folder. */
static int sync_path(const char *path)
{
    int fd = next.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    int error = fd < 0 ? errno : next.fsync(fd) != 0 ? errno : 0;

    if (fd >= 0)
        next.close(fd);
    return error == ENOENT ? 0 : error; /* it was removed since it was listed */
}

static int sync_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)where;
    return kind == FTW_F || kind == FTW_DP ? sync_path(path) : 0;
}

/* The files of the namespace that were written without syncing; from now on the handle syncs. Others may not, so what
 * they have changed since is stored, too. */
static int tree_sync(struct tree *t)
{
    lock_take(&t->lock);
    int error = run_open(t);
    uint64_t changes = run_changes(t);
    if (error == 0 && !t->is_snapshot && !t->all_sync && changes != t->stored) {
        if (t->ns && !t->is_synced)
            error = fail(tree_close(t));
        int result = next.nftw(t->target, sync_entry, 16, FTW_PHYS | FTW_DEPTH);
        error = error != 0 ? error : result < 0 ? errno : result;
        t->stored = error == 0 && !is_odd(changes) ? changes : UINT64_MAX;
        t->is_synced |= error == 0;
    }
    lock_give(&t->lock);
    return error;
}

int file_sync(struct file *f, int fd)
{
    int error = file_publish(f, fd);

    if (error != 0)
        return error;
    if (f->mount->kind == MOUNT_POOL) /* scratch space */
        return 0;
    return f->mount->sync ? f->mount->sync(f->path) : tree_sync(f->mount->tree);
}

/* ---- The process ---- */

int trees_commit(void)
{
    return file_each(file_publish_locked, NULL);
}

static void each_tree(void (*fn)(struct tree *t))
{
    for (size_t i = 0; i < mounts.count; i++)
        if (mounts.mount[i].tree)
            fn(mounts.mount[i].tree);
}

static void tree_hold(struct tree *t)
{
    lock_take(&t->lock);
}

static void tree_release(struct tree *t)
{
    lock_give(&t->lock);
}

/* The threads of a handle are not in the child, so it stays as it is there, and the child opens one of its own. */
static void tree_forget(struct tree *t)
{
    for (; t->readers; t->readers = t->readers->next_reader)
        t->readers->reader = NULL;
    t->ns = NULL;
    t->is_broken = 0;
    if (t->run >= 0)
        internal_close(t->run); /* its lock would be the parent's */
    t->run = -1;
    lock_release(&t->lock, 1);
}

static pthread_mutex_t forking = LOCK_INITIALIZER; /* one thread at a time */

/* A child may write to what it inherits, or the program that it executes, also by another descriptor. */
static int share(struct file *f, int fd, void *arg)
{
    (void)arg;
    if (!file_take(f, fd))
        return 0;
    int error = mark_begin(f, fd);
    lock_give(&f->lock);
    return error;
}

void trees_before_fork(void)
{
    lock_take(&forking);
    trees_commit();
    file_each(share, NULL);
    files_hold(NULL);
    each_tree(tree_hold);
    for (size_t i = 0; i < mounts.count; i++)
        if (mounts.mount[i].pooled)
            pooled_hold(mounts.mount[i].pooled);
}

void trees_after_fork(int is_child)
{
    for (size_t i = 0; i < mounts.count; i++)
        if (mounts.mount[i].pooled)
            pooled_let_go(mounts.mount[i].pooled, is_child);
    each_tree(is_child ? tree_forget : tree_release);
    files_release(is_child);
    lock_release(&forking, is_child);
}

static void tree_finish(struct tree *t)
{
    if (lock_try(&t->lock) != 0)
        return;
    if (t->ns)
        tree_close(t);
    lock_give(&t->lock);
}

int trees_end(void)
{
    int error = trees_commit();

    each_tree(tree_finish);
    return error;
}
