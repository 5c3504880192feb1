#include "posix/placeholder.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include "posix/file.h"
#include "posix/locks.h"
#include "posix/next.h"

#define UNUSED_MAX 256 /* so many stay open */

enum { NONE, USED, UNUSED };

static struct {
    pthread_mutex_t lock;
    int unused[UNUSED_MAX];
    int count;
    _Atomic unsigned char state[FILES_MAX];
    int end; /* all are below */
} set = {.lock = LOCK_INITIALIZER};
pthread_mutex_t *const lock_of_placeholders = &set.lock;

static int open_another(int *fd)
{
    int another = next.openat(AT_FDCWD, "/dev/null", O_PATH | O_CLOEXEC);

    if (another < 0)
        return errno;
    if (another >= FILES_MAX) {
        next.close(another);
        return EMFILE;
    }
    set.end = another >= set.end ? another + 1 : set.end;
    *fd = another;
    return 0;
}

int placeholder_open(int *fd)
{
    int error = 0;

    lock_take(&set.lock);
    if (set.count > 0)
        *fd = set.unused[--set.count];
    else
        error = open_another(fd);
    if (error == 0)
        atomic_store(&set.state[*fd], USED);
    lock_give(&set.lock);
    return error;
}

int placeholder_is(int fd)
{
    return fd >= 0 && fd < FILES_MAX && atomic_load_explicit(&set.state[fd], memory_order_relaxed) != NONE;
}

int placeholder_close(int fd)
{
    int state, stays = 0;

    lock_take(&set.lock);
    state = atomic_load(&set.state[fd]);
    if (state == USED) {
        stays = set.count < UNUSED_MAX;
        atomic_store(&set.state[fd], stays ? UNUSED : NONE);
        if (stays)
            set.unused[set.count++] = fd;
    }
    lock_give(&set.lock);
    if (state == UNUSED)
        return EBADF;
    return stays || next.close(fd) == 0 ? 0 : errno;
}

void placeholder_forget(int fd)
{
    if (!placeholder_is(fd))
        return;
    lock_take(&set.lock);
    atomic_store(&set.state[fd], NONE);
    for (int i = 0; i < set.count; i++)
        if (set.unused[i] == fd)
            set.unused[i--] = set.unused[--set.count];
    lock_give(&set.lock);
}

void placeholder_forget_range(unsigned first, unsigned last)
{
    for (unsigned fd = first; fd <= last && fd < (unsigned)set.end; fd++)
        placeholder_forget((int)fd);
}
