/* Many ranks: a small job with the right answers, and how long it took.
 *
 *     test_mpi_many FOLDER ROUTE NODES RECORDS
 *
 * NODES: of pretend_nodes. RECORDS: of each rank and epoch. A value says whose it is and which, and its key follows
 * from it; rank 0 reads all back and ticks them off. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test_mpi_check.h"
#include "test_mpi_nodes.h"
#include "test_mpi_plan.h"

#define EPOCHS 2

static uint64_t records; /* of a rank in an epoch */

static uint64_t value_of(uint64_t epoch, uint64_t rank, uint64_t i)
{
    return (epoch * (uint64_t)check_ranks + rank) * records + i;
}

static uint64_t key_of(uint64_t value)
{
    return plan_random(4, value) >> 20;
}

static void write_epoch(deltafs_dir *dir, uint64_t epoch)
{
    for (uint64_t i = 0; i < records; i++) {
        uint64_t value = value_of(epoch, (uint64_t)check_rank, i);
        CHECK_STATUS(DELTAFS_OK, deltafs_append(dir, key_of(value), &value, sizeof value), dir);
    }
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, epoch + 1), dir);
}

static int see(const struct deltafs_record *r, void *arg)
{
    uint8_t *seen = arg;
    uint64_t value;

    memcpy(&value, r->value, sizeof value);
    if (!CHECK(value < value_of(EPOCHS, 0, 0) && r->key == key_of(value)) ||
        !CHECK(r->label == value / records / (uint64_t)check_ranks + 1) || !CHECK(!seen[value]))
        return 1;
    seen[value] = 1;
    return 0;
}

static void compare(const char *path)
{
    uint64_t all = value_of(EPOCHS, 0, 0), count = 0;
    uint8_t *seen = calloc(all, 1);
    deltafs_dir *dir;
    int stopped = 0;

    if (CHECK_STATUS(DELTAFS_OK, deltafs_open(path, NULL, &dir), NULL)) {
        CHECK_STATUS(DELTAFS_OK, deltafs_scan(dir, NULL, see, seen, &stopped), dir);
        CHECK(stopped == 0);
        CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    }
    for (uint64_t i = 0; i < all; i++)
        count += seen[i];
    CHECK(count == all);
    free(seen);
}

int main(int argc, char **argv)
{
    deltafs_dir *dir = NULL;
    double time[4];

    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!CHECK(argc == 5))
        return check_end();
    records = strtoull(argv[4], NULL, 10);
    check_about("route=%s, %s nodes", argv[2], argv[3]);
    deltafs_options *o = check_options("memory=8M sync=none value_size=8");
    CHECK_STATUS(DELTAFS_OK, deltafs_options_set(o, "route", argv[2]), NULL);
    pretend_nodes(atoi(argv[3]));
    MPI_Barrier(MPI_COMM_WORLD);
    time[0] = MPI_Wtime();
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_create(MPI_COMM_WORLD, check_path(argv[1], argv[2]), o, &dir), NULL);
    deltafs_options_destroy(o);
    check_require();
    time[1] = MPI_Wtime();
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
        write_epoch(dir, epoch);
    time[2] = MPI_Wtime();
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    time[3] = MPI_Wtime();
    if (check_rank == 0) {
        compare(check_path(argv[1], argv[2]));
        printf("%d ranks, route=%s, %s nodes: open %.1f s, %d epochs %.1f s, close %.1f s\n", check_ranks, argv[2],
               argv[3], time[1] - time[0], EPOCHS, time[2] - time[1], time[3] - time[2]);
    }
    return check_end();
}
