/* Indexing with all ranks: the core does it, with MPI's collective calls. */
#include <fcntl.h>
#include <deltafs/deltafs_mpi.h>
#include "fileindex/indexer.h"
#include "mpi/job/logical_job.h"

static int mpi_open(void *ctx, int is_made, const char *path, const deltafs_options *options, deltafs_dir **out)
{
    MPI_Comm comm = ((struct rank_group *)ctx)->comm;

    return is_made ? deltafs_mpi_reopen(comm, path, options, out) : deltafs_mpi_create(comm, path, options, out);
}

static int mpi_open_logical(void *ctx, const char *path, deltafs_logical **out)
{
    return deltafs_mpi_logical_open(((struct rank_group *)ctx)->comm, path, O_RDONLY, NULL, out);
}

static const struct indexer_calls calls = {.open = mpi_open, .open_logical = mpi_open_logical};

int job_index_closed(struct logical_job *j, const struct key_writer *own, struct error *e)
{
    struct collective group = mpi_group_collective(&j->group);

    return deltafs_private_index_closed(j->path, j->options, &group, &calls, own, e);
}

int deltafs_mpi_indexer_open(MPI_Comm comm, const char *index, const char *path, const deltafs_options *options,
                             deltafs_indexer **out)
{
    struct error *e = deltafs_private_thread_error(), own = {0};
    struct logical_job *j;
    int status = logical_job_create(comm, &j, e);

    if (status != DELTAFS_OK)
        return status;
    if (!out || (j->group.rank == 0 && !index && !path))
        error_set(&own, DELTAFS_ERR_INVALID, "deltafs_mpi_indexer_open: index or path, and out, must be given");
    status = mpi_agree(&j->group, &own);
    if (status == DELTAFS_OK) {
        struct collective group = mpi_group_collective(&j->group);
        group.destroy = logical_job_destroy;
        status = deltafs_private_indexer_open_group(index, path, options, &group, &calls, out, &own);
    }
    if (status != DELTAFS_OK) {
        *e = own;
        logical_job_destroy(&j->group);
    }
    return status;
}
