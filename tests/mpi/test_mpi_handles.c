/* Several directories at a time, on one communicator and on several; and options from an MPI_Info.
 *
 *     test_mpi_handles FOLDER RECORDS
 *
 * RECORDS: of each rank, directory and epoch, about. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test_mpi_check.h"
#include "test_mpi_message.h"
#include "test_mpi_nodes.h"
#include "test_mpi_plan.h"
#include "test_mpi_slow.h"

#define EPOCHS  2
#define SLOW_MS 20
#define MESSAGE 4096

static const char *folder;
static uint32_t records;

/* A directory and who writes it. */
struct written {
    char name[16];
    struct plan plan;
    int rank;
    deltafs_dir *dir;
};

static void open_route(struct written *w, const char *name, MPI_Comm comm, uint64_t seed, int64_t value_size,
                       const char *route, int nodes)
{
    deltafs_options *o = check_options("memory=8M sync=none");
    char size[24] = "any";

    CHECK_STATUS(DELTAFS_OK, deltafs_options_set(o, "route", route), NULL);

    if (value_size >= 0)
        snprintf(size, sizeof size, "%lld", (long long)value_size);
    CHECK_STATUS(DELTAFS_OK, deltafs_options_set(o, "value_size", size), NULL);
    *w = (struct written){.plan = {.seed = seed,
                                   .value_size = value_size,
                                   .message = MESSAGE,
                                   .records = value_size < 0 ? records / 20 : records,
                                   .subfiles = records,
                                   .epochs = EPOCHS,
                                   .slow_rank = -1}};
    snprintf(w->name, sizeof w->name, "%s", name);
    MPI_Comm_rank(comm, &w->rank);
    MPI_Comm_size(comm, &w->plan.ranks);
    pretend_nodes(nodes);
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_create(comm, check_path(folder, name), o, &w->dir), NULL);
    deltafs_options_destroy(o);
}

static void open_one(struct written *w, const char *name, MPI_Comm comm, uint64_t seed, int64_t value_size)
{
    open_route(w, name, comm, seed, value_size, "auto", 0);
}

static void append(struct written *w, uint32_t epoch)
{
    CHECK_STATUS(DELTAFS_OK, plan_append(&w->plan, w->dir, epoch, w->rank), w->dir);
}

static void end(struct written *w, uint32_t epoch)
{
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(w->dir, plan_label(epoch)), w->dir);
}

static void close_one(struct written *w)
{
    CHECK_STATUS(DELTAFS_OK, deltafs_close(w->dir), NULL);
    if (w->rank == 0)
        plan_compare(&w->plan, check_path(folder, w->name), EPOCHS, 1);
}

/* Appends to both, then the ends of both, and each has its own records only. */
static void test_same_communicator(void)
{
    struct written a, b;

    check_about("two directories on one communicator");
    open_one(&a, "same-a", MPI_COMM_WORLD, 1, 8);
    open_one(&b, "same-b", MPI_COMM_WORLD, 2, -1);
    check_require();
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        append(&a, epoch);
        append(&b, epoch);
        end(epoch % 2 ? &b : &a, epoch);
        end(epoch % 2 ? &a : &b, epoch);
    }
    close_one(&a);
    close_one(&b);
    check_require();
}

/* All ranks write one, and each half of them, in reversed order, another. */
static void test_other_communicator(void)
{
    struct written all, half;
    MPI_Comm comm;
    int color = check_rank % 2;

    check_about("directories on the world and its halves");
    MPI_Comm_split(MPI_COMM_WORLD, color, -check_rank, &comm);
    open_one(&all, "world", MPI_COMM_WORLD, 3, 40);
    open_one(&half, color ? "odd" : "even", comm, 4 + (uint64_t)color, 0);
    MPI_Comm_free(&comm); /* the library has its own */
    check_require();
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        append(&half, epoch);
        append(&all, epoch);
        end(&all, epoch);
        end(&half, epoch);
    }
    close_one(&half);
    close_one(&all);
    check_require();
}

/* Three directories whose records go three ways, while one rank's storage is slow: ranks append to them in different
 * orders, so that those who wait in one must hand on what goes through them in the others; epochs end in turn. */
