#include <stdlib.h>
#include <mpi.h>
#include "tools/ranks.h"
#include "tools/text.h"

#ifdef OPEN_MPI
#define MPI_NAME "Open MPI"
#else
#define MPI_NAME "MPICH"
#endif

int ranks_check_launcher(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    int ranks, code = EXIT_OK;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t i = 0; ranks == 1 && code == EXIT_OK && i < sizeof sizes / sizeof sizes[0]; i++) {
        const char *size = getenv(sizes[i]);
        if (size && atoi(size) > 1)
            code =
                text_fail(EXIT_USAGE,
                          "the launcher is of another MPI: each of its %s processes would do all of the work; use that "
                          "of " MPI_NAME ", " MPI_LAUNCHER " (to run one process alone, unset %s)",
                          size, sizes[i]);
    }
    return code;
}

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
