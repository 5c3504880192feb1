/* Streams. The C library reads and writes a stream of its own by internal calls, which this library does not see. So a
 * stream of a file of a mount is made by fopencookie, and its functions call those of this library; one of a file that
 * is only read, and has all bytes in its memfd, can be the C library's. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include "posix/begin.h"
#include "posix/locks.h"
#include "posix/logical_view.h"
#include "posix/mark.h"
#include "posix/next.h"
#include "posix/posix_tree.h"
#include "posix/route.h"
#include "posix/undeclared.h"

/* Bits of _flags of a stream. */
#define STREAM_NO_READS  0x0004
#define STREAM_NO_WRITES 0x0008
#define STREAM_APPENDS   0x1000

#define BUFFER_SIZE ((size_t)64 << 10)
#define FIRST_READ  ((size_t)4 << 10) /* so many bytes after a seek; then twice as many as before */

struct stream {
    FILE *file;
    int fd;
    size_t read_max;
    char buffer[BUFFER_SIZE];
};

static _Atomic(struct stream *) stream_of[FILES_MAX]; /* that of each descriptor */
static _Atomic(struct stream *) spare;                /* one that is free */

/* ---- The functions of a stream ---- */

static void stream_free(struct stream *s)
{
    free(atomic_exchange(&spare, s));
}

/* Few bytes are read in vain by a program that goes from one record to another. */
static ssize_t stream_read(void *stream, char *bytes, size_t size)
{
    struct stream *s = stream;
    ssize_t got = read(s->fd, bytes, size == BUFFER_SIZE && s->read_max < size ? s->read_max : size);

    s->read_max = s->read_max < BUFFER_SIZE ? 2 * s->read_max : BUFFER_SIZE;
    return got;
}

/* Returns less than `size` after an error, as fopencookie wants it. */
static ssize_t write_all(int fd, const char *bytes, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t put = write(fd, bytes + done, size - done);
        if (put <= 0)
            break;
        done += (size_t)put;
    }
    return (ssize_t)done;
}

static ssize_t stream_write(void *stream, const char *bytes, size_t size)
{
    const struct stream *s = stream;

    return write_all(s->fd, bytes, size);
}

static int stream_seek(void *stream, off64_t *at, int whence)
{
    struct stream *s = stream;
    off_t to = lseek(s->fd, *at, whence);

    if (whence != SEEK_CUR || *at != 0)
        s->read_max = FIRST_READ;
    *at = to;
    return to < 0 ? -1 : 0;
}

static int stream_close(void *stream)
{
    struct stream *s = stream;

    atomic_store(&stream_of[s->fd], NULL);
    int result = close(s->fd), error = errno;
    stream_free(s);
    errno = error;
    return result;
}

/* ---- Opening ---- */

/* The flags of open for a mode of fopen; -1: it is none. */
static int flags_of(const char *mode)
{
    int flags = *mode == 'r'   ? O_RDONLY
                : *mode == 'w' ? O_WRONLY | O_CREAT | O_TRUNC
                : *mode == 'a' ? O_WRONLY | O_CREAT | O_APPEND
                               : -1;

    for (const char *p = mode; flags >= 0 && *p && *p != ','; p++) {
        if (*p == '+')
            flags = (flags & ~O_ACCMODE) | O_RDWR;
        flags |= *p == 'x' ? O_EXCL : *p == 'e' ? O_CLOEXEC : 0;
    }
    return flags;
}

/* Whether a stream is one of this library. */
static int is_own(const FILE *stream)
{
    int fd = stream->_fileno;
    const struct stream *s = fd >= 0 && fd < FILES_MAX ? atomic_load(&stream_of[fd]) : NULL;

    return s && s->file == stream;
}

/* Whether the kernel finds in a descriptor all that is read from it, and nothing is written. */
static int is_plain(int fd)
{
    struct file *f = file_get(fd);
    int is = !f || (f->kind != FILE_FOLDER && f->has_all && (f->flags & (O_ACCMODE | O_PATH)) == O_RDONLY);

    file_put(f);
    return is;
}

