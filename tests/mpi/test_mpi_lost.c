/* MPI fails on one rank: that rank returns, with MPI's error, and so do all its calls that follow.
 *
 *     test_mpi_lost FOLDER WHERE CALL COUNT [OPTIONS]
 *
 * Of two ranks one has a call of MPI fail, after COUNT of these, counted from WHERE on:
 *
 *     create    the directory's making; rank 0
 *     append    an epoch that both append to; rank 1
 *     wait      the same, but rank 1 appends nothing: while it waits for the other at the epoch's end it serves it
 *     close     the close; rank 1
 *     wind-up   the close; rank 0, which has credits to give back if a channel has four buffers (memory=64M)
 *
 * The other rank then waits for it for ever, as only a new job can help: the one that failed ends both, with exit code
 * LOST_WELL. If nothing fails, as COUNT is too high, the exit code is 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "test_mpi_check.h"
#include "test_mpi_nodes.h"

enum { LOST_WELL = 42, DEADLINE = 20, LATE_US = 200000, FEW = 1000, MANY = 100000 };

static const char *call = "";
static int countdown = -1; /* calls until one fails; below 0: none does */

static int is_to_fail(const char *name)
{
    return countdown >= 0 && strcmp(call, name) == 0 && countdown-- == 0;
}

int MPI_Iallreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    return is_to_fail("Iallreduce") ? MPI_ERR_OTHER : PMPI_Iallreduce(from, to, n, type, op, comm, request);
}

int MPI_Ibcast(void *bytes, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
    return is_to_fail("Ibcast") ? MPI_ERR_OTHER : PMPI_Ibcast(bytes, n, type, root, comm, request);
}

int MPI_Isend(const void *bytes, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    return is_to_fail("Isend") ? MPI_ERR_OTHER : PMPI_Isend(bytes, n, type, to, tag, comm, request);
}

int MPI_Irecv(void *bytes, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    return is_to_fail("Irecv") ? MPI_ERR_OTHER : PMPI_Irecv(bytes, n, type, from, tag, comm, request);
}

int MPI_Testsome(int n, MPI_Request requests[], int *count, int done[], MPI_Status statuses[])
{
    return is_to_fail("Testsome") ? MPI_ERR_OTHER : PMPI_Testsome(n, requests, count, done, statuses);
}

/* Be late with the end of a round, so that the other rank, whose own has gone, still has the credit for it. */
static int is_client_cached;

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    int code = PMPI_Test(request, flag, status);

    if (*flag && is_client_cached)
        usleep(LATE_US);
    return code;
}

static const char *folder;

static int has_file(const char *name)
{
    return access(check_path(folder, name), F_OK) == 0;
}

/* After a call that may have failed: the calls that follow fail, too. As the other rank may be writing still, no other
 * job gets the lease of what stays. */
static void look(int status, deltafs_dir *dir, int is_open)
{
    uint64_t value = 7;

    if (status == DELTAFS_OK)
        return;
    int is_well = CHECK_STATUS(DELTAFS_ERR_MPI, status, is_open ? dir : NULL);
    if (is_open) {
        is_well &= CHECK(deltafs_append(dir, 1, &value, sizeof value) < 0);
        is_well &= CHECK(deltafs_epoch_end(dir, 3) < 0);
        is_well &= CHECK(deltafs_close(dir) < 0);
    }
    is_well &= CHECK(check_rank != 0 || !has_file("d/MANIFEST") || has_file("d/LEASE"));
    MPI_Abort(MPI_COMM_WORLD, is_well ? LOST_WELL : EXIT_FAILURE);
    _exit(is_well ? LOST_WELL : EXIT_FAILURE);
}

static void append(deltafs_dir *dir, uint64_t n)
{
    uint64_t value = 7;

    for (uint64_t key = 0; key < n; key++)
        look(deltafs_append(dir, key, &value, sizeof value), dir, 1);
}

int main(int argc, char **argv)
{
    char options[256];
    deltafs_dir *dir = NULL;

    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!CHECK((argc == 5 || argc == 6) && check_ranks == 2))
        return check_end();
    const char *where = argv[2];
    folder = argv[1];
    int is_create = strcmp(where, "create") == 0, is_wind_up = strcmp(where, "wind-up") == 0;
    int is_close = is_wind_up || strcmp(where, "close") == 0, count = atoi(argv[4]);
    int fails = check_rank == !(is_create || is_wind_up);
    call = argv[3];
    snprintf(options, sizeof options, "value_size=8 memory=8M sync=none %s", argc == 6 ? argv[5] : "");
    deltafs_options *o = check_options(options);
    pretend_nodes(2);
    alarm(DEADLINE); /* kills who waits, and the job with it */
    if (fails && is_create)
        countdown = count;
    look(deltafs_mpi_create(MPI_COMM_WORLD, check_path(folder, "d"), o, &dir), NULL, 0);
    deltafs_options_destroy(o);
    countdown = -1;
    check_require(); /* only where both have it */
    append(dir, FEW);
    is_client_cached = check_rank == 1;
    look(deltafs_epoch_end(dir, 1), dir, 1);
    is_client_cached = 0;
    if (fails && !is_create && !is_close)
        countdown = count;
    if (!is_create && !is_close) {
        append(dir, fails && strcmp(where, "wait") == 0 ? 0 : MANY);
        look(deltafs_epoch_end(dir, 2), dir, 1);
        countdown = -1;
    }
    if (fails && is_close)
        countdown = count;
    look(deltafs_close(dir), NULL, 0);
    return check_end();
}
