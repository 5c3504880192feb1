#include <deltafs/deltafs_mpi.h>
#include "base/options.h"

static int refuse(void)
{
    struct error e;

    error_set(&e, DELTAFS_ERR_VERSION,
              "this DeltaFS is built without servers of pools: install LMDB (Debian: liblmdb-dev) and configure again");
    return error_of_thread(e.status, &e);
}

int deltafs_mpi_pool_serve(MPI_Comm comm, const struct deltafs_mpi_pool *pool)
{
    (void)comm;
    (void)pool;
    return refuse();
}

int deltafs_mpi_pool_report(uint64_t servers, uint64_t memory, struct deltafs_pool_report *out)
{
    (void)servers;
    (void)memory;
    (void)out;
    return refuse();
}