/* A stream of a descriptor. Its number is put where fileno finds it. */
static FILE *stream_create(int fd, int flags)
{
    static const cookie_io_functions_t functions = {stream_read, stream_write, stream_seek, stream_close};
    const char *mode = flags & O_APPEND ? "a" : (flags & O_ACCMODE) == O_WRONLY ? "w" : "r";
    const char *update = flags & O_APPEND ? "a+" : "r+";
    struct stream *s = atomic_exchange(&spare, NULL);

    s = s ? s : malloc(sizeof *s);
    FILE *stream = s ? fopencookie(s, (flags & O_ACCMODE) == O_RDWR ? update : mode, functions) : NULL;
    if (!stream) {
        free(s);
        errno = ENOMEM;
        return NULL;
    }
    s->file = stream;
    s->fd = fd;
    s->read_max = BUFFER_SIZE;
    stream->_fileno = fd;
    setvbuf(stream, s->buffer, _IOFBF, sizeof s->buffer);
    atomic_store(&stream_of[fd], s);
    return stream;
}

static FILE *stream_of_descriptor(int fd, const char *mode, int flags)
{
    if (is_plain(fd))
        return next.fdopen(fd, mode);
    FILE *stream = stream_create(fd, flags);
    if (stream && (flags & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND))
        lseek(fd, 0, SEEK_END);
    return stream;
}

/* Whether a path, which is to be opened or was opened as a stream of the C library, is a logical file. */
static int is_logical(const char *path, FILE *stream, const void *from)
{
    struct route r = {.folder = AT_FDCWD, .path = path};
    struct stat st;

    if (!mounts.has_logical ||
        (stream ? next.fstat(fileno(stream), &st) != 0 || !S_ISDIR(st.st_mode) : errno != EISDIR))
        return 0;
    if (!logical_find(&r, 1, from))
        return 0;
    if (stream)
        next.fclose(stream);
    return 1;
}

CALL FILE *fopen(const char *path, const char *mode)
{
    FILE *stream;

    posix_begin();
    struct file *f = route_descriptor(path);
    file_put(f);
    if (!f && route_is_outside(AT_FDCWD, path)) {
        stream = next.fopen(path, mode);
        if (!is_logical(path, stream, CALLER))
            return stream;
    }
    int flags = flags_of(mode);
    int fd = flags < 0 ? posix_result(EINVAL) : open(path, flags, 0666);
    logical_take(fd, NULL);
    stream = fd < 0 ? NULL : stream_of_descriptor(fd, mode, flags);
    if (fd >= 0 && !stream) {
        int error = errno;
        close(fd);
        errno = error;
    }
    return stream;
}
CALL_ALIAS(fopen64, fopen);

/* Whether a descriptor can be used so; one that is not there yet can be told to append. */
static int check_mode(int fd, int flags)
{
    int now = flags < 0 ? posix_result(EINVAL) : fcntl(fd, F_GETFL);

    if (now < 0)
        return -1;
    if ((now & O_ACCMODE) != O_RDWR && (now & O_ACCMODE) != (flags & O_ACCMODE))
        return posix_result(EINVAL);
    return (flags & ~now & O_APPEND) ? fcntl(fd, F_SETFL, now | O_APPEND) : 0;
}

CALL FILE *fdopen(int fd, const char *mode)
{
    posix_begin();
    logical_take(fd, CALLER);
    if (!file_is_ours(fd))
        return next.fdopen(fd, mode);
    int flags = flags_of(mode);
    return check_mode(fd, flags) == 0 ? stream_of_descriptor(fd, mode, flags) : NULL;
}

/* ---- Closing ---- */

/* A stream of the C library closes its descriptor by itself; also the others find it forgotten then. */
CALL int fclose(FILE *stream)
{
    posix_begin();
    int fd = mounts.is_used ? fileno(stream) : -1;
    if (!file_is_ours(fd))
        return next.fclose(stream);
    int error = fflush(stream) != 0 ? errno : 0, forgotten = file_forget(fd);
    error = next.fclose(stream) != 0 && error == 0 ? errno : error;
    return posix_result(error == 0 ? forgotten : error);
}

/* ---- Opening again ---- */

/* Have all bytes that a stream of the C library may read where that finds them, and what it writes found: at the end,
 * where others may write, too, or anywhere, as it seeks by itself. */
static int make_plain(struct file *f, int fd, int flags)
{
    int is_written = (flags & O_ACCMODE) != O_RDONLY, is_added = is_written && (flags & O_APPEND), error = 0;

    if (f->kind == FILE_PARTICLE && f->record)
        return EOPNOTSUPP;
    if ((flags & (O_ACCMODE | O_APPEND)) != (O_WRONLY | O_APPEND))
        error = file_load(f, fd);
    if (error == 0 && is_added)
        error = mark_begin(f, fd);
    else if (error == 0 && is_written && !f->is_shared)
        error = file_open_by_path(f, fd);
    f->is_unbounded |= error == 0 && is_written && !is_added;
    return error;
}

