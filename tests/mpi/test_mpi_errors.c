/* One rank's error is every rank's: the same status, a message that names the rank, nothing lost that was committed.
 *
 *     test_mpi_errors FOLDER
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <deltafs/deltafs_query.h>
#include "test_mpi_check.h"
#include "test_mpi_plan.h"

static const char *folder;
static int last;         /* the last rank */
static char by_last[32]; /* how a message names it */
static struct plan plan;

/* ---- Epochs ---- */

static deltafs_dir *begin(const char *name)
{
    plan = (struct plan){.seed = 5, .value_size = 8, .records = 500, .subfiles = 300, .epochs = 8};
    return plan_create(&plan, folder, name, "value_size=8 memory=8M sync=none");
}

static void end(deltafs_dir *dir, const char *name, uint32_t epochs)
{
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    plan_check(&plan, folder, name, epochs, 1);
}

static void test_wrong_size(void)
{
    deltafs_dir *dir = begin("wrong-size");

    plan_epoch(&plan, dir, 0);
    CHECK_STATUS(DELTAFS_OK, plan_append(&plan, dir, 1, check_rank), dir);
    if (check_rank == last)
        CHECK_STATUS(DELTAFS_ERR_SIZE, deltafs_append(dir, 1, "1234567", 7), dir);
    CHECK_STATUS(DELTAFS_ERR_SIZE, deltafs_epoch_end(dir, plan_label(1)), dir);
    CHECK_SAYS(dir, "7 bytes");
    CHECK_SAYS(dir, by_last);
    plan_epoch(&plan, dir, 1);
    end(dir, "wrong-size", 2);
}

static void test_cancel(void)
{
    deltafs_dir *dir = begin("cancel");

    CHECK_STATUS(DELTAFS_OK, plan_append(&plan, dir, 0, check_rank), dir);
    if (check_rank == last)
        CHECK_STATUS(DELTAFS_OK, deltafs_epoch_cancel(dir, "the input is bad"), dir);
    CHECK_STATUS(DELTAFS_OK, plan_append(&plan, dir, 0, check_rank), dir);
    CHECK_STATUS(DELTAFS_ERR_CANCELLED, deltafs_epoch_end(dir, plan_label(0)), dir);
    CHECK_SAYS(dir, "the input is bad");
    CHECK_SAYS(dir, by_last);
    plan_epoch(&plan, dir, 0);
    plan_epoch(&plan, dir, 1);
    end(dir, "cancel", 2);
}

/* Of several errors the lowest rank's is reported, on all; of several on one rank the first. */
static void test_two_errors(void)
{
    deltafs_dir *dir = begin("two-errors");
    int is_last = check_rank == last;

    if (check_rank == 0)
        deltafs_append(dir, 1, "12", 2);
    if (is_last || check_rank == 0)
        CHECK_STATUS(DELTAFS_OK, deltafs_epoch_cancel(dir, NULL), dir);
    CHECK_STATUS(DELTAFS_ERR_SIZE, deltafs_epoch_end(dir, 1), dir);
    if (last > 0)
        CHECK_SAYS(dir, "rank 0");
    plan_epoch(&plan, dir, 0);
    end(dir, "two-errors", 1);
}

/* End an epoch with a label that is refused: the records are discarded, and appended again unless they are kept. */
static void refuse(deltafs_dir *dir, uint32_t epoch, uint64_t label, int is_kept, const char *says)
{
    CHECK_STATUS(DELTAFS_ERR_LABEL, deltafs_epoch_end(dir, label), dir);
    CHECK_SAYS(dir, says);
    CHECK_SAYS(dir, is_kept ? "are kept" : "are discarded");
    if (!is_kept)
        CHECK_STATUS(DELTAFS_OK, plan_append(&plan, dir, epoch, check_rank), dir);
}

