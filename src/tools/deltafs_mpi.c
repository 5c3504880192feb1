/* deltafs-mpi: what needs MPI. Run by mpirun or srun, or alone as one rank. */
#include <stdlib.h>
#include <string.h>
#include <mpi.h>
#include <deltafs/deltafs.h>
#include "tools/cmd_mpi.h"
#include "tools/text.h"

static const char usage[] =
    "deltafs-mpi import --format vpic -o DIR [OPTION...] FILE...\n"
    "deltafs-mpi import --format raw --schema S --key FIELD [--skip BYTES] [--epoch N] -o DIR [OPTION...] FILE...\n"
    "    Create the directory DIR from dumps. Ranks share the work: mpirun -np 4 deltafs-mpi import ...\n"
    "    --format vpic   VPIC particle dumps (version 0) with particle IDs; the epoch's label is the step\n"
    "    --format raw    files of fixed-size records, as --schema says (x:f4,id:u8,...)\n"
    "    --key FIELD     raw: the field of the schema that is the key\n"
    "    --skip BYTES    raw: bytes to skip at each file's start (default 0)\n"
    "    --epoch N       raw: the label of the epoch (default 0)\n"
    "    -o, --output    the directory to create; it must not exist, unless --append is given\n"
    "    -a, --append    continue after the last epoch of DIR; skip files of epochs that it has\n"
    "    -q, --quiet     no progress bar, no summary\n"
    "    OPTION          any of 'deltafs help options', such as --memory 256M or --partitions 16\n"
    "deltafs-mpi index --schema S --key FIELD [--skip BYTES] [--label N] [-o INDEX] [--again] [OPTION...] "
    "FILE...\n"
    "deltafs-mpi index --key DATASET [--label N] [-o INDEX] [--again] [OPTION...] FILE...\n"
    "deltafs-mpi index --forget -o INDEX [FILE...]\n"
    "    Index the rows of files by key; then 'deltafs get INDEX-or-FILE KEY' reads them. The files do not change.\n"
    "    Files that have not changed since they were indexed are skipped.\n"
    "    --schema S      files of fixed-size records, such as x:f4,id:u8,...; plain or logical ones\n"
    "    --key FIELD     the field of the schema that is the key\n"
    "    --key DATASET   HDF5 files: the path of the datasets that have the keys, such as '/Timestep_*/id', with a "
    "'/'\n"
    "    --skip BYTES    bytes to skip at each file's start (default 0)\n"
    "    --label N       the timestep of all files (default: the number that * stands for in DATASET; or the last "
    "number in\n"
    "                    each file's name; or 0)\n"
    "    -o, --output    one index for all these files (default: one for each: FILE.keys, or\n"
    "                    FILE/keys of a logical file)\n"
    "    --again         also index files that have not changed, to replace the key or the label\n"
    "    --forget        remove these files, or all that no longer exist, from the index; no file changes\n"
    "    -q, --quiet     no summary\n"
    "deltafs-mpi route --ranks N --per-node M [--json] [OPTION...]\n"
    "    Print the route of records in a job of N ranks, M per node, and its memory. Needs no mpirun.\n"
    "    OPTION          --route, --memory, --partitions\n"
    "deltafs-mpi help\n"
    "deltafs-mpi --version\n"
    "\nExit codes: 0 done; 2 usage; 3 input, output or damage.\n";

static int is_one_of(const char *name, const char *a, const char *b, const char *c)
{
    return strcmp(name, a) == 0 || strcmp(name, b) == 0 || strcmp(name, c) == 0;
}

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

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    char full_name[] = "deltafs-mpi: import";
    int rank, level, code = EXIT_OK;

    text_program = "deltafs-mpi";
    if (strcmp(name, "route") == 0 && !(argc > 2 && is_one_of(argv[2], "--help", "-h", "help"))) {
        code = cmd_route(argc - 1, argv + 1);
        return code == EXIT_OK ? text_finish() : code;
    }
    MPI_Init_thread(&argc, &argv, wants_thread(argc, argv) ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (is_one_of(name, "help", "--help", "-h") ||
        (is_one_of(name, "import", "index", "route") && argc > 2 && is_one_of(argv[2], "--help", "-h", "help"))) {
        if (rank == 0)
            fputs(usage, stdout);
    } else if (strcmp(name, "import") == 0) {
        argv[1] = full_name; /* what getopt's messages begin with */
        code = cmd_import(argc - 1, argv + 1);
    } else if (strcmp(name, "index") == 0) {
        strcpy(strrchr(full_name, ' ') + 1, "index");
        argv[1] = full_name;
        code = cmd_index(argc - 1, argv + 1);
    } else if (strcmp(name, "--version") == 0) {
        if (rank == 0)
            printf("deltafs-mpi %s\n", deltafs_version());
    } else {
        code = EXIT_USAGE;
        if (rank == 0)
            text_fail(code, "%s%s%s; there are import, index, route, help. Try 'deltafs-mpi help'",
                      argc > 1 ? "no command '" : "a command is missing", name, argc > 1 ? "'" : "");
    }
    if (code == EXIT_OK)
        code = text_finish();
    MPI_Finalize();
    return code;
}
