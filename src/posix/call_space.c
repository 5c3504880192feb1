/* Space of files: fallocate; and locks of files. */
#include <errno.h>
#include <sys/file.h>
#include "posix/begin.h"
#include "posix/file_lock.h"
#include "posix/locks.h"
#include "posix/next.h"
#include "posix/pooled.h"
#include "posix/posix_tree.h"

/* ---- Space ---- */

#define ZEROS ((size_t)64 << 10)

/* Bytes become zero, within the size. They are written: a hole is what another process has published. With O_APPEND,
 * the descriptor itself would add them to the file; and what is put where it is must not be published with what is
 * added to the file, before it or later. */
static int make_zero(struct file *f, int fd, uint64_t from, uint64_t to)
{
    const uint8_t zeros[ZEROS] = {0};
    int is_added = f->flags & O_APPEND, error = is_added ? file_publish(f, fd) : 0;
    int own = error == 0 ? file_reopen(fd, O_WRONLY) : -1;

    if (error == 0 && own < 0)
        error = errno;
    while (error == 0 && from < to) {
        ssize_t put = next.pwrite(own, zeros, to - from < ZEROS ? (size_t)(to - from) : ZEROS, (off_t)from);
        f->is_placed |= is_added != 0;
        error = put > 0 ? file_note_written(f, fd, from, from + (uint64_t)put) : errno;
        from += put > 0 ? (uint64_t)put : 0;
    }
    if (own >= 0)
        next.close(own);
    return error == 0 && is_added ? file_publish(f, fd) : error;
}

static int extend(struct file *f, int fd, off_t size)
{
    if (f->mount->kind == MOUNT_POOL)
        return pooled_extend(f, fd, (uint64_t)size);
    return next.ftruncate(fd, size) == 0 ? file_note_truncated(f, fd, (uint64_t)size) : errno;
}

/* Nothing is reserved: a file only gets its size. */
static int allocate(struct file *f, int fd, int mode, off_t from, off_t size)
{
    int is_kept = mode & FALLOC_FL_KEEP_SIZE, is_zero = mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE);
    struct stat now;
    int error = 0;

    if (f->kind != FILE_TREE || (f->flags & O_PATH) || (f->flags & O_ACCMODE) == O_RDONLY)
        return f->kind == FILE_TREE ? EBADF : ENODEV;
    if (from < 0 || size <= 0)
        return EINVAL;
    if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
        return EOPNOTSUPP;
    if (__builtin_add_overflow(from, size, &size))
        return EFBIG;
    if (f->mount->kind == MOUNT_POOL)
        error = pooled_take_size(f, fd);
    if (error != 0 || next.fstat(fd, &now) != 0)
        return error != 0 ? error : errno;
    off_t end = size < now.st_size ? size : now.st_size;
    if (is_zero && from < end)
        error = make_zero(f, fd, (uint64_t)from, (uint64_t)end);
    if (error == 0 && !is_kept && size > now.st_size)
        error = extend(f, fd, size);
    if (error == 0 && f->mount->kind == MOUNT_POOL)
        error = file_publish(f, fd);
    return error;
}

static int allocate_inside(struct file *f, int fd, int mode, off_t from, off_t size)
{
    lock_take(&f->lock);
    int error = !file_is_at(f, fd) ? EBADF : allocate(f, fd, mode, from, size);
    lock_give(&f->lock);
    file_put(f);
    return error;
}

CALL int fallocate(int fd, int mode, off_t from, off_t size)
{
    posix_begin();
    struct file *f = file_get(fd);
    return f ? posix_result(allocate_inside(f, fd, mode, from, size)) : next.fallocate(fd, mode, from, size);
}
CALL_ALIAS(fallocate64, fallocate);

/* Returns an error number. */
CALL int posix_fallocate(int fd, off_t from, off_t size)
{
    posix_begin();
    struct file *f = file_get(fd);
    return f ? allocate_inside(f, fd, 0, from, size) : next.posix_fallocate(fd, from, size);
}
CALL_ALIAS(posix_fallocate64, posix_fallocate);

/* ---- Locks ---- */

/* Locks of a whole file work between the processes of a host, and of others if the file system of the namespace has
 * locks between them. */
CALL int flock(int fd, int operation)
{
    posix_begin();
    struct file *f = file_get(fd);
    int result = f ? posix_result(file_lock(f, fd, operation)) : next.flock(fd, operation);
    file_put(f);
    return result;
}

CALL int lockf(int fd, int command, off_t size)
{
    posix_begin();
    struct file *f = file_get(fd);
    int result;

    if (!f)
        return next.lockf(fd, command, size);
    result = posix_result(f->mount->kind == MOUNT_POOL ? pooled_lockf(f, fd, command, size) : file_refuse_lock(f));
    file_put(f);
    return result;
}
CALL_ALIAS(lockf64, lockf);
