/* syscall: programs that call the kernel by this function of the C library, because that has none for the call. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "posix/begin.h"
#include "posix/execute.h"
#include "posix/next.h"
#include "posix/route.h"

#define ARGUMENTS 6

/* Whether a path leads into a mount. */
static int is_inside(long folder, long path)
{
    struct route r;

    return route_find(&r, (int)folder, (const char *)path);
}

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
    default:
        errno = ENOSYS;
        return -1;
    }
}

/* Whether a call is one of those, and may be about a mount. */
static int is_replaced(long number, const long a[ARGUMENTS])
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
#ifdef SYS_statx
    case SYS_statx:
#endif
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
    long a[ARGUMENTS];
    va_list list;

    posix_begin();
    va_start(list, number);
    for (int i = 0; i < ARGUMENTS; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    return mounts.is_used && is_replaced(number, a) && process_is_whole()
               ? call_inside(number, a)
               : next.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
