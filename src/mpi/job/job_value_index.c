/* Value indexes made by all ranks: the core does it, with MPI's collective calls. */
#include <deltafs/deltafs_mpi.h>
#include "mpi/job/logical_job.h"
#include "query/value_index.h"

static int mpi_open(void *ctx, int is_made, const char *path, const deltafs_options *options, deltafs_dir **out)
{
    MPI_Comm comm = ((struct rank_group *)ctx)->comm;

    return is_made ? deltafs_mpi_reopen(comm, path, options, out) : deltafs_mpi_create(comm, path, options, out);
}

int deltafs_mpi_index_by(MPI_Comm comm, const char *path, const char *index, const deltafs_options *options,
                         uint64_t *epochs, uint64_t *records)
{
    struct error *e = deltafs_private_thread_error(), own = {0};
    struct logical_job *j;
    int status = logical_job_create(comm, &j, e);

    if (status != DELTAFS_OK)
        return status;
    if (!path || !index || !epochs || !records)
        error_set(&own, DELTAFS_ERR_INVALID, "deltafs_mpi_index_by: path, index, epochs and records must be given");
    status = mpi_agree(&j->group, &own);
    if (status == DELTAFS_OK) {
        const struct collective group = mpi_group_collective(&j->group);
        const struct value_index_ranks ranks = {.group = &group, .open = mpi_open, .ctx = &j->group};
        struct value_index_maker maker = {.ranks = &ranks, .options = options};
        status = deltafs_private_value_index_make(&maker, path, index, &own);
        *epochs = maker.epochs;
        *records = maker.records;
    }
    if (status != DELTAFS_OK)
        *e = own;
    logical_job_destroy(&j->group);
    return status;
}
