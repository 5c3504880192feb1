/* commit=async on several ranks: an epoch's end returns on all of them before the commit, the next collective call
 * commits or discards, with one verdict; and ranks that do not make the same call learn it.
 *
 *     test_mpi_async FOLDER
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

static deltafs_dir *begin(const char *name, const char *options, uint32_t records)
{
    plan = (struct plan){.seed = 21, .value_size = 40, .records = records, .subfiles = records, .epochs = 6};
    return plan_create(&plan, folder, name, options);
}

/* The simulation's own communication and work, while an epoch is being written. */
static void compute(void)
{
    volatile double x = 0;
    double sum, mine = check_rank;

    for (int i = 0; i < 200000; i++)
        x += 1.0 / (1 + i);
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == check_ranks * (check_ranks - 1) / 2);
}

/* After each end the epoch before it is there, and the one that ended is not; a wait, or the close, brings it. */
static void test_overlap(const char *name, const char *options, uint32_t records)
{
    deltafs_dir *dir = begin(name, options, records);

    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_wait(dir), dir);
    for (uint32_t epoch = 0; epoch < 6; epoch++) {
        plan_epoch(&plan, dir, epoch);
        compute();
        plan_check(&plan, folder, name, epoch, 0);
        if (epoch % 3 == 1) {
            CHECK_STATUS(DELTAFS_OK, deltafs_epoch_wait(dir), dir);
            CHECK_STATUS(DELTAFS_OK, deltafs_epoch_wait(dir), dir);
            plan_check(&plan, folder, name, epoch + 1, 0);
            plan_epoch(&plan, dir, ++epoch);
            compute();
        }
    }
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    plan_check(&plan, folder, name, 6, 1);
}

/* Labels are checked against the pending one, the same on all ranks; one that is refused commits the pending epoch and
 * discards the current one. A cancel on one rank discards its own epoch only. */
static void test_labels(const char *name)
{
    deltafs_dir *dir = begin(name, "value_size=40 memory=8M sync=none commit=async", 200);

    plan_epoch(&plan, dir, 0);
    plan_append(&plan, dir, 1, check_rank);
    CHECK_STATUS(DELTAFS_ERR_LABEL, deltafs_epoch_end(dir, plan_label(0)), dir);
    CHECK_SAYS(dir, "are discarded");
    plan_check(&plan, folder, name, 1, 0);
    plan_append(&plan, dir, 1, check_rank);
    if (check_ranks > 1)
        CHECK_STATUS(DELTAFS_ERR_LABEL, deltafs_epoch_end(dir, plan_label(1) + (uint64_t)check_rank), dir);
    plan_append(&plan, dir, 1, check_rank);
    if (check_rank == check_ranks - 1)
        CHECK_STATUS(DELTAFS_OK, deltafs_epoch_cancel(dir, "nothing to read"), dir);
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, plan_label(1)), dir);
    plan_check(&plan, folder, name, 1, 0);
    plan_append(&plan, dir, 2, check_rank);
    CHECK_STATUS(DELTAFS_ERR_CANCELLED, deltafs_epoch_end(dir, plan_label(2)), dir);
    CHECK_SAYS(dir, "nothing to read");
    CHECK_SAYS(dir, "discarded");
    plan_check(&plan, folder, name, 1, 0);
    plan_epoch(&plan, dir, 1);
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_wait(dir), dir);
    plan_check(&plan, folder, name, 2, 0);
    plan_append(&plan, dir, 2, check_rank);
    CHECK_STATUS(DELTAFS_ERR_UNCOMMITTED, deltafs_close(dir), NULL);
    plan_check(&plan, folder, name, 2, 1);
}

/* Let a rank's data log not grow beyond what it is now, and a little. */
static void set_limit(const char *name, rlim_t more, const struct rlimit *all)
{
    struct rlimit little = *all;
    struct stat st;
    char log[64];

    snprintf(log, sizeof log, "%s/%02x/p%08d.data", name, (unsigned)check_rank, check_rank);
    if (CHECK(stat(check_path(folder, log), &st) == 0)) {
        little.rlim_cur = (rlim_t)st.st_size + more;
        CHECK(setrlimit(RLIMIT_FSIZE, &little) == 0);
    }
}

