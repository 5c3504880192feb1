/* The ranks of a communicator as a group: how they get one status and exchange bytes. It implements the operations of
 * base/collective.h, and some more.
 *
 * Collective calls wait by testing, and call `wait` meanwhile, which serves the other ranks and yields the processor.
 * If MPI fails, or the shuffle reports that it has failed, no agreement is possible any more: then the waits for few
 * bytes end, and all later calls return the first error. This is the one error that other ranks may not get. */
#ifndef DELTAFS_MPI_RANK_GROUP_H
#define DELTAFS_MPI_RANK_GROUP_H

#include <mpi.h>
#include "base/collective.h"

#define GROUP_ROOM 4096 /* bytes */

struct rank_group {
    MPI_Comm comm;
    int rank, ranks;
    int name; /* the rank's number in the caller's communicator, for messages */
    /* Called again and again while waiting; must not start collective calls. */
    void (*wait)(void *arg);
    void *arg;
    struct error lost;                           /* the first error after which the ranks cannot agree */
    int is_held;                                 /* MPI may write to `room` for ever, because a wait was abandoned */
    _Alignas(uint64_t) uint8_t room[GROUP_ROOM]; /* what MPI works on, if it is enough */
    uint64_t *sizes;                             /* of each rank's bytes in a gather; then two ints for each rank */
};

int mpi_error(struct error *e, int code, const char *what);

/* Whether the MPI that runs is of the kind that the library was built for. Handles of the other kind have another type,
 * so every function that takes one asks first. An unknown MPI is accepted. Local; does not need MPI_Init. */
int mpi_check_kind(struct error *e);

/* Yield the processor. After many calls in one wait of this thread that found nothing to do, sleep a little: there may
 * be more ranks than cores. */
void mpi_pause(int has_moved);

/* Collective: a group over a duplicate of `comm`, in `size` bytes of memory that begin with it; the rest is 0. The
 * ranks may come late, so this waits too. An error is that of all ranks. */
int mpi_group_create(MPI_Comm comm, size_t size, void (*wait)(void *arg), struct rank_group **out, struct error *e);
/* Collective unless the ranks are lost. Frees its memory, unless MPI still uses it. */
void mpi_group_destroy(struct rank_group *g);

/* The ranks of a communicator, which is borrowed, that wait as those of `g` do. If they lose each other, `g` is lost.
 */
struct rank_group mpi_group_part(const struct rank_group *g, MPI_Comm comm);
void mpi_group_end_part(struct rank_group *g, struct rank_group *part);

struct collective mpi_group_collective(struct rank_group *g);

/* The ranks have lost each other. The first error counts. */
void mpi_group_lose(struct rank_group *g, const struct error *e);
static inline int mpi_group_is_lost(const struct rank_group *g)
{
    return g->lost.status != DELTAFS_OK;
}
/* If so, set *e; returns its status. */
int mpi_group_check(const struct rank_group *g, struct error *e);
/* MPI has failed, and so the ranks are lost. */
int mpi_group_fail(struct rank_group *g, int code, const char *what, struct error *e);

/* Collective: if *e of any rank is an error, all get that of the lowest such rank, which its message names. */
int mpi_agree(struct rank_group *g, struct error *e);

/* Collective: element-wise maximum, minimum or sum over all ranks, in place, of values in at most GROUP_ROOM bytes. For
 * maximum and minimum the values must be below 2^63: some MPIs (MPICH 4.0.2 for one) compare unsigned 64-bit numbers as
 * signed ones. */
int mpi_reduce(struct rank_group *g, uint64_t *values, int n, MPI_Op op, struct error *e);

/* Collective: rank 0's `n` bytes to all. */
int mpi_broadcast(struct rank_group *g, void *bytes, size_t n, struct error *e);

/* Collective: as collective_broadcast and collective_gather of base/collective.h. */
int mpi_broadcast_bytes(struct rank_group *g, struct bytes *bytes, struct error *e);
int mpi_gather(struct rank_group *g, const void *mine, size_t n, struct bytes *all, struct error *e);
/* The same, for rank 0 alone, whose *all gets at most 1 GiB. An error of any rank becomes that of all. */
int mpi_gather_first(struct rank_group *g, const void *mine, size_t n, struct bytes *all, struct error *e);

#endif
