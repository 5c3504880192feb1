/* Ranks that do not make the same collective call: all get DELTAFS_ERR_COLLECTIVE, and nobody waits for ever, not in
 * later calls on the directory either, nor in MPI_Finalize.
 *
 *     test_mpi_mismatch FOLDER
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test_mpi_check.h"
#include "test_mpi_nodes.h"
#include "test_mpi_plan.h"

static const char *folder;

/* Returns the first status that is not OK. */
static int append(deltafs_dir *dir, uint64_t records)
{
    static char value[1000];
    int status = DELTAFS_OK;

    for (uint64_t key = 0; key < records; key++) {
        int one = deltafs_append(dir, key, value, sizeof value);
        status = status == DELTAFS_OK ? one : status;
    }
    return status;
}

/* One rank closes while the others end the epoch, or the reverse; `appends_on`: those others do not look at the error
 * and append more. */
static void mismatch(const char *name, const char *options, int closer_is_alone, uint64_t records, int appends_on)
{
    deltafs_dir *dir = NULL;
    deltafs_options *o = check_options(options);
    int closes = (check_rank == check_ranks - 1) == closer_is_alone;
    struct deltafs_stat stat = {.struct_size = sizeof stat};

    check_about("%s", name);
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_create(MPI_COMM_WORLD, check_path(folder, name), o, &dir), NULL);
    deltafs_options_destroy(o);
    check_require();
    CHECK_STATUS(DELTAFS_OK, append(dir, 10), dir);
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, 1), dir);
    CHECK_STATUS(DELTAFS_OK, append(dir, records), dir);
    if (!closes) {
        CHECK_STATUS(DELTAFS_ERR_COLLECTIVE, deltafs_epoch_end(dir, 2), dir);
        if (appends_on) {
            append(dir, records);
            CHECK_STATUS(DELTAFS_ERR_COLLECTIVE, deltafs_epoch_end(dir, 3), dir);
        }
    }
    CHECK_STATUS(DELTAFS_ERR_COLLECTIVE, deltafs_close(dir), NULL);
    /* What was committed before is safe. */
    if (check_rank == 0 && CHECK_STATUS(DELTAFS_OK, deltafs_open(check_path(folder, name), NULL, &dir), NULL)) {
        CHECK_STATUS(DELTAFS_OK, deltafs_stat(dir, &stat), dir);
        CHECK(stat.epochs == 1 && stat.records == 10 * (uint64_t)check_ranks && !stat.is_closed);
        CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    }
    check_require();
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!CHECK(argc == 2))
        return check_end();
    folder = argv[1];
    mismatch("nothing-appended", "memory=8M sync=none", 1, 0, 0);
    mismatch("closer-alone", "memory=8M sync=none", 1, 5000, 0);
    mismatch("ender-alone", "memory=8M sync=none", 0, 5000, 0);
    pretend_nodes(check_ranks);
    mismatch("long-messages", "memory=24M sync=none", 1, 5000, 0);
    mismatch("appends-on", "memory=8M sync=none", 1, 5000, 1);
    check_about("at the end");
    return check_end();
}
