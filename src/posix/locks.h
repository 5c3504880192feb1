/* Locks of this library. A thread does not wait for one that it has, takes or gives already: that is a handler of a
 * signal, which has interrupted a call of this library. */
#ifndef DELTAFS_POSIX_LOCKS_H
#define DELTAFS_POSIX_LOCKS_H

#include <pthread.h>

#define LOCK_INITIALIZER PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP

void lock_init(pthread_mutex_t *l);
/* Lock. Returns EDEADLK, without the lock, in such a handler. */
int lock_try(pthread_mutex_t *l);
/* The same, but such a handler goes on without the lock. */
void lock_take(pthread_mutex_t *l);
/* Unlock; what a handler did not get stays with the call that it has interrupted. */
void lock_give(pthread_mutex_t *l);
/* Whether this thread has one: a handler asks whether it has interrupted a call. */
int lock_is_held(void);
/* Unlock what was locked before a fork. The child has no threads that wait for it, and the thread that it has is not
 * the owner of its parent's locks. */
void lock_release(pthread_mutex_t *l, int is_child);

/* Those that are held for short times only, and under which no other is locked but that of the descriptors. */
extern pthread_mutex_t *const lock_of_mappings;
extern pthread_mutex_t *const lock_of_placeholders;
extern pthread_mutex_t *const lock_of_commands;
extern pthread_mutex_t *const lock_of_streams;
extern pthread_mutex_t *const lock_of_messages;
/* Around a fork: lock them, so that what they guard is in order in the child, and release them. */
void locks_hold(void);
void locks_release(int is_child);

#endif
