/* Processes: fork, and their end. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "posix/begin.h"
#include "posix/posix_job.h"
#include "posix/next.h"
#include "posix/particles.h"
#include "posix/posix_tree.h"
#include "posix/streams.h"

static void before_fork(void)
{
    trees_before_fork();
    particles_before_fork();
}

static void after_fork(void)
{
    particles_after_fork(0);
    trees_after_fork(0);
}

static void after_fork_in_child(void)
{
    job_forget();
    particles_after_fork(1);
    trees_after_fork(1);
}

__attribute__((constructor)) static void process_begins(void)
{
    posix_begin();
    if (mounts.count > 0)
        pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

__attribute__((destructor)) static void process_ends(void)
{
    streams_flush();
    int error = mounts.count > 0 ? trees_end() : 0;

    if (mounts.count > 0)
        particles_finish();

    if (error != 0)
        posix_say("files that were open at the end of the program: %s", strerror(error));
}

/* A child of vfork may not do what this library does. */
CALL pid_t vfork(void)
{
    return fork();
}

CALL void _exit(int status)
{
    posix_begin();
    if (mounts.count > 0) {
        trees_end();
        particles_finish();
    }
    next._exit(status);
    __builtin_unreachable();
}

CALL void _Exit(int status)
{
    _exit(status);
}