/* Put a file in the place of that of a stream of the C library. */
static int replace_descriptor(int fd, int of_stream, int flags)
{
    struct file *f = file_get(fd);
    int error = 0;

    if (f) {
        lock_take(&f->lock);
        error = make_plain(f, fd, flags);
        lock_give(&f->lock);
    }
    file_put(f);
    return error == 0 ? dup3(fd, of_stream, flags & O_CLOEXEC) : posix_result(error);
}

/* A stream of the C library stays one: it must stay where it is. */
static int reopen_plain(FILE *stream, int fd, int flags)
{
    const char mode[] = {flags & O_APPEND                                        ? 'a'
                         : (flags & O_ACCMODE) == O_RDONLY || !(flags & O_TRUNC) ? 'r'
                                                                                 : 'w',
                         (flags & O_ACCMODE) == O_RDWR ? '+' : '\0', '\0'};

    if (!next.freopen("/dev/null", mode, stream))
        return -1;
    return replace_descriptor(fd, fileno(stream), flags);
}

/* One of this library gets another file, and another mode, for which there is no function. */
static int reopen_own(FILE *stream, int fd, int flags)
{
    __fpurge(stream);
    clearerr(stream);
    stream->_flags &= ~(STREAM_NO_READS | STREAM_NO_WRITES | STREAM_APPENDS);
    stream->_flags |= ((flags & O_ACCMODE) == O_WRONLY ? STREAM_NO_READS : 0) |
                      ((flags & O_ACCMODE) == O_RDONLY ? STREAM_NO_WRITES : 0) |
                      (flags & O_APPEND ? STREAM_APPENDS : 0);
    return dup3(fd, stream->_fileno, flags & O_CLOEXEC);
}

/* Returns -1 with errno; then the stream is closed. */
static int reopen(FILE *stream, const char *path, const char *mode)
{
    int flags = flags_of(mode), fd = flags < 0 ? posix_result(EINVAL) : open(path, flags, 0666);
    logical_take(fd, NULL);
    int result = fd < 0 ? -1 : is_own(stream) ? reopen_own(stream, fd, flags) : reopen_plain(stream, fd, flags);
    int error = errno;

    if (result >= 0 && (flags & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND))
        lseek(result, 0, SEEK_END);
    if (fd >= 0)
        close(fd);
    if (result < 0)
        fclose(stream);
    errno = error;
    return result;
}

/* The path of an open file. */
static void path_of(int fd, char *path, size_t room)
{
    struct file *f = file_get(fd);

    if (f)
        file_path(f, path, room);
    else
        snprintf(path, room, "/proc/self/fd/%d", fd);
    file_put(f);
}

/* Without a path, a stream gets another mode. */
CALL FILE *freopen(const char *path, const char *mode, FILE *stream)
{
    char same[2 * PATH_MAX];
    struct route r = {.folder = AT_FDCWD, .path = path};

    posix_begin();
    int fd = mounts.is_used ? fileno(stream) : -1;
    int is_outside = path && route_is_outside(AT_FDCWD, path) && !logical_find(&r, 1, CALLER);
    if (!file_is_ours(fd) && (!path || is_outside) && !is_own(stream))
        return next.freopen(path, mode, stream);
    path_of(fd, same, sizeof same);
    fflush(stream);
    file_forget(fd);
    if (is_outside && !is_own(stream))
        return next.freopen(path, mode, stream);
    return reopen(stream, path ? path : same, mode) < 0 ? NULL : stream;
}
CALL_ALIAS(freopen64, freopen);

/* ---- Formatted output to a descriptor ---- */

CALL int vdprintf(int fd, const char *format, va_list list)
{
    char *text = NULL;

    posix_begin();
    if (!file_is_ours(fd))
        return next.vdprintf(fd, format, list);
    int size = vasprintf(&text, format, list);
    if (size > 0 && write_all(fd, text, (size_t)size) != size)
        size = -1;
    free(text);
    return size;
}

CALL int dprintf(int fd, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    int size = vdprintf(fd, format, list);
    va_end(list);
    return size;
}

CALL int __vdprintf_chk(int fd, int flag, const char *format, va_list list)
{
    (void)flag;
    return vdprintf(fd, format, list);
}

CALL int __dprintf_chk(int fd, int flag, const char *format, ...)
{
    va_list list;

    (void)flag;
    va_start(list, format);
    int size = vdprintf(fd, format, list);
    va_end(list);
    return size;
}
