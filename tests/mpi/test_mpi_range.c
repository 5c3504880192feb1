/* partitioner=range on several ranks: each run goes on where another one ended, with another number of ranks.
 *
 *     test_mpi_range FOLDER FIRST_EPOCH END_EPOCH VALUE_SIZE OPTIONS [caller]
 *
 * "caller": by a function of the caller's own instead, which at first one rank does not give.
 */
#include <stdlib.h>
#include "test_mpi_check.h"
#include "test_mpi_plan.h"

#define WRITERS 4 /* of the plan; the ranks share them */

static uint32_t by_counter(uint64_t key, uint32_t partitions, void *arg)
{
    (void)arg;
    return (uint32_t)(key * 31 % partitions);
}

static void append_epoch(const struct plan *p, deltafs_dir *dir, uint32_t epoch)
{
    for (int writer = check_rank; writer < WRITERS; writer += check_ranks)
        CHECK_STATUS(DELTAFS_OK, plan_append(p, dir, epoch, writer), dir);
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, plan_label(epoch)), dir);
}

int main(int argc, char **argv)
{
    deltafs_dir *dir = NULL;

    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!CHECK(argc == 6 || argc == 7))
        return check_end();
    uint32_t first = (uint32_t)strtoul(argv[2], NULL, 10), end = (uint32_t)strtoul(argv[3], NULL, 10);
    struct plan p = {.seed = 51,
                     .ranks = WRITERS,
                     .value_size = (uint32_t)strtoul(argv[4], NULL, 10),
                     .message = 32 << 10,
                     .keys = PLAN_COUNTERS,
                     .records = 4000,
                     .subfiles = 3000,
                     .epochs = 6,
                     .slow_rank = -1};
    const char *path = check_path(argv[1], "range");
    deltafs_options *o = check_options(argv[5]);
    check_about("epochs %u to %u", first, end);
    if (argc == 7) {
        if (check_rank < check_ranks - 1)
            CHECK_STATUS(DELTAFS_OK, deltafs_options_set_partitioner(o, "counter", by_counter, NULL), NULL);
        CHECK_STATUS(DELTAFS_ERR_OPTION,
                     first == 0 ? deltafs_mpi_create(MPI_COMM_WORLD, path, o, &dir)
                                : deltafs_mpi_reopen(MPI_COMM_WORLD, path, o, &dir),
                     NULL);
        CHECK_SAYS(NULL, "'counter' is not given");
        CHECK_STATUS(DELTAFS_OK, deltafs_options_set_partitioner(o, "counter", by_counter, NULL), NULL);
    }
    CHECK_STATUS(DELTAFS_OK,
                 first == 0 ? deltafs_mpi_create(MPI_COMM_WORLD, path, o, &dir)
                            : deltafs_mpi_reopen(MPI_COMM_WORLD, path, o, &dir),
                 NULL);
    deltafs_options_destroy(o);
    check_require();
    for (uint32_t epoch = first; epoch < end; epoch++)
        append_epoch(&p, dir, epoch);
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    if (check_rank == 0)
        plan_compare(&p, check_path(argv[1], "range"), end, 1);
    check_about("at the end");
    return check_end();
}