static void test_labels(void)
{
    static const char *const values[] = {"discard", "keep", "skip"};
    uint64_t other = plan_label(0) + (check_rank == last);

    for (int i = 0; i < 3; i++) {
        setenv("DELTAFS_OLD_LABEL", values[i], 1);
        deltafs_dir *dir = begin(values[i]);
        CHECK_STATUS(DELTAFS_OK, plan_append(&plan, dir, 0, check_rank), dir);
        if (last > 0)
            refuse(dir, 0, other, i == 1, "different labels");
        CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, plan_label(0)), dir);
        CHECK_STATUS(DELTAFS_OK, plan_append(&plan, dir, 1, check_rank), dir);
        if (i < 2)
            refuse(dir, 1, plan_label(0), i == 1, "is not greater");
        refuse(dir, 1, 0, i == 1, "is not greater");
        CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, plan_label(1)), dir);
        end(dir, values[i], 2);
    }
    unsetenv("DELTAFS_OLD_LABEL");

    deltafs_dir *dir;

    dir = begin("labels-at-the-ends");
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, 0), dir);
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, UINT64_MAX), dir);
    CHECK_STATUS(DELTAFS_ERR_LABEL, deltafs_epoch_end(dir, UINT64_MAX), dir);
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
}

/* A job that begins again at its first step, without looking at what is committed. */
static void test_restart(void)
{
    static const char *const options[] = {"value_size=8 memory=8M old_label=skip",
                                          "value_size=8 memory=8M old_label=skip commit=async"};

    for (int i = 0; i < 2; i++) {
        const char *name = i ? "restart-async" : "restart";
        deltafs_dir *dir = begin(name);
        deltafs_options *o = check_options(options[i]);
        for (uint32_t epoch = 0; epoch < 3; epoch++)
            plan_epoch(&plan, dir, epoch);
        CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
        CHECK_STATUS(DELTAFS_OK, deltafs_mpi_reopen(MPI_COMM_WORLD, check_path(folder, name), o, &dir), NULL);
        deltafs_options_destroy(o);
        for (uint32_t epoch = 0; epoch < 5; epoch++)
            plan_epoch(&plan, dir, epoch);
        CHECK_STATUS(DELTAFS_OK, plan_append(&plan, dir, 0, check_rank), dir);
        CHECK_STATUS(DELTAFS_ERR_LABEL, deltafs_epoch_end(dir, plan_label(1) - 1), dir);
        CHECK_SAYS(dir, "are discarded");
        CHECK_STATUS(DELTAFS_OK, plan_append(&plan, dir, 0, check_rank), dir);
        CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, plan_label(4)), dir);
        end(dir, name, 5);
    }
}

static void test_uncommitted(void)
{
    deltafs_dir *dir = begin("uncommitted");
    uint64_t value = 0;

    plan_epoch(&plan, dir, 0);
    if (check_rank == last)
        for (uint64_t key = 0; key < 1000; key++)
            CHECK_STATUS(DELTAFS_OK, deltafs_append(dir, key, &value, 8), dir);
    CHECK_STATUS(DELTAFS_ERR_UNCOMMITTED, deltafs_close(dir), NULL);
    CHECK_SAYS(NULL, "1000");
    plan_check(&plan, folder, "uncommitted", 1, 1);

    /* After an epoch that failed nothing is left to commit. */
    dir = begin("given-up");
    plan_epoch(&plan, dir, 0);
    CHECK_STATUS(DELTAFS_OK, plan_append(&plan, dir, 1, check_rank), dir);
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_cancel(dir, "all at once"), dir);
    CHECK_STATUS(DELTAFS_ERR_CANCELLED, deltafs_epoch_end(dir, plan_label(1)), dir);
    end(dir, "given-up", 1);
}

/* A reader's calls on a writer are refused, and do no harm. */
static void test_mode(void)
{
    deltafs_dir *dir = begin("mode");
    deltafs_records *records = NULL;

    plan_epoch(&plan, dir, 0);
    CHECK_STATUS(DELTAFS_ERR_MODE, deltafs_get(dir, 1, NULL, &records), dir);
    CHECK_STATUS(DELTAFS_ERR_MODE,
                 deltafs_verify(dir, NULL, NULL,
                                &(struct deltafs_verify_counts){.struct_size = sizeof(struct deltafs_verify_counts)}),
                 dir);
    plan_epoch(&plan, dir, 1);
    end(dir, "mode", 2);
}

/* What a job has left that died while its ranks were making their logs: reopening makes them. (A log that was not
 * there, as it need not be, was told as an error of the rank.) */
