/* Ranks of a node that cannot share memory send each other messages instead, and all is well.
 *
 *     test_mpi_shm FOLDER enough|limit|full
 *
 * enough: they can, and nothing goes by messages; limit: one rank may not make files so long; full: /dev/shm is filled
 * up first, but for a part of what is needed. The last is for a name space of the test's own. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "test_mpi_check.h"
#include "test_mpi_plan.h"

#define SHARED    "/dev/shm"
#define FILL      SHARED "/test-mpi-shm"
#define MEMORY    "32M" /* 4 ranks then share 3 MiB */
#define LEFT      (1500u << 10)
#define LIMIT     (1u << 20)
#define EPOCHS    2
#define WARM_UP   (64 << 10)
#define RANKS_MIN 4

enum shared_memory { ENOUGH, LIMITED, FULL };

/* The library's messages with records, and nothing else here, go out by this. */
static uint64_t sent;

__attribute__((visibility("default"))) int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag,
                                                     MPI_Comm comm, MPI_Request *request)
{
    sent++;
    return PMPI_Isend(bytes, count, type, to, tag, comm, request);
}

/* MPI takes its own share while there is some. */
static void warm_up(void)
{
    char *send = calloc((size_t)check_ranks, WARM_UP), *receive = calloc((size_t)check_ranks, WARM_UP);

    for (int i = 0; i < 10; i++)
        MPI_Alltoall(send, WARM_UP, MPI_BYTE, receive, WARM_UP, MPI_BYTE, MPI_COMM_WORLD);
    free(send);
    free(receive);
}

static void fill_up(void)
{
    struct statvfs st;
    int fd = open(FILL, O_CREAT | O_EXCL | O_RDWR, 0600);

    if (!CHECK(fd >= 0 && statvfs(SHARED, &st) == 0))
        return;
    uint64_t free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
    CHECK(free_bytes > LEFT && posix_fallocate(fd, 0, (off_t)(free_bytes - LEFT)) == 0);
    close(fd);
}

/* Files of this process may be so long. */
static void set_limit(rlim_t bytes)
{
    struct rlimit limit;

    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void test_route(const char *folder, const char *route, int64_t value_size, enum shared_memory shared)
{
    struct plan plan = {.seed = 9,
                        .ranks = check_ranks,
                        .value_size = value_size,
                        .message = 32768,
                        .records = value_size < 0 ? 300 : 5000,
                        .subfiles = 700,
                        .epochs = EPOCHS,
                        .slow_rank = -1};
    deltafs_options *o = check_options("memory=" MEMORY " sync=none");
    deltafs_dir *dir = NULL;

    check_about("route=%s, values of %d", route, (int)value_size);
    CHECK_STATUS(DELTAFS_OK, deltafs_options_set(o, "value_size", value_size < 0 ? "any" : "8"), NULL);
    CHECK_STATUS(DELTAFS_OK, deltafs_options_set(o, "route", route), NULL);
    sent = 0;
    if (shared == LIMITED && check_rank == check_ranks - 1)
        set_limit(LIMIT);
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_create(MPI_COMM_WORLD, check_path(folder, route), o, &dir), NULL);
    deltafs_options_destroy(o);
    set_limit(RLIM_INFINITY);
    check_require();
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
        plan_epoch(&plan, dir, epoch);
    CHECK((sent == 0) == (shared == ENOUGH));
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    plan_check(&plan, folder, route, EPOCHS, 1);
}

int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!CHECK(argc == 3 && check_ranks >= RANKS_MIN))
        return check_end();
    enum shared_memory shared = strcmp(argv[2], "full") == 0 ? FULL : strcmp(argv[2], "limit") == 0 ? LIMITED : ENOUGH;

    warm_up();
    if (shared == FULL && check_rank == 0)
        fill_up();
    check_require();
    test_route(argv[1], "auto", 8, shared);
    test_route(argv[1], "3hop", -1, shared);
    test_route(argv[1], "grid", 8, shared);
    if (shared == FULL && check_rank == 0)
        CHECK(unlink(FILL) == 0);
    check_about("at the end");
    return check_end();
}
