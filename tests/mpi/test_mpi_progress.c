/* progress=thread: a rank serves others while its program is elsewhere. Without it, this deadlocks: between the first
 * append of an epoch and its end rank 0 waits for a message that rank 1 sends when it is through with its appends,
 * which are more than what fits on their way to rank 0.
 *
 *     test_mpi_progress FOLDER thread    with the thread
 *     test_mpi_progress FOLDER level     at a thread level that does not allow it
 */
#include <string.h>
#include "test_mpi_check.h"
#include "test_mpi_plan.h"

#define RECORDS 400000

static struct plan plan;

static deltafs_dir *begin(const char *folder, int wanted)
{
    deltafs_dir *dir = NULL;
    deltafs_options *o = check_options("value_size=40 memory=8M progress=thread");

    check_about("progress=thread");
    plan = (struct plan){.seed = 5,
                         .ranks = check_ranks,
                         .value_size = 40,
                         .message = 32 << 10,
                         .records = RECORDS,
                         .subfiles = RECORDS,
                         .epochs = 2,
                         .skew = PLAN_EVEN,
                         .slow_rank = -1};
    CHECK_STATUS(wanted, deltafs_mpi_create(MPI_COMM_WORLD, check_path(folder, "progress"), o, &dir), NULL);
    deltafs_options_destroy(o);
    check_require();
    return dir;
}

int main(int argc, char **argv)
{
    int is_level = argc == 3 && strcmp(argv[2], "level") == 0, token = 7;

    check_begin(&argc, &argv, is_level ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE);
    if (!CHECK(argc == 3))
        return check_end();
    if (is_level) {
        begin(argv[1], DELTAFS_ERR_OPTION);
        CHECK_SAYS(NULL, "MPI_THREAD_MULTIPLE");
        return check_end();
    }
    deltafs_dir *dir = begin(argv[1], DELTAFS_OK);
    for (uint32_t epoch = 0; epoch < plan.epochs; epoch++) {
        if (check_rank == 0)
            for (int i = 1; i < check_ranks; i++)
                MPI_Recv(&token, 1, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_STATUS(DELTAFS_OK, plan_append(&plan, dir, epoch, check_rank), dir);
        if (check_rank > 0)
            MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, plan_label(epoch)), dir);
    }
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    if (check_rank == 0)
        plan_compare(&plan, check_path(argv[1], "progress"), plan.epochs, 1);
    return check_end();
}