static void test_half_made(void)
{
    char name[64];
    deltafs_dir *dir = begin("half-made");
    deltafs_options *o = check_options("memory=8M sync=none");

    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    snprintf(name, sizeof name, "half-made/%02x/p%08x.index", last, last);
    if (check_rank == last)
        unlink(check_path(folder, name));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_reopen(MPI_COMM_WORLD, check_path(folder, "half-made"), o, &dir), NULL);
    deltafs_options_destroy(o);
    check_require();
    plan_epoch(&plan, dir, 0);
    end(dir, "half-made", 1);
}

/* ---- Creating ---- */

/* All ranks get `wanted`, and there is nothing at `path` afterwards, unless it was there before. */
static void create_fails(int wanted, const char *path, const char *options)
{
    struct stat st;
    deltafs_dir *dir = NULL, *const untouched = dir;
    deltafs_options *o = options ? check_options(options) : NULL;
    int was_there = stat(path, &st) == 0;

    check_about("create %s with %s", path, options ? options : "no options");
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_STATUS(wanted, deltafs_mpi_create(MPI_COMM_WORLD, path, o, &dir), NULL);
    CHECK(dir == untouched);
    CHECK(strlen(deltafs_errmsg(NULL)) > 10);
    MPI_Barrier(MPI_COMM_WORLD); /* rank 0 takes it away, and may return last */
    CHECK((stat(path, &st) == 0) == was_there);
    deltafs_options_destroy(o);
    check_require();
}

static void test_create_places(void)
{
    deltafs_dir *dir = begin("there");
    char path[4096];

    plan_epoch(&plan, dir, 0);
    snprintf(path, sizeof path, "%s", check_path(folder, "there"));
    create_fails(DELTAFS_ERR_EXISTS, path, "value_size=8");
    plan_epoch(&plan, dir, 1);
    end(dir, "there", 2);
    create_fails(DELTAFS_ERR_EXISTS, path, NULL);
    if (check_rank == 0)
        plan_compare(&plan, path, 2, 1);
    create_fails(DELTAFS_ERR_EXISTS, check_path(folder, "there/MANIFEST"), NULL);
    create_fails(DELTAFS_ERR_IO, check_path(folder, "there/MANIFEST/below"), NULL);
    create_fails(DELTAFS_ERR_NOT_FOUND, check_path(folder, "missing/below"), NULL);
    create_fails(DELTAFS_ERR_NOT_FOUND, check_path(folder, "missing/below"), NULL);
}

/* Where the user may not write. Root may everywhere, so become somebody else for that. */
static void test_create_forbidden(void)
{
    int is_root = geteuid() == 0;
    const char *path = check_path(folder, "forbidden");

    if (check_rank == 0)
        CHECK(mkdir(path, is_root ? 0755 : 0555) == 0 && chmod(folder, 0755) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_root && !CHECK(seteuid(65534) == 0))
        return;
    create_fails(DELTAFS_ERR_IO, check_path(folder, "forbidden/below"), NULL);
    if (is_root)
        CHECK(seteuid(0) == 0);
}

static void test_create_options(void)
{
    const char *path = check_path(folder, "options");

    create_fails(DELTAFS_ERR_SCHEMA, path, "schema=a:f4 value_size=8");
    create_fails(DELTAFS_ERR_MEMORY, path, "memory=8M partitions=8192");
    create_fails(DELTAFS_ERR_MEMORY, path, "memory=8M block=1M value_size=any");
    /* Of the environment only rank 0's counts. */
    if (check_rank == 0)
        setenv("DELTAFS_MEMORY", "plenty", 1);
    create_fails(DELTAFS_ERR_OPTION, path, NULL);
    CHECK_SAYS(NULL, "DELTAFS_MEMORY");
    unsetenv("DELTAFS_MEMORY");
}

