/* A thread that works off a queue in order. Each item of work has a thing, such as a buffer or a table. The caller
 * takes a free thing, fills it and puts an item with it into the queue. When the work is done, the thing is free again.
 * Without the thread, queue_put does the work itself. */
#ifndef DELTAFS_BASE_QUEUE_H
#define DELTAFS_BASE_QUEUE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct queue;

typedef void (*queue_fn)(void *ctx, const void *item);

/* For at most `most` things. An item has `size` bytes and begins with a pointer to its thing, or NULL for none. One
 * item without a thing may be in the queue. */
int queue_create(uint32_t most, size_t size, int has_thread, queue_fn work, void *ctx, struct queue **out,
                 struct error *e);
/* Waits for what is under way. NULL is fine. */
void queue_destroy(struct queue *q);

/* Give the queue one more free thing. */
void queue_add(struct queue *q, void *thing);
/* A free thing; waits until there is one. */
void *queue_take(struct queue *q);
/* The same, but NULL if there is none now. */
void *queue_try(struct queue *q);
/* Whether there is a free thing now, or putting an item makes one. */
int queue_has_free(struct queue *q);

/* Returns the number of the item, from 1 on. */
uint64_t queue_put(struct queue *q, const void *item);
/* Whether all items up to this number are done. */
int queue_has_done(struct queue *q, uint64_t number);
#define QUEUE_ALL UINT64_MAX /* all items that are there at the call */
void queue_wait(struct queue *q, uint64_t number);

#endif
