#include "posix/internal.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include "posix/next.h"

#define FIRST_MAX 4096 /* the least number, if so many are allowed */

static _Atomic(uint8_t) is_internal[FILES_MAX];
static atomic_int end; /* all are below */

static int first_number(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) != 0)
        return 0;
    return r.rlim_cur / 2 < FIRST_MAX ? (int)(r.rlim_cur / 2) : FIRST_MAX;
}

/* Without a higher number, it stays where it is. */
int internal_keep(int fd)
{
    if (fd < 0)
        return fd;
    int high = next.fcntl(fd, F_DUPFD_CLOEXEC, first_number());
    if (high >= 0)
        next.close(fd);
    fd = high >= 0 ? high : fd;
    if (fd >= FILES_MAX)
        return fd;
    atomic_store(&is_internal[fd], 1);
    for (int now = atomic_load(&end); now <= fd && !atomic_compare_exchange_weak(&end, &now, fd + 1);)
        ;
    return fd;
}

int internal_is(int fd)
{
    return fd >= 0 && fd < atomic_load_explicit(&end, memory_order_relaxed) &&
           atomic_load_explicit(&is_internal[fd], memory_order_relaxed);
}

int internal_close(int fd)
{
    atomic_store(&is_internal[fd], 0);
    return next.close(fd);
}

int internal_close_others(unsigned first, unsigned last, int flags)
{
    for (unsigned fd = first; fd < (unsigned)atomic_load(&end) && fd <= last; fd++) {
        if (!internal_is((int)fd))
            continue;
        if (fd > first && next.close_range(first, fd - 1, flags) != 0)
            return -1;
        first = fd + 1;
    }
    return first <= last ? next.close_range(first, last, flags) : 0;
}
