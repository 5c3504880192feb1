/* Agreement: all ranks get the same status. Collective calls wait by testing, and call `wait` meanwhile, which serves
 * the other ranks and yields the processor. */
#ifndef DELTAFS_MPI_AGREE_H
#define DELTAFS_MPI_AGREE_H

#include <mpi.h>
#include "base/error.h"

#define AGREE_ROOM 2048 /* bytes */

/* The buffer of a collective call, if its data fit: when a wait is abandoned, MPI may still write to it. */
struct agree_room {
    int is_held; /* by MPI; for ever if a wait was abandoned */
    _Alignas(uint64_t) uint8_t bytes[AGREE_ROOM];
};

struct agree {
    MPI_Comm comm;
    int rank, ranks;
    int name; /* the rank's number where its user counts, for messages */
    /* Called again and again while waiting; must not start collective calls. */
    void (*wait)(void *arg);
    /* Called when what was waited for has come: the next wait is another one. May be NULL. */
    void (*met)(void *arg);
    /* Called where MPI fails, before that is returned: no agreement is sure any more. May be NULL. */
    void (*lose)(void *arg);
    /* Asked before and while waiting: whether the ranks have lost each other otherwise, which ends the wait. Returns
     * DELTAFS_OK or the error that all calls return from there on. May be NULL; needs the room. */
    int (*check)(void *arg, struct error *e);
    struct agree_room *room;
    void *arg;
};

/* Turn an MPI error code into a status. */
int agree_mpi_error(struct error *e, int code, const char *what);

/* Complete a request as described above, but without asking `check`. */
int agree_wait(const struct agree *a, MPI_Request *request, const char *what, struct error *e);

/* Collective: if *e of any rank is an error, all get that of the lowest such rank, which its message names. Returns the
 * status that all have in common. MPI failing is the one error that may not be the same everywhere. */
int agree_status(const struct agree *a, struct error *e);

/* Collective: element-wise maximum, minimum or sum over all ranks, in place. For maximum and minimum the values must be
 * below 2^63: some MPIs (MPICH 4.0.2 for one) compare unsigned 64-bit numbers as signed ones. */
int agree_reduce(const struct agree *a, uint64_t *values, int n, MPI_Op op, struct error *e);

/* Collective: rank 0's bytes to all. */
int agree_broadcast(const struct agree *a, void *bytes, int n, struct error *e);

#endif