static void test_routes(void)
{
    enum { DIRS = 3 };
    struct written w[DIRS];

    check_about("three directories with routes of their own, one rank slow");
    slow_writes(check_rank == check_ranks / 2 ? SLOW_MS : 0);
    open_route(&w[0], "direct", MPI_COMM_WORLD, 11, 8, "direct", 2);
    open_route(&w[1], "3hop", MPI_COMM_WORLD, 12, 40, "3hop", check_ranks > 2 ? 2 : 0);
    open_route(&w[2], "grid", MPI_COMM_WORLD, 13, -1, "grid", check_ranks > 3 ? 4 : 0);
    check_require();
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        for (int i = 0; i < DIRS; i++)
            append(&w[(check_rank + i) % DIRS], epoch);
        for (uint32_t i = 0; i < DIRS; i++)
            end(&w[(i + epoch) % DIRS], epoch);
    }
    slow_writes(0);
    for (int i = DIRS; i-- > 0;)
        close_one(&w[i]);
    check_require();
}

/* One rank makes a second directory while the others are still amid their appends to the first, more of them than fit
 * on their way: who waits for ranks to come must serve those that have not. */
static void test_create_early(int nodes)
{
    struct written a, b;

    check_about("a directory is made while others append, %d nodes", nodes);
    open_route(&a, nodes == 1 ? "early-a1" : "early-a2", MPI_COMM_WORLD, 21, 1000, "auto", nodes);
    check_require();
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        if (check_rank > 0)
            append(&a, epoch);
        if (epoch == 0)
            open_one(&b, nodes == 1 ? "early-b1" : "early-b2", MPI_COMM_WORLD, 22, 8);
        if (check_rank == 0)
            append(&a, epoch);
        append(&b, epoch);
        end(&a, epoch);
        end(&b, epoch);
    }
    close_one(&a);
    close_one(&b);
    check_require();
}

static void test_self(void)
{
    struct written own;
    char name[16];

    check_about("a directory of each rank's own");
    snprintf(name, sizeof name, "own%d", check_rank);
    open_one(&own, name, MPI_COMM_SELF, 7 + (uint64_t)check_rank, 8);
    check_require();
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        append(&own, epoch);
        end(&own, epoch);
    }
    close_one(&own);
    check_require();
}

static void test_info(void)
{
    deltafs_options *o = check_options("");
    const char *value = "";
    MPI_Info info;

    check_about("options from an MPI_Info");
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_options_from_info(MPI_INFO_NULL, o), NULL);
    MPI_Info_create(&info);
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_options_from_info(info, o), NULL);
    MPI_Info_set(info, "deltafs_partitions", "5");
    MPI_Info_set(info, "cb_nodes", "3");
    MPI_Info_set(info, "deltafs", "of no concern");
    MPI_Info_set(info, "deltafs_schema", "x:f4,y:f4");
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_options_from_info(info, o), NULL);
    CHECK_STATUS(DELTAFS_OK, deltafs_options_get(o, "partitions", &value), NULL);
    CHECK(strcmp(value, "5") == 0);
    CHECK_STATUS(DELTAFS_OK, deltafs_options_get(o, "schema", &value), NULL);
    CHECK(strcmp(value, "x:f4,y:f4") == 0);

    MPI_Info_set(info, "deltafs_partitions", "a few");
    CHECK_STATUS(DELTAFS_ERR_OPTION, deltafs_mpi_options_from_info(info, o), NULL);
    CHECK_SAYS(NULL, "a few");
    CHECK_STATUS(DELTAFS_OK, deltafs_options_get(o, "partitions", &value), NULL);
    CHECK(strcmp(value, "5") == 0);
    MPI_Info_delete(info, "deltafs_partitions");
    MPI_Info_set(info, "deltafs_partition", "5");
    CHECK_STATUS(DELTAFS_ERR_OPTION, deltafs_mpi_options_from_info(info, o), NULL);
    CHECK_SAYS(NULL, "'partition'");
    MPI_Info_delete(info, "deltafs_partition");
    MPI_Info_set(info, "deltafs_schema", "x:f3");
    CHECK_STATUS(DELTAFS_ERR_SCHEMA, deltafs_mpi_options_from_info(info, o), NULL);
    MPI_Info_free(&info);
    deltafs_options_destroy(o);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!CHECK(argc == 3))
        return check_end();
    slow_install();
    limit_message(MESSAGE);
    folder = argv[1];
    records = (uint32_t)strtoul(argv[2], NULL, 10);
    test_info();
    test_self();
    test_same_communicator();
    test_other_communicator();
    test_routes();
    test_create_early(1);
    test_create_early(2);
    check_about("at the end");
    return check_end();
}
