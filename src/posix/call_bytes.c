/* Reading and writing. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include "posix/begin.h"
#include "posix/locks.h"
#include "posix/logical_view.h"
#include "posix/mark.h"
#include "posix/next.h"
#include "posix/particles.h"
#include "posix/pooled.h"
#include "posix/posix_tree.h"
#include "posix/undeclared.h"

/* ---- Reading ---- */

#define AT_OFFSET ((off_t)-1) /* at the file's offset, which moves on */
#define COPY_SIZE ((size_t)64 << 10)

/* Read from a file whose memfd has not all. */
static ssize_t read_some(struct file *f, int fd, void *bytes, size_t size, off_t at)
{
    off_t from = at == AT_OFFSET ? next.lseek(fd, 0, SEEK_CUR) : at;
    ssize_t got = from < 0 ? -1 : file_read_at(f, fd, bytes, size, (uint64_t)from);

    if (at == AT_OFFSET && got > 0)
        next.lseek(fd, from + got, SEEK_SET);
    return got;
}

/* The same of a file of a pool. */
static ssize_t read_pooled(struct file *f, int fd, void *bytes, size_t size, off_t at)
{
    int error = pooled_is_direct(f) ? 0 : file_publish(f, fd);

    return error == 0 ? pooled_read(f, fd, bytes, size, at) : posix_result(error);
}

/* Another process that shares the descriptor finds what was added at the offset (mark.h), but nothing else that is only
 * in the memfd: if it brings that to the state of the namespace, the rest would be lost. */
static int publish_shared(struct file *f, int fd)
{
    return f->is_shared && f->dirty.count > 0 ? file_publish(f, fd) : 0;
}

/* Before the offset moves, without bytes that are added there. */
static int before_seek(struct file *f, int fd)
{
    int error = mark_before_seek(f, fd);

    return error == 0 ? publish_shared(f, fd) : error;
}

/* These functions end the use of the file that they are given. */
static ssize_t read_inside(struct file *f, int fd, void *bytes, size_t size, off_t at)
{
    ssize_t got;

    lock_take(&f->lock);
    int error = at == AT_OFFSET ? before_seek(f, fd) : 0;
    if (error != 0)
        got = posix_result(error);
    else if (f->kind == FILE_FOLDER)
        got = posix_result(EISDIR);
    else if ((f->flags & O_ACCMODE) == O_WRONLY || (f->flags & O_PATH))
        got = posix_result(EBADF);
    else if (f->has_all)
        got = at == AT_OFFSET ? next.read(fd, bytes, size) : next.pread(fd, bytes, size, at);
    else if (f->mount->kind == MOUNT_POOL)
        got = read_pooled(f, fd, bytes, size, at);
    else
        got = read_some(f, fd, bytes, size, at);
    if (at == AT_OFFSET && error == 0)
        mark_after_seek(f, fd);
    lock_give(&f->lock);
    file_put(f);
    return got;
}

/* Whether a call that has failed is to be made again, by this library: the descriptor was that of a folder. */
static int is_logical(ssize_t result, int fd, const void *from)
{
    return result < 0 && errno == EISDIR && logical_take(fd, from);
}

CALL ssize_t read(int fd, void *bytes, size_t size)
{
    posix_begin();
    struct file *f = file_get(fd);
    ssize_t got = f ? read_inside(f, fd, bytes, size, AT_OFFSET) : next.read(fd, bytes, size);
    f = !f && is_logical(got, fd, CALLER) ? file_get(fd) : NULL;
    return f ? read_inside(f, fd, bytes, size, AT_OFFSET) : got;
}
CALL_ALIAS(__read, read);

CALL ssize_t pread(int fd, void *bytes, size_t size, off_t at)
{
    posix_begin();
    struct file *f = at < 0 ? NULL : file_get(fd);
    ssize_t got = f ? read_inside(f, fd, bytes, size, at) : next.pread(fd, bytes, size, at);
    f = !f && is_logical(got, fd, CALLER) ? file_get(fd) : NULL;
    return f ? read_inside(f, fd, bytes, size, at) : got;
}
CALL_ALIAS(pread64, pread);
CALL_ALIAS(__pread64, pread);

CALL ssize_t __read_chk(int fd, void *bytes, size_t size, size_t room)
{
    if (size > room)
        abort();
    return read(fd, bytes, size);
}

CALL ssize_t __pread_chk(int fd, void *bytes, size_t size, off_t at, size_t room)
{
    if (size > room)
        abort();
    return pread(fd, bytes, size, at);
}
CALL_ALIAS(__pread64_chk, __pread_chk);

/* ---- Writing ---- */

