#include <deltafs/deltafs_mpi.h>
#include "base/options.h"

int deltafs_mpi_pool_serve(MPI_Comm comm, const struct deltafs_mpi_pool *pool)
{
    struct error e;

    (void)comm;
    (void)pool;
    error_set(&e, DELTAFS_ERR_VERSION,
              "this DeltaFS is built without servers of pools: install LMDB (Debian: liblmdb-dev) and configure again");
    return error_of_thread(e.status, &e);
}
