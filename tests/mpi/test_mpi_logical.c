/* Logical files over MPI: what the threads of the unit test cannot show. Strided writes by all ranks, read back by as
 * many, fewer, and by each alone, whichever way the index travels; the same status on all ranks whatever fails; and a
 * file that every rank creates for itself at the same time. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <deltafs/deltafs_mpi.h>
#include "test_mpi_check.h"
#include "thread_count.h"

#define PIECE  700
#define PIECES 300

/* MPI fails in the next reduction, on all ranks. */
static int is_failing;

__attribute__((visibility("default"))) int MPI_Iallreduce(const void *from, void *to, int n, MPI_Datatype type,
                                                          MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    int fails = is_failing;

    is_failing = 0;
    return fails ? MPI_ERR_OTHER : PMPI_Iallreduce(from, to, n, type, op, comm, request);
}

/* How often the processor was yielded, and whether a rank slept that had not done so often before. */
#define YIELDS_MIN 100
static unsigned yields;
static int has_slept_early;

__attribute__((visibility("default"))) int sched_yield(void)
{
    yields++;
    return (int)syscall(SYS_sched_yield);
}

__attribute__((visibility("default"))) int nanosleep(const struct timespec *t, struct timespec *rest)
{
    has_slept_early |= yields < YIELDS_MIN;
    return (int)syscall(SYS_nanosleep, t, rest);
}

static uint8_t noise(uint64_t offset)
{
    return (uint8_t)((offset * UINT64_C(0x9e3779b97f4a7c15)) >> 41);
}

static deltafs_logical *open_by(MPI_Comm comm, const char *path, int flags, const char *options)
{
    deltafs_logical *f = NULL;
    deltafs_options *o = check_options(options);

    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_logical_open(comm, path, flags, o, &f), NULL);
    deltafs_options_destroy(o);
    check_require();
    return f;
}

/* Rank `rank` of `ranks` writes every ranks-th piece. */
static void write_share(deltafs_logical *f, int rank, int ranks)
{
    uint8_t bytes[PIECE];

    for (int i = rank; i < PIECES; i += ranks) {
        for (uint64_t k = 0; k < PIECE; k++)
            bytes[k] = noise((uint64_t)i * PIECE + k);
        CHECK_STATUS(DELTAFS_OK, deltafs_logical_write(f, (uint64_t)i * PIECE, bytes, PIECE), NULL);
    }
}

static void read_all(deltafs_logical *f)
{
    static uint8_t bytes[PIECE * PIECES + 100];
    size_t got = 0;
    uint64_t size = 0;
    int wrong = 0;

    CHECK_STATUS(DELTAFS_OK, deltafs_logical_read(f, 0, bytes, sizeof bytes, &got), NULL);
    CHECK(got == PIECE * PIECES);
    for (uint64_t k = 0; k < got; k++)
        wrong += bytes[k] != noise(k);
    CHECK(wrong == 0);
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_size(f, &size), NULL);
    CHECK(size == PIECE * PIECES);
}

static void test_ways(const char *folder)
{
    static const char *const ways[] = {"extents=parallel", "extents=broadcast", "extents=flatten"};
    char path[1024];

    for (int i = 0; i < 3; i++) {
        check_about("%s", ways[i]);
        snprintf(path, sizeof path, "%s/%s", folder, ways[i]);
        deltafs_logical *f = open_by(MPI_COMM_WORLD, path, O_RDWR | O_CREAT | O_EXCL, ways[i]);
        write_share(f, check_rank, check_ranks);
        CHECK_STATUS(DELTAFS_OK, deltafs_logical_sync(f), NULL);
        read_all(f);
        CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);
        check_require();
        f = open_by(MPI_COMM_WORLD, path, O_RDONLY, ways[i]);
        read_all(f);
        CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);
        f = open_by(MPI_COMM_SELF, path, O_RDONLY, ways[i]);
        read_all(f);
        CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);
        check_require();
    }
}

