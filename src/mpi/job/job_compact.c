/* Compaction with all ranks: the core does it, with MPI's collective calls. */
#include <stdlib.h>
#include <deltafs/deltafs_mpi.h>
#include "base/path.h"
#include "base/sized.h"
#include "mpi/job/job.h"
#include "mpi/rank_group.h"
#include "query/compact_epochs.h"

int deltafs_mpi_compact(MPI_Comm comm, const char *from, const char *to, const struct deltafs_compact_options *options)
{
    static const char call[] = "deltafs_mpi_compact";
    struct error *e = deltafs_private_thread_error(), own = {0};
    struct deltafs_compact_options o = {0};
    struct rank_group *group;
    char *whole = NULL;
    int status = mpi_group_create(comm, sizeof *group, job_wait, &group, e);

    if (status != DELTAFS_OK)
        return status;
    if (!from || !*from || !to || !*to)
        error_set(&own, DELTAFS_ERR_INVALID, "%s: from and to must be given", call);
    else if (options)
        sized_take(&o, options, sizeof o, call, &own);
    if (own.status == DELTAFS_OK && !(whole = path_absolute(to)))
        error_no_memory(&own, strlen(to), "a path");
    status = mpi_agree(group, &own);
    if (status == DELTAFS_OK) {
        const struct collective all = mpi_group_collective(group);
        status = deltafs_private_compact(&all, from, whole, &o, &own);
    }
    if (status != DELTAFS_OK)
        *e = own;
    free(whole);
    mpi_group_destroy(group);
    return status;
}
