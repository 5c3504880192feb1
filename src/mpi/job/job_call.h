/* One call of all ranks, with the arguments of rank 0. */
#ifndef DELTAFS_MPI_JOB_CALL_H
#define DELTAFS_MPI_JOB_CALL_H

#include "base/options.h"
#include "mpi/rank_group.h"

/* Collective: rank 0's path, flags and options to all ranks. Elsewhere *path refers to `call` afterwards, which is to
 * be freed. An error of rank 0, in *e, becomes that of all; one of another rank stays in its *e. */
int job_call_share(struct rank_group *group, const char **path, int *flags, deltafs_options *o, struct bytes *call,
                   struct error *e);

#endif