/* Where bytes end that were written: with O_APPEND they are at the end, wherever they were meant to be. */
static off_t end_of_written(const struct file *f, int fd, ssize_t put, off_t at)
{
    struct stat now;

    if (at == AT_OFFSET)
        return next.lseek(fd, 0, SEEK_CUR);
    return (f->flags & O_APPEND) && next.fstat(fd, &now) == 0 ? now.st_size : at + put;
}

static ssize_t write_bytes(struct file *f, int fd, const void *bytes, size_t size, off_t at)
{
    ssize_t put = at == AT_OFFSET ? next.write(fd, bytes, size) : next.pwrite(fd, bytes, size, at);
    off_t end = put <= 0 ? 0 : end_of_written(f, fd, put, at);
    int error = put <= 0 ? 0 : file_note_written(f, fd, (uint64_t)(end - put), (uint64_t)end);

    if (error == 0 && f->mount->kind == MOUNT_POOL)
        error = file_publish(f, fd);
    if (error == 0 && at != AT_OFFSET)
        error = publish_shared(f, fd);
    return error == 0 ? put : posix_result(error);
}

/* Another thread may have closed the file, and published what was written until then. A handler does not write into
 * the middle of a call that it has interrupted: that call would not know where the bytes are. */
static ssize_t write_inside(struct file *f, int fd, const void *bytes, size_t size, off_t at)
{
    ssize_t put;

    if (lock_try(&f->lock) != 0) {
        file_put(f);
        return posix_result(EDEADLK);
    }
    if (!file_is_at(f, fd) || f->kind == FILE_FOLDER || (f->flags & O_ACCMODE) == O_RDONLY || (f->flags & O_PATH))
        put = posix_result(EBADF);
    else if (f->kind == FILE_PARTICLE)
        put = particles_write(f, fd, bytes, size, at);
    else if (pooled_is_direct(f))
        put = pooled_write(f, fd, bytes, size, at);
    else
        put = write_bytes(f, fd, bytes, size, at);
    lock_give(&f->lock);
    file_put(f);
    return put;
}

CALL ssize_t write(int fd, const void *bytes, size_t size)
{
    posix_begin();
    struct file *f = file_get(fd);
    return f ? write_inside(f, fd, bytes, size, AT_OFFSET) : next.write(fd, bytes, size);
}
CALL_ALIAS(__write, write);

CALL ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at)
{
    posix_begin();
    struct file *f = at < 0 ? NULL : file_get(fd);
    return f ? write_inside(f, fd, bytes, size, at) : next.pwrite(fd, bytes, size, at);
}
CALL_ALIAS(pwrite64, pwrite);
CALL_ALIAS(__pwrite64, pwrite);

/* ---- Several pieces ---- */

/* One after the other, until one is not complete. */
static ssize_t each_piece(int fd, const struct iovec *piece, int n, off_t at, int is_write)
{
    ssize_t sum = 0;

    for (int i = 0; i < n; i++) {
        off_t from = at == AT_OFFSET ? at : at + sum;
        void *bytes = piece[i].iov_base;
        size_t size = piece[i].iov_len;
        struct file *f = file_get(fd);
        ssize_t one = !f         ? posix_result(EBADF)
                      : is_write ? write_inside(f, fd, bytes, size, from)
                                 : read_inside(f, fd, bytes, size, from);
        if (one < 0)
            return sum > 0 ? sum : one;
        sum += one;
        if ((size_t)one < piece[i].iov_len)
            break;
    }
    return sum;
}

static void *join_pieces(const struct iovec *piece, int n, size_t size)
{
    uint8_t *bytes = malloc(size), *to = bytes;

    for (int i = 0; i < n && bytes; i++) {
        if (piece[i].iov_len > 0)
            memcpy(to, piece[i].iov_base, piece[i].iov_len);
        to += piece[i].iov_len;
    }
    return bytes;
}

/* What is added to a file is added at once, since others may add to it, too. */
static ssize_t write_pieces(int fd, const struct iovec *piece, int n, off_t at)
{
    struct file *f = file_get(fd);
    int is_added = f && (f->flags & O_APPEND);
    struct iovec all = {NULL, 0};

    file_put(f);
    for (int i = 0; i < n && is_added; i++) {
        if (piece[i].iov_len > (size_t)SSIZE_MAX - all.iov_len)
            return posix_result(EINVAL);
        all.iov_len += piece[i].iov_len;
    }
    if (n < 2 || all.iov_len == 0)
        return each_piece(fd, piece, n, at, 1);
    all.iov_base = join_pieces(piece, n, all.iov_len);
    ssize_t put = all.iov_base ? each_piece(fd, &all, 1, at, 1) : posix_result(ENOMEM);
    int error = errno;
    free(all.iov_base);
    errno = error;
    return put;
}

