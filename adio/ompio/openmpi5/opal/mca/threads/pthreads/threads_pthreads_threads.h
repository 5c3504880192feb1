/* See threads_pthreads_mutex.h. */
#ifndef DELTAFS_OPENMPI5_THREADS_H
#define DELTAFS_OPENMPI5_THREADS_H

#include <pthread.h>
#include <sched.h>

static inline void opal_thread_yield(void)
{
    sched_yield();
}

#endif
