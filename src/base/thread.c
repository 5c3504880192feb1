#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "base/thread.h"

int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, struct error *e)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int errnum = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errnum == 0)
        return DELTAFS_OK;
    error_system(e, errnum, "start one", "a thread");
    e->status = DELTAFS_ERR_MEMORY;
    return e->status;
}

uint64_t thread_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t thread_waits(void)
{
    struct rusage used;

    return getrusage(RUSAGE_THREAD, &used) == 0 ? (uint64_t)used.ru_nvcsw : 0;
}

uint32_t thread_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (uint32_t)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : (uint32_t)online;
}
