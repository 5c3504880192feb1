/* syscall: programs that call the kernel by this function of the C library, because that has none for the call. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "posix/begin.h"
#include "posix/execute.h"
#include "posix/file.h"
#include "posix/kernel_calls.h"
#include "posix/logical_view.h"
#include "posix/next.h"
#include "posix/route.h"

#define ARGUMENTS 6

/* Whether a path leads into a mount. */
static int is_inside(long folder, long path)
{
    struct route r;

    return route_find(&r, (int)folder, (const char *)path);
}

/* ---- Calls on descriptors ---- */

/* Which of the arguments are descriptors; the same twice if there is one. */
static const struct on_descriptor {
    long number;
    int one, other;
} on_descriptor[] = {
    {SYS_read, 0, 0},      {SYS_write, 0, 0},    {SYS_pread64, 0, 0},   {SYS_pwrite64, 0, 0},
    {SYS_readv, 0, 0},     {SYS_writev, 0, 0},   {SYS_preadv, 0, 0},    {SYS_pwritev, 0, 0},
    {SYS_preadv2, 0, 0},   {SYS_pwritev2, 0, 0}, {SYS_sendfile, 0, 1},  {SYS_copy_file_range, 0, 2},
    {SYS_splice, 0, 2},    {SYS_lseek, 0, 0},    {SYS_fstat, 0, 0},     {SYS_ftruncate, 0, 0},
    {SYS_fallocate, 0, 0}, {SYS_fsync, 0, 0},    {SYS_fdatasync, 0, 0}, {SYS_getdents64, 0, 0},
    {SYS_fcntl, 0, 0},     {SYS_dup, 0, 0},      {SYS_dup3, 0, 1},      {SYS_flock, 0, 0},
    {SYS_fchmod, 0, 0},    {SYS_fchown, 0, 0},   {SYS_fchdir, 0, 0},    {SYS_syncfs, 0, 0},
#ifdef SYS_dup2
    {SYS_dup2, 0, 1},
#endif
};

static int is_ours(long fd, const void *from)
{
    return file_is_ours((int)fd) || logical_take((int)fd, from);
}

/* Whether a call is about a file of a mount, by its descriptor. */
static int is_on_descriptor(long number, const long a[ARGUMENTS], const void *from)
{
    for (size_t i = 0; i < sizeof on_descriptor / sizeof *on_descriptor; i++)
        if (on_descriptor[i].number == number)
            return is_ours(a[on_descriptor[i].one], from) || is_ours(a[on_descriptor[i].other], from);
    return 0;
}

static long call_vectors(long number, const long a[ARGUMENTS])
{
    const struct iovec *piece = (const struct iovec *)a[1];
    int fd = (int)a[0], n = (int)a[2];

    switch (number) {
    case SYS_readv:
        return readv(fd, piece, n);
    case SYS_writev:
        return writev(fd, piece, n);
    case SYS_preadv:
        return preadv(fd, piece, n, a[3]);
    case SYS_pwritev:
        return pwritev(fd, piece, n, a[3]);
    case SYS_preadv2:
        return preadv2(fd, piece, n, a[3], (int)a[5]);
    case SYS_pwritev2:
        return pwritev2(fd, piece, n, a[3], (int)a[5]);
    default:
        errno = ENOSYS;
        return -1;
    }
}

static long call_bytes(long number, const long a[ARGUMENTS])
{
    switch (number) {
    case SYS_read:
        return read((int)a[0], (void *)a[1], (size_t)a[2]);
    case SYS_write:
        return write((int)a[0], (const void *)a[1], (size_t)a[2]);
    case SYS_pread64:
        return pread((int)a[0], (void *)a[1], (size_t)a[2], a[3]);
    case SYS_pwrite64:
        return pwrite((int)a[0], (const void *)a[1], (size_t)a[2], a[3]);
    case SYS_sendfile:
        return sendfile((int)a[0], (int)a[1], (off_t *)a[2], (size_t)a[3]);
    case SYS_copy_file_range:
        return copy_file_range((int)a[0], (off_t *)a[1], (int)a[2], (off_t *)a[3], (size_t)a[4], (unsigned)a[5]);
    case SYS_splice:
        return splice((int)a[0], (off_t *)a[1], (int)a[2], (off_t *)a[3], (size_t)a[4], (unsigned)a[5]);
    default:
        return call_vectors(number, a);
    }
}

