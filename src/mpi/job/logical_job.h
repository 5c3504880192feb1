/* A group of ranks that opens a logical file or an index together. */
#ifndef DELTAFS_MPI_LOGICAL_JOB_H
#define DELTAFS_MPI_LOGICAL_JOB_H

#include <deltafs/deltafs_fileindex.h>
#include "fileindex/source_file.h"
#include "logical/logical.h"
#include "mpi/rank_group.h"

struct logical_job {
    struct rank_group group; /* its collective's ctx is the job */
    /* On rank 0, for a logical file: */
    deltafs_options *options;
    char *path;
};

/* Collective: over a duplicate of `comm`. An error is that of all ranks. */
int logical_job_create(MPI_Comm comm, struct logical_job **out, struct error *e);
void logical_job_destroy(struct rank_group *job);

/* Collective: an indexer of this group, which stays its owner's; as deltafs_private_indexer_open_group (job_indexer.c).
 */
int job_indexer_open(struct logical_job *j, const char *index, const char *path, const deltafs_options *options,
                     deltafs_indexer **out, struct error *e);
/* Collective: index the file of the job, of `size` bytes, which all ranks have closed, if its options say so. `own`:
 * what this rank wrote; NULL on all of them if not all captured keys (logical_close.c). */
int keys_after_close(struct logical_job *j, uint64_t size, const struct key_writer *own, struct error *e);

#endif
