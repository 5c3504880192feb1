/* MPI fails on one rank while a directory is closed: that rank returns.
 *
 *     test_mpi_lost FOLDER COUNT    COUNT: reductions of the close before the one that fails
 *
 * Two ranks; a reduction of the second one fails. The first then waits for the second for ever, as
 * only a new job can help: the second ends both, with exit code LOST_WELL. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "test_mpi_check.h"

enum { LOST_WELL = 42, DEADLINE = 20, LATE_US = 200000 };

static int countdown = -1; /* reductions until one fails; below 0: none does */

int MPI_Iallreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    if (countdown >= 0 && countdown-- == 0)
        return MPI_ERR_OTHER;
    return PMPI_Iallreduce(from, to, n, type, op, comm, request);
}

/* Be late with the end of a round, so that the other rank, whose own has gone, still has the credit for it. */
static int is_late;

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    int code = PMPI_Test(request, flag, status);

    if (*flag && is_late)
        usleep(LATE_US);
    return code;
}

int main(int argc, char **argv)
{
    uint64_t value = 7;
    deltafs_dir *dir = NULL;

    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!CHECK(argc == 3 && check_ranks == 2))
        return check_end();
    deltafs_options *o = check_options("value_size=8 memory=8M nodes=2 sync=none");
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_create(MPI_COMM_WORLD, check_path(argv[1], "d"), o, &dir), NULL);
    deltafs_options_destroy(o);
    check_require();
    for (uint64_t key = 0; key < 1000; key++)
        CHECK_STATUS(DELTAFS_OK, deltafs_append(dir, key, &value, sizeof value), dir);
    is_late = check_rank == 1;
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, 1), dir);
    is_late = 0;
    check_require();
    if (check_rank == 1)
        countdown = atoi(argv[2]);
    alarm(DEADLINE); /* kills who waits, and the job with it */
    int status = deltafs_close(dir);
    if (check_rank == 1 && CHECK_STATUS(DELTAFS_ERR_MPI, status, NULL)) {
        MPI_Abort(MPI_COMM_WORLD, LOST_WELL);
        _exit(LOST_WELL);
    }
    pause();
    return EXIT_FAILURE;
}
