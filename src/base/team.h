/* Threads that share equal tasks with the caller. They are started when they are first needed, and reused. */
#ifndef DELTAFS_BASE_TEAM_H
#define DELTAFS_BASE_TEAM_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct team;

/* Of at most `threads` threads beside the caller's; 0: none. */
int team_create(uint32_t threads, struct team **out, struct error *e);
/* NULL is fine. */
void team_destroy(struct team *t);
uint32_t team_threads(const struct team *t);

/* Call task(ctx, i) once for each i from 0 to n - 1, in any thread; they are taken in this order, and may end in any
 * other. Returns when all have returned. Where threads cannot be started, there are fewer; in a process forked since
 * the team was made, there are none. */
void team_run(struct team *t, void (*task)(void *ctx, size_t i), void *ctx, size_t n);

#endif
