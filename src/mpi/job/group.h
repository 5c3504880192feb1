/* The ranks of a communicator as a group (base/collective.h). */
#ifndef DELTAFS_MPI_GROUP_H
#define DELTAFS_MPI_GROUP_H

#include "base/collective.h"
#include "mpi/agree.h"

struct mpi_group {
    struct agree agree; /* over a communicator of its own */
    uint64_t *sizes;    /* of each rank's bytes in a gather */
    int *counts, *places;
};

/* Collective: a group over a duplicate of `comm`, in `size` bytes of memory that begin with it; the rest is 0. An error
 * is that of all ranks. */
int mpi_group_create(MPI_Comm comm, size_t size, struct mpi_group **out, struct error *e);

/* Free all but the memory of the group itself. */
void mpi_group_fini(struct mpi_group *group);

struct collective mpi_group_collective(struct mpi_group *group);

/* Collective: broadcast rank 0's bytes, as collective_broadcast. */
int mpi_group_broadcast(struct mpi_group *group, struct bytes *bytes, struct error *e);

#endif
