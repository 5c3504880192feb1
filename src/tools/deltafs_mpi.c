/* deltafs-mpi: what needs MPI. Run by mpirun or srun, or alone as one rank. */
#include <stdlib.h>
#include <string.h>
#include <mpi.h>
#include "tools/cmd.h"
#include "tools/ranks.h"

extern const struct command cmd_compact, cmd_import, cmd_index, cmd_mpi_pool, cmd_ns_cp, cmd_route, cmd_select;

static const struct command *const ns_commands[] = {&cmd_ns_cp, NULL};
static const struct command cmd_ns = {
    .name = "ns", .usage = "COMMAND ...", .text = "copies to and from namespaces.", .sub = ns_commands};
static const struct command *const commands[] = {&cmd_compact,  &cmd_import, &cmd_index,  &cmd_ns,
                                                 &cmd_mpi_pool, &cmd_route,  &cmd_select, NULL};
static struct program deltafs_mpi = {
    .text = "imports and indexes dumps, compacts directories, selects records, copies to and from namespaces, serves\n"
            "pools, and plans large jobs.",
    .codes = "0 done; 1 not found; 2 usage; 3 input, output or damage",
    .command = commands};

/* Whether progress=thread is asked for, which not every MPI does as fast. */
static int wants_thread(int argc, char **argv)
{
    const char *environment = getenv("DELTAFS_PROGRESS");
    int wants = environment && strcmp(environment, "thread") == 0;

    for (int i = 1; i < argc; i++)
        wants |= strcmp(argv[i], "--progress=thread") == 0 ||
                 (strcmp(argv[i], "thread") == 0 && strcmp(argv[i - 1], "--progress") == 0);
    return wants;
}

/* What needs no MPI, and no launcher. */
static int is_alone(int argc, char **argv)
{
    const char *first = argc > 1 ? argv[1] : "", *second = argc > 2 ? argv[2] : "";

    return strcmp(first, "route") == 0 || strcmp(first, "--list") == 0 || strcmp(second, "--list") == 0 ||
           (strcmp(first, "pool") == 0 && strcmp(second, "report") == 0);
}

int main(int argc, char **argv)
{
    int rank, level;

    text_program = "deltafs-mpi";
    if (is_alone(argc, argv))
        return cmd_main(&deltafs_mpi, argc, argv);
    MPI_Init_thread(&argc, &argv, wants_thread(argc, argv) ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    text_is_silent = rank != 0;
    deltafs_mpi.agree = ranks_agree;
    int code = ranks_check_launcher();
    if (code == EXIT_OK)
        code = cmd_main(&deltafs_mpi, argc, argv);
    MPI_Finalize();
    return code;
}