/* In reverse: half of the ranks are another job, which writes the same file again. */
static void test_halves(const char *folder)
{
    char path[1024];
    MPI_Comm half;
    int rank, ranks;

    check_about("two halves, one after another");
    snprintf(path, sizeof path, "%s/halves", folder);
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, check_rank, &half);
    MPI_Comm_rank(half, &rank);
    MPI_Comm_size(half, &ranks);
    for (int turn = 0; turn < 2 && turn < check_ranks; turn++) {
        if (check_rank % 2 == turn) {
            deltafs_logical *f = NULL;
            CHECK_STATUS(DELTAFS_OK, deltafs_mpi_logical_open(half, path, O_WRONLY | O_CREAT, NULL, &f), NULL);
            if (f) {
                write_share(f, rank, ranks);
                CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);
            }
        }
        check_require();
    }
    deltafs_logical *f = open_by(MPI_COMM_WORLD, path, O_RDONLY, "");
    read_all(f);
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);
    MPI_Comm_free(&half);
    check_require();
}

static void test_alone(const char *folder)
{
    char path[1024];
    deltafs_logical *f;
    int won = 0, all = 0;

    check_about("every rank for itself");
    snprintf(path, sizeof path, "%s/alone", folder);
    f = open_by(MPI_COMM_SELF, path, O_WRONLY | O_CREAT, "");
    write_share(f, check_rank, check_ranks);
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);
    check_require();
    f = open_by(MPI_COMM_WORLD, path, O_RDONLY, "");
    read_all(f);
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);

    check_about("one of them with O_EXCL");
    snprintf(path, sizeof path, "%s/exclusive", folder);
    int status = deltafs_mpi_logical_open(MPI_COMM_SELF, path, O_WRONLY | O_CREAT | O_EXCL, NULL, &f);
    CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_EXISTS);
    won = status == DELTAFS_OK;
    if (won)
        CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);
    MPI_Allreduce(&won, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == 1);
    check_require();
}

/* The path is rank 0's, wherever the others are. */
static void test_folders(const char *folder)
{
    char *here = getcwd(NULL, 0);

    check_about("ranks in other folders");
    CHECK(chdir(check_rank == 0 ? folder : "/") == 0);
    deltafs_logical *f = open_by(MPI_COMM_WORLD, "folders", O_RDWR | O_CREAT | O_EXCL, "");
    write_share(f, check_rank, check_ranks);
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_sync(f), NULL);
    read_all(f);
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);
    CHECK(chdir(here) == 0);
    free(here);
    check_require();
}

static void test_errors(const char *folder)
{
    char path[1024];
    deltafs_logical *f = NULL;
    deltafs_dir *d = NULL;

    check_about("errors");
    snprintf(path, sizeof path, "%s/nothing", folder);
    CHECK_STATUS(DELTAFS_ERR_NOT_FOUND, deltafs_mpi_logical_open(MPI_COMM_WORLD, path, O_RDONLY, NULL, &f), NULL);
    snprintf(path, sizeof path, "%s/exclusive", folder);
    CHECK_STATUS(DELTAFS_ERR_EXISTS,
                 deltafs_mpi_logical_open(MPI_COMM_WORLD, path, O_RDWR | O_CREAT | O_EXCL, NULL, &f), NULL);
    snprintf(path, sizeof path, "%s/directory", folder);
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_create(MPI_COMM_WORLD, path, NULL, &d), NULL);
    CHECK_STATUS(DELTAFS_OK, deltafs_close(d), NULL);
    CHECK_STATUS(DELTAFS_ERR_NOT_DELTAFS, deltafs_mpi_logical_open(MPI_COMM_WORLD, path, O_RDONLY, NULL, &f), NULL);
    CHECK_STATUS(DELTAFS_ERR_INVALID, deltafs_mpi_logical_open(MPI_COMM_WORLD, NULL, O_RDONLY, NULL, &f), NULL);
    check_require();
}

