/* The mask of new files: the system gives it only to those who set it, and then files that other threads create have
 * the mask that was set. So it is noted here. */
#include "posix/umask.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "posix/begin.h"
#include "posix/next.h"
#include "posix/posix.h"

#define NOT_KNOWN   (-1)
#define STATUS_ROOM 256 /* the line is among the first */

static atomic_int mask_known = NOT_KNOWN;

/* What the program before this one has left. */
static int read_mask(mode_t *out)
{
    char text[STATUS_ROOM];
    int fd = next.openat(AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : next.read(fd, text, sizeof text - 1);

    if (fd >= 0)
        next.close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *line = strstr(text, "\nUmask:");
    return line && sscanf(line, "\nUmask: %o", out) == 1;
}

mode_t current_umask(void)
{
    int known = atomic_load(&mask_known);
    mode_t mask = 0;

    if (known != NOT_KNOWN)
        return (mode_t)known;
    if (!read_mask(&mask)) {
        mask = next.umask(0);
        next.umask(mask);
    }
    atomic_compare_exchange_strong(&mask_known, &known, (int)mask);
    return mask;
}

CALL mode_t umask(mode_t mask)
{
    posix_begin();
    atomic_store(&mask_known, (int)(mask & 0777));
    return next.umask(mask);
}
