/* A group of ranks that opens a logical file or an index together. */
#ifndef DELTAFS_MPI_LOGICAL_JOB_H
#define DELTAFS_MPI_LOGICAL_JOB_H

#include <deltafs/deltafs_fileindex.h>
#include "fileindex/source_file.h"
#include "logical/logical.h"
#include "mpi/rank_group.h"

struct logical_job {
    struct rank_group group;  /* its collective's ctx is the job */
    deltafs_options *options; /* of a logical file, on rank 0 */
    char *path;               /* of a logical file, on rank 0; of a pool's, on all ranks */
};

/* Collective: over a duplicate of `comm`. An error is that of all ranks. */
int logical_job_create(MPI_Comm comm, struct logical_job **out, struct error *e);
void logical_job_destroy(struct rank_group *job);

/* Collective: deltafs_mpi_logical_open. The file owns the job then; after an error the caller does. */
int logical_job_open(struct logical_job *j, const char *path, int flags, const deltafs_options *given,
                     deltafs_logical **out, struct error *e);

/* Collective: index the file of the job, which all ranks have closed, if its options say so. `own`: what this rank
 * wrote; NULL on all of them if not all captured keys (job_indexer.c). */
int job_index_closed(struct logical_job *j, const struct key_writer *own, struct error *e);

#endif