CALL ssize_t readv(int fd, const struct iovec *piece, int n)
{
    posix_begin();
    ssize_t got = file_is_ours(fd) ? each_piece(fd, piece, n, AT_OFFSET, 0) : next.readv(fd, piece, n);
    return is_logical(got, fd, CALLER) ? each_piece(fd, piece, n, AT_OFFSET, 0) : got;
}

CALL ssize_t writev(int fd, const struct iovec *piece, int n)
{
    posix_begin();
    return file_is_ours(fd) ? write_pieces(fd, piece, n, AT_OFFSET) : next.writev(fd, piece, n);
}

CALL ssize_t preadv(int fd, const struct iovec *piece, int n, off_t at)
{
    posix_begin();
    if (file_is_ours(fd))
        return at < 0 ? posix_result(EINVAL) : each_piece(fd, piece, n, at, 0);
    ssize_t got = next.preadv(fd, piece, n, at);
    return is_logical(got, fd, CALLER) ? each_piece(fd, piece, n, at, 0) : got;
}
CALL_ALIAS(preadv64, preadv);

CALL ssize_t pwritev(int fd, const struct iovec *piece, int n, off_t at)
{
    posix_begin();
    if (!file_is_ours(fd))
        return next.pwritev(fd, piece, n, at);
    return at < 0 ? posix_result(EINVAL) : write_pieces(fd, piece, n, at);
}
CALL_ALIAS(pwritev64, pwritev);

/* With flags; those that only matter for speed are no matter here. */
#define FLAGS_OF_SPEED (RWF_HIPRI | RWF_NOWAIT)
#define FLAGS_OF_SYNC  (RWF_SYNC | RWF_DSYNC)

CALL ssize_t preadv2(int fd, const struct iovec *piece, int n, off_t at, int flags)
{
    posix_begin();
    ssize_t got = file_is_ours(fd) ? -1 : next.preadv2(fd, piece, n, at, flags);
    if (!file_is_ours(fd) && !is_logical(got, fd, CALLER))
        return got;
    return flags & ~FLAGS_OF_SPEED ? posix_result(EOPNOTSUPP) : each_piece(fd, piece, n, at, 0);
}
CALL_ALIAS(preadv64v2, preadv2);

CALL ssize_t pwritev2(int fd, const struct iovec *piece, int n, off_t at, int flags)
{
    posix_begin();
    if (!file_is_ours(fd))
        return next.pwritev2(fd, piece, n, at, flags);
    if (flags & ~(FLAGS_OF_SPEED | FLAGS_OF_SYNC))
        return posix_result(EOPNOTSUPP);
    ssize_t put = write_pieces(fd, piece, n, at);
    return put >= 0 && (flags & FLAGS_OF_SYNC) && fsync(fd) != 0 ? -1 : put;
}
CALL_ALIAS(pwritev64v2, pwritev2);

/* ---- From one descriptor to another ---- */

/* Read and write up to so many bytes; as the calls below, at the offsets that are given, which then move on, or else at
 * those of the descriptors. Returns their number, or -1 with errno. */
static ssize_t copy_some(int from, off_t *from_at, int to, off_t *to_at, size_t size)
{
    uint8_t bytes[COPY_SIZE];
    size_t want = size < sizeof bytes ? size : sizeof bytes;
    ssize_t got = from_at ? pread(from, bytes, want, *from_at) : read(from, bytes, want);
    ssize_t put = got <= 0 ? got : to_at ? pwrite(to, bytes, (size_t)got, *to_at) : write(to, bytes, (size_t)got);

    if (!from_at && got > 0 && put < got) {
        int kept = errno;
        lseek(from, put < 0 ? -got : put - got, SEEK_CUR);
        errno = kept;
    }
    if (from_at && put > 0)
        *from_at += put;
    if (to_at && put > 0)
        *to_at += put;
    return put;
}

static ssize_t copy_bytes(int from, off_t *from_at, int to, off_t *to_at, size_t size)
{
    size_t done = 0;
    ssize_t put;

    do {
        size_t want = size - done < COPY_SIZE ? size - done : COPY_SIZE;
        put = copy_some(from, from_at, to, to_at, want);
        done += put > 0 ? (size_t)put : 0;
        if (put < (ssize_t)want)
            break;
    } while (done < size);
    return done > 0 ? (ssize_t)done : put;
}

CALL ssize_t copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t size, unsigned flags)
{
    posix_begin();
    logical_take(from, CALLER);
    return file_is_ours(from) || file_is_ours(to) ? copy_bytes(from, from_at, to, to_at, size)
                                                  : next.copy_file_range(from, from_at, to, to_at, size, flags);
}

