/* The collective calls of the ranks of a communicator, as the core asks for them (core/logical.h). */
#ifndef DELTAFS_MPI_LOGICAL_GROUP_H
#define DELTAFS_MPI_LOGICAL_GROUP_H

#include <deltafs/deltafs_fileindex.h>
#include "fileindex/source_file.h"
#include "logical/logical.h"
#include "mpi/agree.h"

/* The context of a group. */
struct logical_job {
    struct agree agree;
    uint64_t *sizes; /* of each rank's bytes */
    int *counts, *places;
    /* On rank 0, of a logical file that was opened with this group: */
    deltafs_options *options;
    char *path;
};

/* Collective: a group over a duplicate of `comm`. Fails on all ranks. */
int logical_job_create(MPI_Comm comm, struct logical_job **out, struct error *e);
void logical_job_destroy(void *job);
struct logical_group logical_job_group(struct logical_job *j);

/* Collective: an indexer of this group, which stays its owner's; as deltafs_private_indexer_open_group (job_indexer.c).
 */
int job_indexer_open(struct logical_job *j, const char *index, const char *path, const deltafs_options *options,
                     deltafs_indexer **out, struct error *e);
/* Collective: index the file of the job, of `size` bytes, which all ranks have closed, if its options say so. `own`:
 * what this rank wrote; NULL on all of them if not all captured keys (logical_close.c). */
int keys_after_close(struct logical_job *j, uint64_t size, const struct key_writer *own, struct error *e);

#endif
