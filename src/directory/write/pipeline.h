/* Memtables in flight: while one fills, others wait for a worker thread, which takes them in the order in which they
 * came. Without the thread all is done at once by the caller. */
#ifndef DELTAFS_DIRECTORY_PIPELINE_H
#define DELTAFS_DIRECTORY_PIPELINE_H

#include "directory/write/memtable.h"

#define PIPELINE_TABLES 3 /* at most */

/* What the worker does with a full memtable, which it empties; or, with NULL, at an epoch's end. */
typedef void (*pipeline_fn)(void *ctx, struct memtable *table);

struct pipeline;

/* The tables, all empty, are the caller's; it has them back after pipeline_destroy. */
int pipeline_create(struct memtable *tables, uint32_t count, int has_thread, pipeline_fn work, void *ctx,
                    struct pipeline **out, struct error *e);
/* Waits for what is under way. NULL is fine. */
void pipeline_destroy(struct pipeline *p);

/* An empty table; waits until there is one. Each table but the last must have been handed over. */
struct memtable *pipeline_take(struct pipeline *p);
/* Whether there is one now, or handing one over makes one. */
int pipeline_has_free(struct pipeline *p);
/* Hand over a table. */
void pipeline_give(struct pipeline *p, struct memtable *table);
/* Hand over the epoch's end; no other may be under way. */
void pipeline_end(struct pipeline *p);
/* Whether the worker is still at the epoch's end. */
int pipeline_is_ending(struct pipeline *p);
/* Wait until it is not. */
void pipeline_wait_end(struct pipeline *p);
/* Wait until it has nothing to do. */
void pipeline_wait(struct pipeline *p);

#endif
