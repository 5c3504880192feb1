/* Opening, closing and copying descriptors. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdint.h>
#include "posix/begin.h"
#include "posix/file_lock.h"
#include "posix/follow.h"
#include "posix/internal.h"
#include "posix/library.h"
#include "posix/locks.h"
#include "posix/logical_view.h"
#include "posix/mark.h"
#include "posix/next.h"
#include "posix/particles.h"
#include "posix/placeholder.h"
#include "posix/pooled.h"
#include "posix/posix_tree.h"
#include "posix/route.h"
#include "posix/undeclared.h"

static int open_inside(const struct route *r, int flags, mode_t mode)
{
    int fd = -1, error = 0;

    if (lock_is_held()) /* a handler has interrupted a call, perhaps in malloc */
        error = EDEADLK;
    else if ((flags & O_TMPFILE) == O_TMPFILE)
        error = EOPNOTSUPP;
    else if (r->mount->kind == MOUNT_PARTICLES)
        error = particles_open(r->mount, r->path, flags, &fd);
    else if (r->mount->kind == MOUNT_LOGICAL)
        error = logical_open(r->path, flags, &fd);
    else if (r->mount->kind == MOUNT_POOL)
        error = pooled_open(r->mount, r->path, flags, mode, &fd);
    else
        error = tree_open(r->mount, r->path, flags, mode, &fd);
    return error == 0 ? fd : posix_result(error);
}

/* Whether a folder that was opened as one is a logical file, and closed again. */
static int refuse_folder(struct route *r, int fd, int flags, const void *from)
{
    if (r->mount || !(flags & O_DIRECTORY) || !logical_find(r, 1, from))
        return 0;
    next.close(fd);
    return 1;
}

static int open_route(const struct route *r, int flags, mode_t mode)
{
    return r->mount ? open_inside(r, flags, mode) : next.openat(r->folder, r->path, flags, mode);
}

/* Open a path that is not known to be outside of mounts, or that the kernel has been asked for (`is_asked`), and has
 * failed. */
static APART int open_path(int folder, const char *path, int flags, mode_t mode, const void *from, int is_asked)
{
    int has_last = !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
    struct route r;

    route_find(&r, folder, path);
    int fd = is_asked ? -1 : open_route(&r, flags, mode);
    while (fd < 0 ? follow_route(&r, has_last) || (errno == EISDIR && logical_route(&r, has_last, from))
                  : mounts.has_logical && refuse_folder(&r, fd, flags, from))
        fd = open_route(&r, flags, mode);
    if (fd <= STDERR_FILENO)
        logical_take(fd, from);
    return fd;
}

/* Open the file of a mount once more. */
static APART int open_again(struct file *f, const char *path, int flags, mode_t mode, const void *from)
{
    char whole[2 * PATH_MAX];

    if (f->kind == FILE_TREE) {
        file_path(f, whole, sizeof whole);
        path = whole;
    }
    file_put(f);
    return open_path(AT_FDCWD, path, flags, mode, from, 0);
}

/* `from` is where the call returns to. */
static inline int open_call(int folder, const char *path, int flags, mode_t mode, const void *from)
{
    int fd;

    posix_begin();
    if (library_is_caller(from))
        return internal_keep(next.openat(folder, path, flags, mode));
    struct file *f = route_descriptor(path);
    if (f)
        return open_again(f, path, flags, mode, from);
    int is_outside = !mounts.has_logical && route_is_outside(folder, path);
    if (is_outside && (fd = next.openat(folder, path, flags, mode)) >= 0)
        return fd;
    return open_path(folder, path, flags, mode, from, is_outside);
}

/* The mode is there only if a file can be created. */
#define OPEN_MODE(flags, mode)                                                                                         \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {                                                                           \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        mode = va_arg(list, mode_t);                                                                                   \
        va_end(list);                                                                                                  \
    }

CALL int open(const char *path, int flags, ...)
{
    OPEN_MODE(flags, mode)
    return open_call(AT_FDCWD, path, flags, mode, __builtin_return_address(0));
}
CALL_ALIAS(open64, open);
CALL_ALIAS(__open, open);
CALL_ALIAS(__open64, open);

CALL int openat(int folder, const char *path, int flags, ...)
{
    OPEN_MODE(flags, mode)
    return open_call(folder, path, flags, mode, __builtin_return_address(0));
}
CALL_ALIAS(openat64, openat);

CALL int creat(const char *path, mode_t mode)
{
    return open_call(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode, __builtin_return_address(0));
}
CALL_ALIAS(creat64, creat);

/* What programs that were built with _FORTIFY_SOURCE call if the flags are not known to the compiler. */
CALL int __open_2(const char *path, int flags)
{
    return open_call(AT_FDCWD, path, flags, 0, __builtin_return_address(0));
}
CALL_ALIAS(__open64_2, __open_2);

CALL int __openat_2(int folder, const char *path, int flags)
{
    return open_call(folder, path, flags, 0, __builtin_return_address(0));
}
CALL_ALIAS(__openat64_2, __openat_2);

