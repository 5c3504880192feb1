#include "posix/file_lock.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include "posix/internal.h"
#include "posix/locks.h"
#include "posix/next.h"
#include "posix/pooled.h"
#include "posix/posix_tree.h"

/* Whether there are locks: nothing else is changed by two. */
static int has_locks(const struct file *f)
{
    return f->mount->kind == MOUNT_LOGICAL || (f->mount->kind == MOUNT_NAMESPACE && !tree_is_snapshot(f->mount->tree));
}

/* The lock of a logical file is the folder's, as it is for those that have only a descriptor of that. */
static int open_folder(struct file *f)
{
    struct stat st;
    int fd = next.openat(AT_FDCWD, f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return errno;
    if (next.fstat(fd, &st) != 0 || st.st_ino != f->st.st_ino || st.st_dev != f->st.st_dev) {
        next.close(fd);
        return ESTALE;
    }
    f->lock_fd = internal_keep(fd);
    return 0;
}

/* The descriptor that holds the lock: that of this open file only. */
static int open_lock(struct file *f)
{
    char path[PATH_MAX];

    if (f->lock_fd >= 0)
        return 0;
    if (f->mount->kind == MOUNT_LOGICAL)
        return open_folder(f);
    if ((size_t)snprintf(path, sizeof path, "%s/" RUN_NAME, f->mount->target) >= sizeof path)
        return ENAMETOOLONG;
    f->lock_fd = internal_keep(next.openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    return f->lock_fd < 0 ? errno : 0;
}

#define SHARED_MAX 255 /* higher descriptors are none that a shell opens */

void file_lock_share(struct file *f, int fd)
{
    int is_possible = has_locks(f) && !(f->flags & O_PATH) && fd <= SHARED_MAX;
    int flags = is_possible && f->lock_fd < 0 ? next.fcntl(fd, F_GETFD) : FD_CLOEXEC;

    if (flags >= 0 && !(flags & FD_CLOEXEC))
        open_lock(f);
}

void file_lock_end(struct file *f)
{
    if (f->lock_fd >= 0 && f->descriptors == 0) {
        internal_close(f->lock_fd);
        f->lock_fd = -1;
    }
}

static int share(struct file *f, int fd, void *unused)
{
    (void)unused;
    if (!file_take(f, fd))
        return 0;
    file_lock_share(f, fd);
    lock_give(&f->lock);
    return 0;
}

void file_locks_share(void)
{
    file_each(share, NULL);
}

void file_lock_give(const struct file *f, struct handed_lock *out)
{
    struct stat st;

    out->fd = -1;
    if (f->lock_fd < 0 || next.fstat(f->lock_fd, &st) != 0 || next.fcntl(f->lock_fd, F_SETFD, 0) != 0)
        return;
    *out = (struct handed_lock){.fd = f->lock_fd, .device = st.st_dev, .inode = st.st_ino};
}

void file_lock_take(struct file *f, const struct handed_lock *h)
{
    struct stat st;

    if (h->fd >= 0 && next.fstat(h->fd, &st) == 0 && st.st_dev == h->device && st.st_ino == h->inode)
        f->lock_fd = internal_keep(h->fd);
}

/* Get ready to lock or unlock: others see what was written until now. But what is in a mapping may be old. */
static int prepare(struct file *f, int fd, short type)
{
    lock_take(&f->lock);
    int error = type == F_UNLCK || f->mappings == 0 ? file_publish(f, fd) : 0;
    if (error == 0)
        error = open_lock(f);
    lock_give(&f->lock);
    return error;
}

/* Have what those have written that had the lock before. */
static int refresh(struct file *f, int fd)
{
    lock_take(&f->lock);
    int error = file_refresh(f, fd);
    lock_give(&f->lock);
    return error;
}

static int set_lock(const struct file *f, int operation, short type)
{
    /* The number of changes is before. */
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};

    if (f->mount->kind == MOUNT_LOGICAL)
        return next.flock(f->lock_fd, operation) == 0 ? 0 : errno;
    l.l_start = (off_t)(sizeof(uint64_t) + (f->st.st_ino & (UINT64_MAX >> 2)));
    if (next.fcntl(f->lock_fd, operation & LOCK_NB ? F_OFD_SETLK : F_OFD_SETLKW, &l) != 0)
        return errno == EACCES ? EWOULDBLOCK : errno;
    return 0;
}

int file_lock(struct file *f, int fd, int operation)
{
    int what = operation & ~LOCK_NB;
    short type = what == LOCK_SH ? F_RDLCK : what == LOCK_EX ? F_WRLCK : F_UNLCK;

    if (what != LOCK_SH && what != LOCK_EX && what != LOCK_UN)
        return EINVAL;
    if (f->flags & O_PATH)
        return EBADF;
    int is_pool = f->mount->kind == MOUNT_POOL;
    if (!is_pool && !has_locks(f))
        return 0;
    if (f->is_inherited && f->lock_fd < 0) {
        posix_say("%s%s: flock does not work for a descriptor that was inherited %s", f->mount->point, f->path,
                  is_pool ? "from another program" : "from a program without DeltaFS");
        return ENOLCK;
    }
    if (is_pool)
        return pooled_flock(f, fd, type, operation & LOCK_NB);
    int error = prepare(f, fd, type);
    if (error != 0)
        return error;
    error = set_lock(f, operation, type);
    if (error != 0 || type == F_UNLCK)
        return error;
    error = refresh(f, fd);
    if (error != 0)
        set_lock(f, LOCK_UN, F_UNLCK);
    return error;
}

int file_refuse_lock(const struct file *f)
{
    posix_say("%s%s: the program locks parts of a file (fcntl, lockf), which does not work in a mount", f->mount->point,
              f->path);
    return ENOLCK;
}
