/* For LD_PRELOAD: writing takes as long as to storage that takes SLOW_WRITE_BYTES per second, from all threads
 * together. A write returns when its last byte is there. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NS INT64_C(1000000000)

/* When the storage has written all that it was given. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t done;

static void take(size_t bytes)
{
    const char *rate = getenv("SLOW_WRITE_BYTES");
    struct timespec t;

    if (!rate)
        return;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t now = t.tv_sec * NS + t.tv_nsec, mine;
    pthread_mutex_lock(&lock);
    done = (done > now ? done : now) + (int64_t)(1e9 * (double)bytes / atof(rate));
    mine = done;
    pthread_mutex_unlock(&lock);
    t = (struct timespec){mine / NS, mine % NS};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t offset)
{
    static ssize_t (*real)(int, const void *, size_t, off64_t);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pwrite64");
    ssize_t put = real(fd, bytes, n, offset);
    if (put > 0)
        take((size_t)put);
    return put;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset)
{
    return pwrite64(fd, bytes, n, offset);
}