/* A file that is closed well, but whose keys are not indexed, as the ranks could not ask each other who has written. */
static void test_unasked(const char *folder)
{
    char path[1024];

    check_about("MPI fails before the close");
    snprintf(path, sizeof path, "%s/unasked", folder);
    deltafs_logical *f = open_by(MPI_COMM_WORLD, path, O_WRONLY | O_CREAT, "");
    write_share(f, check_rank, check_ranks);
    is_failing = 1;
    CHECK_STATUS(DELTAFS_ERR_MPI, deltafs_logical_close(f), NULL);
    CHECK(!is_failing);
    check_require();
    f = open_by(MPI_COMM_WORLD, path, O_RDONLY, "");
    read_all(f);
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);
    check_require();
}

#define SESSIONS 30

/* More sessions than ranks, some with the index in one file, of some not all writers have logs: each rank reads its
 * share of them and no more, and all know all. */
static void test_shares(const char *folder)
{
    struct deltafs_io_stat own = {.struct_size = sizeof own}, alone = own;
    char path[1024];

    snprintf(path, sizeof path, "%s/shares", folder);
    for (int s = 0; s < SESSIONS; s++) {
        deltafs_logical *f =
            open_by(MPI_COMM_WORLD, path, O_WRONLY | O_CREAT, s % 7 == 3 ? "memory=8M extents=flatten" : "memory=8M");
        if (s % 5 != 2 || check_rank == 0)
            write_share(f, s * check_ranks + check_rank, SESSIONS * check_ranks);
        if (s % 5 == 2 && check_rank == 0)
            for (int i = 1; i < check_ranks; i++)
                write_share(f, s * check_ranks + i, SESSIONS * check_ranks);
        CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);
    }
    deltafs_logical *f = open_by(MPI_COMM_WORLD, path, O_RDONLY, "memory=8M");
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_io_stat(f, &own), NULL);
    read_all(f);
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);
    f = open_by(MPI_COMM_SELF, path, O_RDONLY, "memory=8M");
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_io_stat(f, &alone), NULL);
    read_all(f);
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);
    CHECK(own.reads <= alone.reads / (uint64_t)check_ranks + alone.reads / 8 + 2);
    check_require();
}

/* Who has waited for long sleeps between two looks at what he waits for. Of the next wait that says nothing: ranks that
 * meet are not to sleep first. (All waits after a long one slept, and took 50 us and more.) */
static void test_waits(const char *folder)
{
    const struct timespec late = {.tv_nsec = 200000000};
    char path[600];

    snprintf(path, sizeof path, "%s/waits", folder);
    deltafs_logical *f = open_by(MPI_COMM_WORLD, path, O_RDWR | O_CREAT, "");
    if (check_rank == 0)
        nanosleep(&late, NULL);
    for (int i = 0; i < 20; i++) {
        CHECK_STATUS(DELTAFS_OK, deltafs_logical_exchange(f), NULL);
        CHECK(i == 0 || !has_slept_early);
        yields = 0;
        has_slept_early = 0;
    }
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);
}

/* A thread helps with a long read if the job has a processor for it, however many ranks opened the file. */
static void test_helper(const char *folder, size_t first)
{
    static uint8_t bytes[1 << 20];
    cpu_set_t processors;
    char path[1024];
    size_t got;

    check_about("a thread that helps");
    snprintf(path, sizeof path, "%s/helper-%d", folder, check_rank);
    deltafs_logical *f = open_by(MPI_COMM_SELF, path, O_WRONLY | O_CREAT, "");
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_write(f, 0, bytes, sizeof bytes), NULL);
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);
    f = open_by(MPI_COMM_SELF, path, O_RDONLY, "");
    size_t before = thread_count_settled(first);
    CHECK(before > 0);
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_read(f, 0, bytes, sizeof bytes, &got), NULL);
    CHECK(sched_getaffinity(0, sizeof processors, &processors) == 0);
    CHECK(thread_count() == before + (CPU_COUNT(&processors) / 2 >= check_ranks));
    CHECK_STATUS(DELTAFS_OK, deltafs_logical_close(f), NULL);
    check_require();
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    size_t threads = thread_count();
    test_ways(argv[1]);
    test_halves(argv[1]);
    test_alone(argv[1]);
    test_shares(argv[1]);
    test_folders(argv[1]);
    test_errors(argv[1]);
    test_unasked(argv[1]);
    test_waits(argv[1]);
    test_helper(argv[1], threads);
    return check_end();
}
