#include "posix/file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include "posix/internal.h"
#include "posix/locks.h"
#include "posix/next.h"

static struct {
    pthread_mutex_t lock; /* of changes */
    _Atomic(struct file *) of[FILES_MAX];
    int end; /* all are below */
} files = {.lock = LOCK_INITIALIZER};

int file_create(enum file_kind kind, struct mount *m, char *path, int flags, struct file **out)
{
    struct file *f = path ? calloc(1, sizeof *f) : NULL;

    if (!f) {
        free(path);
        return ENOMEM;
    }
    f->kind = kind;
    f->mount = m;
    f->path = path;
    f->flags = flags;
    f->cut = UINT64_MAX;
    f->lock_fd = -1;
    atomic_init(&f->users, 1);
    lock_init(&f->lock);
    *out = f;
    return 0;
}

int file_path(struct file *f, char *out, size_t room)
{
    lock_take(&f->lock);
    int n = snprintf(out, room, "%s%s", f->mount->point, f->path);
    lock_give(&f->lock);
    return n;
}

void file_put(struct file *f)
{
    if (!f || atomic_fetch_sub(&f->users, 1) > 1)
        return;
    if (f->release)
        f->release(f);
    else
        file_free(f);
}

void file_free(struct file *f)
{
    pthread_mutex_destroy(&f->lock);
    spans_fini(&f->dirty);
    spans_fini(&f->published);
    spans_fini(&f->mapped);
    if (f->mapped_sum)
        next.syscall(SYS_munmap, (void *)f->mapped_sum, sizeof *f->mapped_sum);
    free(f->entries);
    free(f->path);
    free(f);
}

int file_is_ours(int fd)
{
    return fd >= 0 && fd < FILES_MAX && atomic_load_explicit(&files.of[fd], memory_order_relaxed) != NULL;
}

int file_set(struct file *f, int fd)
{
    if (fd < 0 || fd >= FILES_MAX)
        return EMFILE;
    lock_take(&files.lock);
    atomic_fetch_add(&f->users, 1);
    f->descriptors++;
    struct file *before = atomic_exchange(&files.of[fd], f);
    if (before) /* it was closed without this library */
        before->descriptors--;
    files.end = fd >= files.end ? fd + 1 : files.end;
    lock_give(&files.lock);
    file_put(before);
    return 0;
}

struct file *file_get(int fd)
{
    if (!file_is_ours(fd))
        return NULL;
    lock_take(&files.lock);
    struct file *f = atomic_load(&files.of[fd]);
    if (f)
        atomic_fetch_add(&f->users, 1);
    lock_give(&files.lock);
    return f;
}

struct file *file_clear(int fd, int *is_last)
{
    if (!file_is_ours(fd))
        return NULL;
    lock_take(&files.lock);
    struct file *f = atomic_exchange(&files.of[fd], NULL);
    *is_last = f && --f->descriptors == 0;
    lock_give(&files.lock);
    return f;
}

int file_forget(int fd)
{
    int is_last, error = 0;
    struct file *f = file_clear(fd, &is_last);

    if (f && f->close && (is_last || f->mappings > 0))
        error = f->close(f, fd);
    else if (f && lock_try(&f->lock) == 0) /* another thread may be using the descriptor */
        lock_give(&f->lock);
    file_put(f);
    return error;
}

int file_drop(int fd)
{
    int error = file_forget(fd);

    if (error != 0)
        posix_say("descriptor %d, closed by dup2 or close_range: what was written may be lost: %s", fd,
                  strerror(error));
    return error;
}

void file_forget_range(unsigned first, unsigned last)
{
    for (unsigned fd = first; fd <= last && fd < (unsigned)files.end; fd++)
        if (!internal_is((int)fd))
            file_drop((int)fd);
}

int file_each(int (*fn)(struct file *f, int fd, void *arg), void *arg)
{
    int first = 0;

    for (int fd = 0; fd < files.end; fd++) {
        struct file *f = file_get(fd);
        int error = f ? fn(f, fd, arg) : 0;
        first = first != 0 ? first : error;
        file_put(f);
    }
    return first;
}

int file_is_at(const struct file *f, int fd)
{
    return atomic_load(&files.of[fd]) == f;
}

int file_take(struct file *f, int fd)
{
    lock_take(&f->lock);
    if (file_is_at(f, fd))
        return 1;
    lock_give(&f->lock);
    return 0;
}

int file_reopen(int fd, int flags)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return next.openat(AT_FDCWD, path, flags | O_CLOEXEC);
}

/* All descriptors of a file become copies of another one of its memfd; but one that was closed without this library. */
static int file_replace(const struct file *f, int other)
{
    struct stat memfd, now;
    int error = next.fstat(other, &memfd) == 0 ? 0 : errno;

    lock_take(&files.lock);
    for (int fd = 0; fd < files.end && error == 0; fd++) {
        if (!file_is_at(f, fd) || next.fstat(fd, &now) != 0 || now.st_ino != memfd.st_ino || now.st_dev != memfd.st_dev)
            continue;
        int flags = next.fcntl(fd, F_GETFD);
        if (next.dup3(other, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0)
            error = errno;
    }
    lock_give(&files.lock);
    return error;
}

int file_open_by_path(struct file *f, int fd)
{
    int flags = next.fcntl(fd, F_GETFL), other = flags < 0 ? -1 : file_reopen(fd, flags);
    off_t at = next.lseek(fd, 0, SEEK_CUR);

    if (other < 0) /* without /proc, it stays as it is */
        return 0;
    int error = at < 0 || next.lseek(other, at, SEEK_SET) < 0 ? errno : file_replace(f, other);
    next.close(other);
    return error;
}

/* ---- Fork ---- */

static pthread_mutex_t holding = LOCK_INITIALIZER;
static struct file *first_held; /* a descriptor that is being closed is in the table no more, and its lock is held */

static int hold_file(struct file *f, int fd, void *mount)
{
    (void)fd;
    if (f->is_held || (mount && f->mount != mount))
        return 0;
    lock_take(&f->lock);
    atomic_fetch_add(&f->users, 1);
    f->is_held = 1;
    f->held = first_held;
    first_held = f;
    return 0;
}

/* A lock that another thread has taken after those were held. */
static int free_lock(struct file *f, int fd, void *arg)
{
    (void)fd;
    (void)arg;
    if (!f->is_held)
        lock_init(&f->lock);
    return 0;
}

void files_hold(const struct mount *m)
{
    lock_take(&holding);
    file_each(hold_file, (void *)m);
}

static void let_go(int is_child)
{
    for (struct file *f; (f = first_held);) {
        first_held = f->held;
        f->is_held = 0;
        lock_release(&f->lock, is_child);
        file_put(f);
    }
    lock_release(&holding, is_child);
}

void files_let_go(void)
{
    let_go(0);
}

void files_hold_table(void)
{
    lock_take(&files.lock);
}

void files_release_table(int is_child)
{
    lock_release(&files.lock, is_child);
}

void files_release(int is_child)
{
    if (is_child)
        file_each(free_lock, NULL);
    let_go(is_child);
}