static long call_attributes(long number, const long a[ARGUMENTS])
{
    switch (number) {
    case SYS_flock:
        return flock((int)a[0], (int)a[1]);
    case SYS_fchmod:
        return fchmod((int)a[0], (mode_t)a[1]);
    case SYS_fchown:
        return fchown((int)a[0], (uid_t)a[1], (gid_t)a[2]);
    case SYS_fchdir:
        return fchdir((int)a[0]);
    case SYS_syncfs:
        return syncfs((int)a[0]);
    default:
        return call_bytes(number, a);
    }
}

static long call_descriptor(long number, const long a[ARGUMENTS])
{
    switch (number) {
    case SYS_lseek:
        return lseek((int)a[0], a[1], (int)a[2]);
    case SYS_fstat:
        return fstat((int)a[0], (struct stat *)a[1]);
    case SYS_ftruncate:
        return ftruncate((int)a[0], a[1]);
    case SYS_fallocate:
        return fallocate((int)a[0], (int)a[1], a[2], a[3]);
    case SYS_fsync:
        return fsync((int)a[0]);
    case SYS_fdatasync:
        return fdatasync((int)a[0]);
    case SYS_getdents64:
        return getdents64((int)a[0], (void *)a[1], (size_t)a[2]);
    case SYS_fcntl:
        return fcntl((int)a[0], (int)a[1], (void *)a[2]);
    case SYS_dup:
        return dup((int)a[0]);
    case SYS_dup3:
        return dup3((int)a[0], (int)a[1], (int)a[2]);
#ifdef SYS_dup2
    case SYS_dup2:
        return dup2((int)a[0], (int)a[1]);
#endif
    default:
        return call_attributes(number, a);
    }
}

/* ---- Others ---- */

/* The calls that have a function get that. Programs do without the others if the kernel does not know them. */
static long call_inside(long number, const long a[ARGUMENTS])
{
    switch (number) {
    case SYS_close:
        return close((int)a[0]);
#ifdef SYS_close_range
    case SYS_close_range:
        return close_range((unsigned)a[0], (unsigned)a[1], (int)a[2]);
#endif
#ifdef SYS_renameat2
    case SYS_renameat2:
        return renameat2((int)a[0], (const char *)a[1], (int)a[2], (const char *)a[3], (unsigned)a[4]);
#endif
#ifdef SYS_statx
    case SYS_statx:
        return statx((int)a[0], (const char *)a[1], (int)a[2], (unsigned)a[3], (struct statx *)a[4]);
#endif
    case SYS_newfstatat:
        return fstatat((int)a[0], (const char *)a[1], (struct stat *)a[2], (int)a[3]);
    default:
        errno = ENOSYS;
        return -1;
    }
}

/* Whether a call is one of those, and may be about a mount. */
static int is_replaced(long number, const long a[ARGUMENTS], const void *from)
{
    switch (number) {
    case SYS_close:
#ifdef SYS_close_range
    case SYS_close_range:
#endif
        return 1;
#ifdef SYS_renameat2
    case SYS_renameat2:
        return is_inside(a[0], a[1]) || is_inside(a[2], a[3]);
#endif
    case SYS_newfstatat:
#ifdef SYS_statx
    case SYS_statx:
#endif
        return is_inside(a[0], a[1]) || is_ours(a[0], from);
#ifdef SYS_openat2
    case SYS_openat2:
#endif
#ifdef SYS_faccessat2
    case SYS_faccessat2:
#endif
#ifdef SYS_fchmodat2
    case SYS_fchmodat2:
#endif
        return is_inside(a[0], a[1]);
    default:
        return 0;
    }
}

CALL long syscall(long number, ...)
{
    long a[ARGUMENTS], result;
    va_list list;

    va_start(list, number);
    for (int i = 0; i < ARGUMENTS; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (map_kernel(number, a, CALLER, &result))
        return result;
    posix_begin();
    if (mounts.is_used && is_on_descriptor(number, a, CALLER) && process_is_whole())
        return call_descriptor(number, a);
    return mounts.is_used && is_replaced(number, a, CALLER) && process_is_whole()
               ? call_inside(number, a)
               : next.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