/* Arguments that one rank alone has wrong, and such as count on rank 0 only. */
static void test_create_arguments(void)
{
    deltafs_dir *dir = NULL;
    char path[4096];

    check_about("arguments");
    snprintf(path, sizeof path, "%s", check_path(folder, "arguments"));
    CHECK_STATUS(DELTAFS_ERR_INVALID, deltafs_mpi_create(MPI_COMM_WORLD, path, NULL, check_rank == last ? NULL : &dir),
                 NULL);
    CHECK_STATUS(DELTAFS_ERR_INVALID, deltafs_mpi_create(MPI_COMM_WORLD, check_rank ? path : "", NULL, &dir), NULL);
    CHECK_STATUS(DELTAFS_ERR_INVALID, deltafs_mpi_create(MPI_COMM_WORLD, check_rank ? path : NULL, NULL, &dir), NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(access(path, F_OK) != 0);
    check_require();
    if (check_rank > 0)
        setenv("DELTAFS_MEMORY", "plenty", 1);
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_create(MPI_COMM_WORLD, check_rank ? NULL : path, NULL, &dir), NULL);
    unsetenv("DELTAFS_MEMORY");
    check_require();
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
}

/* One rank can open no more files, so that it cannot make its logs; and the first has no room for the manifest. */
static void test_create_limits(void)
{
    struct rlimit files, size, none;
    const char *path = check_path(folder, "limits");
    int lowest = dup(0);

    CHECK(lowest > 0 && close(lowest) == 0 && getrlimit(RLIMIT_NOFILE, &files) == 0);
    none = files;
    none.rlim_cur = (rlim_t)lowest;
    if (check_rank == last)
        CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    create_fails(DELTAFS_ERR_IO, path, "sync=none");
    CHECK_SAYS(NULL, by_last);
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);

    CHECK(getrlimit(RLIMIT_FSIZE, &size) == 0);
    none = size;
    none.rlim_cur = 16;
    if (check_rank == 0)
        CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    create_fails(DELTAFS_ERR_IO, path, "sync=none");
    CHECK(setrlimit(RLIMIT_FSIZE, &size) == 0);
}

/* Rank 0's attribute is stored, and its error is everybody's; what the others give does not matter. */
static void test_attributes(void)
{
    double nx = 64;
    struct deltafs_attribute a = {.struct_size = sizeof a, .name = "nx", .count = 1, .value = &nx};
    deltafs_dir *dir = begin("attributes");

    a.type = DELTAFS_ATTRIBUTE_F8;
    CHECK_STATUS(DELTAFS_OK, deltafs_attribute_set(dir, check_rank == 0 ? &a : NULL), dir);
    plan_epoch(&plan, dir, 0);
    CHECK_STATUS(DELTAFS_OK, plan_append(&plan, dir, 1, check_rank), dir);
    a.name = check_rank == 0 ? "key" : "ny";
    CHECK_STATUS(DELTAFS_ERR_INVALID, deltafs_attribute_set(dir, &a), dir);
    CHECK_SAYS(dir, "another name");
    a.name = check_rank == 0 ? "ny" : "key";
    CHECK_STATUS(DELTAFS_OK, deltafs_attribute_set(dir, &a), dir);
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, plan_label(1)), dir);
    end(dir, "attributes", 2);
    if (check_rank == 0) {
        CHECK_STATUS(DELTAFS_OK, deltafs_open(check_path(folder, "attributes"), NULL, &dir), NULL);
        CHECK_STATUS(DELTAFS_OK, deltafs_attribute_get(dir, "nx", 0, &a), dir);
        CHECK(a.count == 1 && *(const double *)a.value == 64);
        CHECK_STATUS(DELTAFS_OK, deltafs_attribute_at(dir, 1, &a), dir);
        CHECK(strcmp(a.name, "ny") == 0);
        CHECK_STATUS(DELTAFS_ERR_NOT_FOUND, deltafs_attribute_at(dir, 2, &a), dir);
        CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    }
    check_require();
}

int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!CHECK(argc == 2))
        return check_end();
    folder = argv[1];
    last = check_ranks - 1;
    if (last > 0)
        snprintf(by_last, sizeof by_last, "rank %d: ", last);
    test_wrong_size();
    test_cancel();
    test_two_errors();
    test_labels();
    test_restart();
    test_uncommitted();
    test_mode();
    test_attributes();
    test_half_made();
    test_create_places();
    test_create_forbidden();
    test_create_options();
    test_create_arguments();
    test_create_limits();
    check_about("at the end");
    return check_end();
}