/* One rank's disk fails under the pending epoch, amid the next one's appends or before: the same at `call` on all. */
static void test_failing_disk(const char *name, const char *options, int bad, uint32_t records, int call)
{
    deltafs_dir *dir = begin(name, options, records);
    struct rlimit all;
    char label[64];

    snprintf(label, sizeof label, "labelled %llu", (unsigned long long)plan_label(1));
    plan_epoch(&plan, dir, 0);
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_wait(dir), dir);
    CHECK(getrlimit(RLIMIT_FSIZE, &all) == 0);
    if (check_rank == bad)
        set_limit(name, 1 << 10, &all);
    plan_append(&plan, dir, 1, check_rank);
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, plan_label(1)), dir);
    compute();
    plan_append(&plan, dir, 2, check_rank);
    if (call == 2) {
        CHECK_STATUS(DELTAFS_ERR_IO, deltafs_close(dir), NULL);
        CHECK_SAYS(NULL, label);
        CHECK(setrlimit(RLIMIT_FSIZE, &all) == 0);
        plan_check(&plan, folder, name, 1, 1);
        return;
    }
    CHECK_STATUS(DELTAFS_ERR_IO, call == 0 ? deltafs_epoch_end(dir, plan_label(2)) : deltafs_epoch_wait(dir), dir);
    CHECK_SAYS(dir, label);
    CHECK(setrlimit(RLIMIT_FSIZE, &all) == 0);
    plan_check(&plan, folder, name, 1, 0);
    /* Both once more. */
    plan_epoch(&plan, dir, 1);
    plan_epoch(&plan, dir, 2);
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    plan_check(&plan, folder, name, 3, 1);
}

/* One rank waits, the others end, or the reverse; with a pending epoch, or none. */
static void test_mismatch(const char *name, int waiter_is_alone, int has_pending, uint32_t records)
{
    deltafs_dir *dir = begin(name, "value_size=40 memory=8M sync=none commit=async", 300);
    int waits = (check_rank == check_ranks - 1) == waiter_is_alone;

    plan_epoch(&plan, dir, 0);
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_wait(dir), dir);
    if (has_pending)
        plan_epoch(&plan, dir, 1);
    plan.records = records;
    if (records > 0)
        plan_append(&plan, dir, 2, check_rank);
    CHECK_STATUS(DELTAFS_ERR_COLLECTIVE, waits ? deltafs_epoch_wait(dir) : deltafs_epoch_end(dir, plan_label(2)), dir);
    CHECK_STATUS(DELTAFS_ERR_COLLECTIVE, deltafs_epoch_wait(dir), dir);
    CHECK_STATUS(DELTAFS_ERR_COLLECTIVE, deltafs_close(dir), NULL);
    plan.records = 300;
    plan_check(&plan, folder, name, 1, 0);
}

int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!CHECK(argc == 2))
        return check_end();
    folder = argv[1];
    test_overlap("overlap", "value_size=40 memory=8M commit=async", 3000);
    test_overlap("many", "value_size=40 memory=8M sync=none commit=async partitions=7 threads=1", 10000);
    test_overlap("range", "value_size=40 memory=8M sync=none commit=async partitions=7 partitioner=range", 3000);
    test_overlap("alone", "value_size=40 memory=8M sync=none commit=async threads=0", 500);
    test_labels("labels");
    for (int call = 0; call < 3; call++) {
        test_failing_disk(call == 0   ? "end"
                          : call == 1 ? "wait"
                                      : "close",
                          "value_size=40 memory=8M codec=none sync=none commit=async", call == 1 ? 0 : check_ranks - 1,
                          2000, call);
    }
    test_failing_disk("amid", "value_size=40 memory=8M codec=none sync=none commit=async", check_ranks - 1, 60000, 0);
    if (check_ranks > 1) {
        test_mismatch("waiter-alone", 1, 1, 300);
        test_mismatch("ender-alone", 0, 0, 300);
        test_mismatch("pending-only", 1, 1, 0);
    }
    check_about("at the end");
    return check_end();
}
