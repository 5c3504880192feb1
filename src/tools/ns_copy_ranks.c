#include <mpi.h>
#include "tools/ns_copy.h"
#include "tools/ranks.h"

void ns_copy_ranks(int *rank, int *ranks)
{
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, ranks);
}

int ns_copy_agree(int code)
{
    return ranks_agree(code);
}

void ns_copy_broadcast(void *bytes, size_t size)
{
    MPI_Bcast(bytes, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
}
