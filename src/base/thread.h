/* Threads of the library's own. */
#ifndef DELTAFS_BASE_THREAD_H
#define DELTAFS_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>
#include "base/error.h"

/* Start a thread in which no signal is handled: those are the program's, whose handlers do not expect this stack. */
int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, struct error *e);

/* A clock that nobody sets, in nanoseconds. */
uint64_t thread_clock(void);

/* How many times the calling thread has slept to wait for something, such as storage. */
uint64_t thread_waits(void);

/* Processors that the calling thread, and what it starts, may run on. */
uint32_t thread_processors(void);

#endif
