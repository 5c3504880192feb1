/* Trouble with the disk on one rank or all: every rank learns it, what was committed stays, and once there is room the
 * epoch can be written again.
 *
 *     test_mpi_disk FOLDER limit    one rank may not write its logs on, by RLIMIT_FSIZE
 *     test_mpi_disk FOLDER full     the folder's file system is of about 6 MiB
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "test_mpi_check.h"
#include "test_mpi_plan.h"

static const char *folder;
static struct plan plan;

static deltafs_dir *begin(const char *name, uint32_t records)
{
    plan = (struct plan){.seed = 11, .value_size = 40, .records = records, .subfiles = records, .epochs = 4};
    return plan_create(&plan, folder, name, "value_size=40 memory=8M codec=none");
}

/* Let a rank write only `more` bytes behind the end of its data log, of which it has one. */
static void set_limit(const char *name, int rank, rlim_t more, const struct rlimit *all)
{
    struct rlimit little = *all;
    struct stat st;
    char log[64];

    snprintf(log, sizeof log, "%s/%02x/p%08d.data", name, (unsigned)rank, rank);
    if (CHECK(stat(check_path(folder, log), &st) == 0)) {
        little.rlim_cur = (rlim_t)st.st_size + more;
        CHECK(setrlimit(RLIMIT_FSIZE, &little) == 0);
    }
}

/* Epoch 1 fails on rank `bad`: amid the appends if there are many records, at the epoch's end if not. */
static void test_limit(const char *name, int bad, uint32_t records, rlim_t more)
{
    deltafs_dir *dir = begin(name, records);
    struct rlimit all;
    char who[32] = "";

    if (check_ranks > 1)
        snprintf(who, sizeof who, "rank %d: ", bad);
    plan_epoch(&plan, dir, 0);
    CHECK(getrlimit(RLIMIT_FSIZE, &all) == 0);
    for (int again = 0; again < 2; again++) {
        if (check_rank == bad)
            set_limit(name, bad, more, &all);
        plan_append(&plan, dir, 1, check_rank);
        CHECK_STATUS(DELTAFS_ERR_IO, deltafs_epoch_end(dir, plan_label(1)), dir);
        CHECK_SAYS(dir, who);
        CHECK_SAYS(dir, check_path(folder, name));
        CHECK(setrlimit(RLIMIT_FSIZE, &all) == 0);
        plan_check(&plan, folder, name, 1, 0);
    }
    plan_epoch(&plan, dir, 1);
    plan_check(&plan, folder, name, 2, 0);
    plan_epoch(&plan, dir, 2);
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    plan_check(&plan, folder, name, 3, 1);
}

static void test_full(const char *name)
{
    deltafs_dir *dir = begin(name, 6000);
    static char value[40];

    plan_epoch(&plan, dir, 0);
    plan_check(&plan, folder, name, 1, 0);
    for (uint64_t key = 0; key < 200000; key++)
        deltafs_append(dir, key, value, sizeof value);
    CHECK_STATUS(DELTAFS_ERR_NO_SPACE, deltafs_epoch_end(dir, plan_label(1)), dir);
    CHECK_SAYS(dir, "No space left");
    plan_check(&plan, folder, name, 1, 0);
    plan_epoch(&plan, dir, 1);
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    plan_check(&plan, folder, name, 2, 1);
}

int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!CHECK(argc == 3))
        return check_end();
    folder = argv[1];
    if (strcmp(argv[2], "full") == 0) {
        test_full("full");
    } else {
        test_limit("early", check_ranks - 1, 100000, 2 << 20);
        test_limit("late", check_ranks - 1, 2000, 1 << 10);
        test_limit("first", 0, 2000, 1 << 10);
    }
    check_about("at the end");
    return check_end();
}
