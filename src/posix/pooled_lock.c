/* Locks of parts of a pool's files. The server that has the attributes of the file has them; it does not wait, so this
 * asks again and again. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "posix/locks.h"
#include "posix/next.h"
#include "posix/pooled_parts.h"
#include "posix/posix_tree.h"

#define NAP_MIN 50000   /* nanoseconds from one question to the next, */
#define NAP_MAX 1000000 /* which become more */

/* What the program means, from the beginning of the file on. */
static int take_range(struct file *f, int fd, const struct flock *l, struct deltafs_pool_lock *out)
{
    struct stat now = {.st_size = 0};
    off_t base = l->l_whence == SEEK_CUR ? next.lseek(fd, 0, SEEK_CUR) : 0;
    int error = l->l_whence == SEEK_END ? pooled_stat_open(f, &now) : 0;
    int is_known = l->l_whence == SEEK_SET || l->l_whence == SEEK_CUR || l->l_whence == SEEK_END;
    int64_t from, end;

    if (error != 0 || !is_known)
        return error != 0 ? error : EINVAL;
    if (__builtin_add_overflow(base + now.st_size, l->l_start, &from) || __builtin_add_overflow(from, l->l_len, &end))
        return EOVERFLOW;
    out->from = (uint64_t)(end < from ? end : from);
    out->size = (uint64_t)(end < from ? from - end : end - from);
    return from < 0 || end < 0 ? EINVAL : 0;
}

static int take_type(const struct file *f, int is_test, short type, uint32_t *out)
{
    int access = f->flags & O_ACCMODE;

    if (type != F_RDLCK && type != F_WRLCK && type != F_UNLCK)
        return EINVAL;
    *out = type == F_RDLCK ? DELTAFS_POOL_SHARED : type == F_WRLCK ? DELTAFS_POOL_EXCLUSIVE : DELTAFS_POOL_UNLOCKED;
    int is_refused = (type == F_RDLCK && access == O_WRONLY) || (type == F_WRLCK && access == O_RDONLY);
    return !is_test && is_refused ? EBADF : 0;
}

static int find(struct file *f, struct deltafs_pool_lock *lock, struct flock *l)
{
    deltafs_pool_file *h;
    int error = pooled_file_begin(f, &h);

    if (error == 0)
        error = pooled_file_end(f, deltafs_pool_file_find_lock(h, lock));
    if (error != 0)
        return error;
    if (lock->type == DELTAFS_POOL_UNLOCKED)
        l->l_type = F_UNLCK;
    else
        *l = (struct flock){.l_type = lock->type == DELTAFS_POOL_SHARED ? F_RDLCK : F_WRLCK,
                            .l_whence = SEEK_SET,
                            .l_start = (off_t)lock->from,
                            .l_len = (off_t)lock->size,
                            .l_pid = (pid_t)lock->process};
    return 0;
}

/* Others see what was written until now. */
static int set(struct file *f, int fd, const struct deltafs_pool_lock *lock)
{
    deltafs_pool_file *h;

    lock_take(&f->lock);
    int error = file_publish(f, fd);
    if (error == 0)
        error = pooled_file_begin(f, &h);
    if (error == 0) {
        f->mount->pooled->has_locks |= lock->type != DELTAFS_POOL_UNLOCKED;
        error = pooled_file_end(f, deltafs_pool_file_lock(h, lock));
    }
    lock_give(&f->lock);
    return error == EBUSY ? EAGAIN : error == ENOSPC ? ENOLCK : error;
}

/* The same, until it is not refused. Signals come only while this sleeps, so that none is too early to end the wait. */
static int set_later(struct file *f, int fd, const struct deltafs_pool_lock *lock)
{
    struct timespec nap = {.tv_nsec = NAP_MIN};
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while ((error = set(f, fd, lock)) == EAGAIN) {
        if (ppoll(NULL, 0, &nap, &before) != 0) {
            error = EINTR;
            break;
        }
        nap.tv_nsec = nap.tv_nsec * 2 < NAP_MAX ? nap.tv_nsec * 2 : NAP_MAX;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int pooled_lock(struct file *f, int fd, int command, struct flock *l)
{
    struct deltafs_pool_lock lock = {.struct_size = sizeof lock};
    int error = f->kind == FILE_TREE && !(f->flags & O_PATH) ? take_range(f, fd, l, &lock) : EBADF;

    if (error == 0)
        error = take_type(f, command == F_GETLK, l->l_type, &lock.type);
    if (error != 0)
        return error;
    if (f->is_removed) { /* what only this process has is not locked by others */
        l->l_type = command == F_GETLK ? F_UNLCK : l->l_type;
        return 0;
    }
    if (command == F_GETLK)
        return find(f, &lock, l);
    return command == F_SETLK ? set(f, fd, &lock) : set_later(f, fd, &lock);
}

int pooled_flock(struct file *f, int fd, short type, int is_at_once)
{
    struct deltafs_pool_lock lock = {.struct_size = sizeof lock};
    int error = f->kind == FILE_TREE ? take_type(f, 1, type, &lock.type) : EBADF;

    if (error != 0 || f->is_removed)
        return error;
    return is_at_once ? set(f, fd, &lock) : set_later(f, fd, &lock);
}

int pooled_lockf(struct file *f, int fd, int command, off_t size)
{
    struct flock l = {.l_type = command == F_ULOCK ? F_UNLCK : F_WRLCK, .l_whence = SEEK_CUR, .l_len = size};

    if (command != F_LOCK && command != F_TLOCK && command != F_ULOCK && command != F_TEST)
        return EINVAL;
    int error = pooled_lock(f, fd, command == F_TEST ? F_GETLK : command == F_LOCK ? F_SETLKW : F_SETLK, &l);
    return error == 0 && command == F_TEST && l.l_type != F_UNLCK ? EACCES : error;
}

void pooled_unlock(struct file *f)
{
    const struct deltafs_pool_lock all = {.struct_size = sizeof all, .type = DELTAFS_POOL_UNLOCKED};
    deltafs_pool_file *h;

    if (f->mount->pooled->has_locks && f->kind == FILE_TREE && !(f->flags & O_PATH) && !f->is_removed &&
        pooled_file_begin(f, &h) == 0)
        pooled_file_end(f, deltafs_pool_file_lock(h, &all));
}
