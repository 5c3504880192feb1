/* Collective operations of a group of ranks, as logical files and indexes use them. src/mpi/rank_group.c implements
 * them over MPI. A process alone needs no implementation: it is rank 0 of 1.
 *
 * An error of one rank never skips a call: it is carried, in *e, to the next call that compares errors. Unless a
 * comment says otherwise, all ranks get the same status. */
#ifndef DELTAFS_BASE_COLLECTIVE_H
#define DELTAFS_BASE_COLLECTIVE_H

#include <string.h>
#include "base/buffer.h"

/* A byte array that grows. */
struct bytes {
    struct buffer buffer;
    size_t used;
};

static inline int bytes_append(struct bytes *b, const void *p, size_t n, struct error *e)
{
    int status = buffer_reserve(&b->buffer, b->used + n, "a list", e);

    if (status != DELTAFS_OK || n == 0)
        return status;
    memcpy(b->buffer.bytes + b->used, p, n);
    b->used += n;
    return DELTAFS_OK;
}

struct rank_group; /* src/mpi/rank_group.h */

/* See the functions below. */
struct collective_calls {
    int (*agree)(struct rank_group *group, struct error *e);
    int (*max)(struct rank_group *group, uint64_t *values, int n, struct error *e);
    int (*broadcast)(struct rank_group *group, struct bytes *bytes, struct error *e);
    int (*gather)(struct rank_group *group, const void *mine, size_t n, struct bytes *all, struct error *e);
};

struct collective {
    const struct collective_calls *calls; /* not used by a process alone */
    struct rank_group *ctx;
    void (*destroy)(struct rank_group *group); /* for who owns the group in the end; may be NULL */
    uint32_t rank, ranks;
    uint32_t job; /* processes of the whole job, which may share this one's processors */
};

/* A process alone. */
#define COLLECTIVE_ALONE ((struct collective){.ranks = 1, .job = 1})

/* The first error of any rank becomes the error of all. Returns its status. */
static inline int collective_agree(const struct collective *c, struct error *e)
{
    return c->ranks > 1 ? c->calls->agree(c->ctx, e) : e->status;
}

/* The greatest of each of `n` values over all ranks, in place. */
static inline int collective_max(const struct collective *c, uint64_t *values, int n, struct error *e)
{
    return c->ranks > 1 ? c->calls->max(c->ctx, values, n, e) : DELTAFS_OK;
}

/* Broadcast rank 0's bytes, or its error if *e is one there. Another rank's own error stays in its *e until the next
 * agreement; that rank gets no bytes. */
static inline int collective_broadcast(const struct collective *c, struct bytes *bytes, struct error *e)
{
    return c->ranks > 1 ? c->calls->broadcast(c->ctx, bytes, e) : e->status;
}

/* As collective_agree; without an error, append the bytes of all ranks, in the order of ranks, to `all`. */
static inline int collective_gather(const struct collective *c, const void *mine, size_t n, struct bytes *all,
                                    struct error *e)
{
    if (c->ranks > 1)
        return c->calls->gather(c->ctx, mine, n, all, e);
    return e->status == DELTAFS_OK ? bytes_append(all, mine, n, e) : e->status;
}

static inline void collective_destroy(const struct collective *c)
{
    if (c->destroy)
        c->destroy(c->ctx);
}

#endif