CALL int close(int fd)
{
    posix_begin();
    if (internal_is(fd))
        return library_is_caller(__builtin_return_address(0)) ? internal_close(fd) : posix_result(EBADF);
    if (!file_is_ours(fd) && !placeholder_is(fd))
        return next.close(fd);
    int error = file_forget(fd);
    int result = placeholder_is(fd) ? posix_result(placeholder_close(fd)) : next.close(fd);

    return error != 0 ? posix_result(error) : result;
}
CALL_ALIAS(__close, close);

/* ---- Copies ---- */

/* The C library writes to these by itself. */
static int share_standard(struct file *f, int fd)
{
    if (fd > STDERR_FILENO)
        return 0;
    lock_take(&f->lock);
    int error = mark_begin(f, fd);
    lock_give(&f->lock);
    return error;
}

/* A descriptor is a copy of another by now. */
static int note_copy(int from, int to)
{
    struct file *f = to >= 0 ? file_get(from) : NULL;
    int error = f ? file_set(f, to) : 0;

    if (f && error == 0)
        error = f->kind == FILE_PARTICLE ? particles_note_copy(f, from, to) : share_standard(f, to);
    file_put(f);
    if (error == 0)
        return to;
    file_forget(to);
    next.close(to);
    return posix_result(error);
}

CALL int dup(int fd)
{
    posix_begin();
    logical_take(fd, CALLER);
    return note_copy(fd, next.dup(fd));
}

static int dup_to(int from, int to, int flags, const void *caller)
{
    posix_begin();
    logical_take(from, caller);
    if (internal_is(to) && !library_is_caller(caller))
        return posix_result(EBUSY);
    if (from == to)
        return next.dup3(from, to, flags);
    if (!file_is_ours(from) && !file_is_ours(to)) {
        placeholder_forget(to);
        return next.dup3(from, to, flags);
    }
    struct file *f = file_get(from);
    int error = fcntl(from, F_GETFD) < 0 ? errno : file_drop(to);
    file_put(f);
    placeholder_forget(to);
    int fd = error == EBADF ? posix_result(error) : next.dup3(from, to, flags);
    return note_copy(from, fd);
}

CALL int dup2(int from, int to)
{
    posix_begin();
    return from == to ? next.dup2(from, to) : dup_to(from, to, 0, __builtin_return_address(0));
}

CALL int __dup2(int from, int to)
{
    return dup2(from, to);
}

CALL int dup3(int from, int to, int flags)
{
    return dup_to(from, to, flags, __builtin_return_address(0));
}

/* What was written until now is put where it is, what follows at the end; or the other way round. */
static int set_flags(struct file *f, int fd, void *argument)
{
    int flags = (int)(intptr_t)argument, error = 0;

    lock_take(&f->lock);
    int is_other = (f->flags ^ flags) & O_APPEND;
    if (is_other && f->mount->kind != MOUNT_PARTICLES)
        error = file_publish(f, fd);
    if (error == 0 && !placeholder_is(fd) && next.fcntl(fd, F_SETFL, f->is_shared ? flags | O_NOATIME : flags) != 0)
        error = errno;
    if (error == 0 && is_other) {
        f->flags ^= O_APPEND;
        error = mark_set_at_end(f, fd);
    }
    lock_give(&f->lock);
    return posix_result(error);
}

static int fcntl_inside(struct file *f, int fd, int command, void *argument)
{
    int result;

    switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
        file_put(f);
        return note_copy(fd, next.fcntl(fd, command, argument));
    case F_GETFL:
        result = next.fcntl(fd, command, argument);
        result = result < 0 ? result /* a placeholder has other flags */
                            : (result & ~(O_ACCMODE | O_LARGEFILE | O_PATH)) |
                                  (f->flags & (O_ACCMODE | O_APPEND | O_DIRECTORY | O_PATH));
        break;
    case F_SETFL:
        result = set_flags(f, fd, argument);
        break;
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
        result =
            posix_result(f->mount->kind == MOUNT_POOL ? pooled_lock(f, fd, command, argument) : file_refuse_lock(f));
        break;
    case F_OFD_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
        result = posix_result(file_refuse_lock(f));
        break;
    default:
        result = next.fcntl(fd, command, argument);
    }
    file_put(f);
    return result;
}

CALL int fcntl(int fd, int command, ...)
{
    va_list list;

    posix_begin();
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (command == F_DUPFD_CLOEXEC && library_is_caller(CALLER))
        return internal_keep(next.fcntl(fd, command, argument));
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
        logical_take(fd, CALLER);
    struct file *f = file_get(fd);
    return f ? fcntl_inside(f, fd, command, argument) : next.fcntl(fd, command, argument);
}
CALL_ALIAS(fcntl64, fcntl);
CALL_ALIAS(__fcntl, fcntl);

CALL int close_range(unsigned first, unsigned last, int flags)
{
    posix_begin();
    if (!((unsigned)flags & CLOSE_RANGE_CLOEXEC)) {
        file_forget_range(first, last);
        placeholder_forget_range(first, last);
    }
    return internal_close_others(first, last, flags);
}

CALL void closefrom(int first)
{
    posix_begin();
    file_forget_range(first < 0 ? 0 : (unsigned)first, UINT_MAX);
    placeholder_forget_range(first < 0 ? 0 : (unsigned)first, UINT_MAX);
    internal_close_others(first < 0 ? 0 : (unsigned)first, UINT_MAX, 0);
}
