/* That memory stays within its budget: 200 MB through all ranks in one epoch, and the peak of the resident memory.
 *
 *     test_mpi_memory FOLDER VALUE-SIZE|any [SIZE [PARTITIONS]]
 *
 * SIZE is that of the values if any is allowed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test_mpi_check.h"
#include "test_mpi_plan.h"

#define BUDGET_MIB 16
#define SLACK_MIB  10 /* MPI's own buffers, the C library's */
#define ALL_BYTES  200000000u
#define BATCH      1000

/* A line of /proc/self/status, in MiB; -1 if there is none. */
static double status_mib(const char *name)
{
    char line[256];
    double kib = -1;
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtod(line + strlen(name), NULL);
    if (f)
        fclose(f);
    return kib < 0 ? -1 : kib / 1024;
}

/* So that MPI has what it needs to move messages before memory is measured. */
static void warm_up(void)
{
    enum { BYTES = 32 << 10 };
    char *send = calloc((size_t)check_ranks, BYTES), *receive = calloc((size_t)check_ranks, BYTES);

    for (int i = 0; i < 20; i++)
        MPI_Alltoall(send, BYTES, MPI_BYTE, receive, BYTES, MPI_BYTE, MPI_COMM_WORLD);
    free(send);
    free(receive);
}

static void write_all(deltafs_dir *dir, size_t size)
{
    static uint64_t keys[BATCH];
    static uint8_t values[BATCH * 1000];
    uint64_t n = ALL_BYTES / (8 + size) / (uint64_t)check_ranks;

    for (uint64_t done = 0; done < n; done += BATCH) {
        for (uint64_t i = 0; i < BATCH; i++) {
            keys[i] = plan_random((uint64_t)check_rank, done + i);
            for (size_t at = 0; at + 8 <= size; at += 8) {
                uint64_t r = plan_random(keys[i], at);
                memcpy(values + i * size + at, &r, 8);
            }
        }
        if (deltafs_append_many(dir, BATCH, keys, 8, values, size, size) != DELTAFS_OK)
            break;
    }
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, 1), dir);
}

int main(int argc, char **argv)
{
    deltafs_dir *dir = NULL;

#ifdef __SANITIZE_ADDRESS__
    return 77;
#endif
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!CHECK(argc >= 3))
        return check_end();
    int is_any = strcmp(argv[2], "any") == 0;
    size_t size = strtoul(is_any && argc > 3 ? argv[3] : is_any ? "48" : argv[2], NULL, 10);
    deltafs_options *o = check_options("sync=none memory=16M");
    CHECK_STATUS(DELTAFS_OK, deltafs_options_set(o, "value_size", argv[2]), NULL);
    CHECK_STATUS(DELTAFS_OK, deltafs_options_set(o, "partitions", argc > 4 ? argv[4] : "auto"), NULL);
    warm_up();
    double before = status_mib("VmHWM:");
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_create(MPI_COMM_WORLD, check_path(argv[1], "directory"), o, &dir), NULL);
    deltafs_options_destroy(o);
    check_require();
    write_all(dir, size);
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    double grown = status_mib("VmHWM:") - before;
    printf("rank %d: the peak grew by %.1f MiB to %.1f MiB, with a budget of %d MiB\n", check_rank, grown,
           before + grown, BUDGET_MIB);
    CHECK(before < 0 || grown < BUDGET_MIB + SLACK_MIB);
    return check_end();
}