CALL ssize_t sendfile(int to, int from, off_t *from_at, size_t size)
{
    posix_begin();
    logical_take(from, CALLER);
    return file_is_ours(from) || file_is_ours(to) ? copy_bytes(from, from_at, to, NULL, size)
                                                  : next.sendfile(to, from, from_at, size);
}
CALL_ALIAS(sendfile64, sendfile);

CALL ssize_t splice(int from, off_t *from_at, int to, off_t *to_at, size_t size, unsigned flags)
{
    posix_begin();
    logical_take(from, CALLER);
    return file_is_ours(from) || file_is_ours(to) ? copy_bytes(from, from_at, to, to_at, size)
                                                  : next.splice(from, from_at, to, to_at, size, flags);
}

/* ---- Offset and size ---- */

static off_t seek_inside(struct file *f, int fd, off_t offset, int whence)
{
    struct stat now;
    off_t at;

    if (f->kind == FILE_PARTICLE && f->record) {
        lock_take(&f->lock);
        at = particles_seek(f, fd, offset, whence);
        lock_give(&f->lock);
        file_put(f);
        return at;
    }
    lock_take(&f->lock);
    int error = before_seek(f, fd);
    if (f->mount->kind == MOUNT_POOL && whence != SEEK_SET && whence != SEEK_CUR)
        pooled_take_size(f, fd);
    /* A memfd that has not all has holes that the file has not. */
    if (error != 0) {
        at = posix_result(error);
    } else if ((whence == SEEK_DATA || whence == SEEK_HOLE) && f->kind == FILE_TREE && !f->has_all) {
        at = next.fstat(fd, &now) != 0             ? -1
             : offset < 0 || offset >= now.st_size ? posix_result(ENXIO)
             : whence == SEEK_DATA                 ? offset
                                                   : now.st_size;
        at = at < 0 ? at : next.lseek(fd, at, SEEK_SET);
    } else {
        at = next.lseek(fd, offset, whence);
    }
    if (at >= 0)
        mark_after_seek(f, fd);
    lock_give(&f->lock);
    file_put(f);
    return at;
}

CALL off_t lseek(int fd, off_t offset, int whence)
{
    posix_begin();
    if (mounts.has_logical && whence != SEEK_SET && whence != SEEK_CUR) /* a folder has no end */
        logical_take(fd, CALLER);
    struct file *f = file_get(fd);
    return f ? seek_inside(f, fd, offset, whence) : next.lseek(fd, offset, whence);
}
CALL_ALIAS(lseek64, lseek);

CALL off_t __lseek(int fd, off_t offset, int whence)
{
    return lseek(fd, offset, whence);
}

static int truncate_inside(struct file *f, int fd, off_t size)
{
    int result;

    if (lock_try(&f->lock) != 0) {
        file_put(f);
        return posix_result(EDEADLK);
    }
    if (!file_is_at(f, fd))
        result = posix_result(EBADF);
    else if (f->kind == FILE_PARTICLE)
        result = posix_result(particles_truncate(f, size));
    else if (f->kind != FILE_TREE || (f->flags & O_ACCMODE) == O_RDONLY || (f->flags & O_PATH) || size < 0)
        result = posix_result(EINVAL);
    else if (f->mount->kind == MOUNT_POOL)
        result = posix_result(pooled_cut(f, fd, (uint64_t)size));
    else
        result = next.ftruncate(fd, size);
    if (result == 0 && f->kind == FILE_TREE && f->mount->kind != MOUNT_POOL)
        result = posix_result(file_note_truncated(f, fd, (uint64_t)size));
    lock_give(&f->lock);
    file_put(f);
    return result;
}

CALL int ftruncate(int fd, off_t size)
{
    posix_begin();
    struct file *f = file_get(fd);
    return f ? truncate_inside(f, fd, size) : next.ftruncate(fd, size);
}
CALL_ALIAS(ftruncate64, ftruncate);

/* ---- Durability ---- */

static int sync_inside(struct file *f, int fd)
{
    lock_take(&f->lock);
    int error = f->mount->kind == MOUNT_PARTICLES ? particles_sync(f) : file_sync(f, fd);
    lock_give(&f->lock);
    file_put(f);
    return posix_result(error);
}

CALL int fsync(int fd)
{
    posix_begin();
    struct file *f = file_get(fd);
    return f ? sync_inside(f, fd) : next.fsync(fd);
}

CALL int fdatasync(int fd)
{
    posix_begin();
    struct file *f = file_get(fd);
    return f ? sync_inside(f, fd) : next.fdatasync(fd);
}

/* What this process has written is in the namespaces before the kernel is asked to store all. */
CALL void sync(void)
{
    posix_begin();
    if (mounts.is_used)
        trees_commit();
    next.sync();
}

CALL int syncfs(int fd)
{
    posix_begin();
    struct file *f = file_get(fd);
    return f ? sync_inside(f, fd) : next.syncfs(fd);
}
