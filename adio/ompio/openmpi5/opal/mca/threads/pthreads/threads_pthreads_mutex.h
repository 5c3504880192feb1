/* Open MPI 5's internal headers include this file, which Debian's package lacks. Here is what they need of it: its
 * threads are POSIX threads. Searched after the installed headers. */
#ifndef DELTAFS_OPENMPI5_MUTEX_H
#define DELTAFS_OPENMPI5_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define OPAL_THREAD_INTERNAL_COND_INITIALIZER  PTHREAD_COND_INITIALIZER

static inline int opal_thread_internal_mutex_trylock(opal_thread_internal_mutex_t *mutex)
{
    return pthread_mutex_trylock(mutex) != 0;
}

static inline void opal_thread_internal_mutex_lock(opal_thread_internal_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
}

static inline void opal_thread_internal_mutex_unlock(opal_thread_internal_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
}

static inline int opal_thread_internal_mutex_init(opal_thread_internal_mutex_t *mutex, bool is_recursive)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, is_recursive ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_DEFAULT);
    int rc = pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return rc != 0 ? -1 : 0;
}

static inline void opal_thread_internal_mutex_destroy(opal_thread_internal_mutex_t *mutex)
{
    pthread_mutex_destroy(mutex);
}

static inline int opal_thread_internal_cond_init(opal_thread_internal_cond_t *cond)
{
    return pthread_cond_init(cond, NULL) != 0 ? -1 : 0;
}

static inline void opal_thread_internal_cond_signal(opal_thread_internal_cond_t *cond)
{
    pthread_cond_signal(cond);
}

static inline void opal_thread_internal_cond_destroy(opal_thread_internal_cond_t *cond)
{
    pthread_cond_destroy(cond);
}

#endif
