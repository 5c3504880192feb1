#include <mpi.h>
#include "tools/ranks.h"
#include "tools/text.h"

int ranks_agree(int code)
{
    int rank, ranks, first;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int mine = code != EXIT_OK ? rank : ranks;
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == ranks)
        return EXIT_OK;
    if (first == rank)
        text_print_kept();
    MPI_Bcast(&code, 1, MPI_INT, first, MPI_COMM_WORLD);
    return code;
}
