/* How fast a pool or any other file system is: files created, asked for and removed, and small writes into one file, by
 * four processes; large writes and reads by one. scripts/bench-pool starts it, and bench_pool_table makes the tables.
 *
 *     bench_pool KEY api|calls WHERE COUNT MEGABYTES NODES [PID...]
 *
 * With "api" WHERE is a pool's mount point, with "calls" a folder. COUNT is of each process, MEGABYTES of the large
 * file. The processes are distributed over NODES nodes; 0: they are on this one. Prints lines "PHASE KEY VALUE":
 * operations or MB per second; and "PHASE-processor KEY VALUE": microseconds per operation that clients and the
 * processes PID took. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <deltafs/deltafs_pool.h>
#include "pool_node.h"

#define PROCESSES   4
#define SMALL       8192
#define LARGE       (1 << 20)
#define SMALL_SPACE (UINT64_C(256) << 20) /* bytes of the file with small writes */

enum phase { CREATE, STAT, REMOVE, SMALL_WRITE, LARGE_WRITE, LARGE_READ, PHASES };
static const char *const names[PHASES] = {"create", "stat", "remove", "write-8k", "write-1m", "read-1m"};

static const char *where;
static deltafs_pool *pool;
static deltafs_pool_file *file;
static int descriptor;

static void must(int status)
{
    if (status == DELTAFS_OK)
        return;
    fprintf(stderr, "bench_pool: %s\n", deltafs_errmsg(NULL));
    exit(EXIT_FAILURE);
}

static int must_call(ssize_t result)
{
    if (result >= 0)
        return (int)result;
    perror("bench_pool");
    exit(EXIT_FAILURE);
}

/* ---- Two ways to do the same ---- */

struct way {
    void (*begin)(void);
    void (*make_folder)(const char *path);
    void (*create)(const char *path);
    void (*stat)(const char *path);
    void (*remove)(const char *path);
    void (*remove_folder)(const char *path);
    void (*open)(const char *path);
    void (*write)(uint64_t at, const void *bytes, size_t n);
    void (*read)(uint64_t at, void *bytes, size_t n);
};

static void api_begin(void)
{
    must(deltafs_pool_open(where, &pool));
}
static void api_make_folder(const char *path)
{
    must(deltafs_pool_mkdir(pool, path, 0700));
}
static void api_create(const char *path)
{
    must(deltafs_pool_file_open(pool, path, O_WRONLY | O_CREAT | O_EXCL, 0600, &file));
    must(deltafs_pool_file_close(file));
}
static void api_stat(const char *path)
{
    struct deltafs_pool_stat st = {.struct_size = sizeof st};

    must(deltafs_pool_stat(pool, path, 0, &st));
}
static void api_remove(const char *path)
{
    must(deltafs_pool_unlink(pool, path));
}
static void api_remove_folder(const char *path)
{
    must(deltafs_pool_rmdir(pool, path));
}
static void api_open(const char *path)
{
    must(deltafs_pool_file_open(pool, path, O_RDWR | O_CREAT, 0600, &file));
}
static void api_write(uint64_t at, const void *bytes, size_t n)
{
    must(deltafs_pool_file_write(file, at, bytes, n));
}
static void api_read(uint64_t at, void *bytes, size_t n)
{
    size_t got;

    must(deltafs_pool_file_read(file, at, bytes, n, &got));
}

static void calls_begin(void)
{
    must_call(chdir(where));
}
static void calls_make_folder(const char *path)
{
    must_call(mkdir(path + 1, 0700));
}
static void calls_create(const char *path)
{
    must_call(close(must_call(open(path + 1, O_WRONLY | O_CREAT | O_EXCL, 0600))));
}
static void calls_stat(const char *path)
{
    struct stat st;

    must_call(stat(path + 1, &st));
}
static void calls_remove(const char *path)
{
    must_call(unlink(path + 1));
}
static void calls_remove_folder(const char *path)
{
    must_call(rmdir(path + 1));
}
static void calls_open(const char *path)
{
    descriptor = must_call(open(path + 1, O_RDWR | O_CREAT, 0600));
}
static void calls_write(uint64_t at, const void *bytes, size_t n)
{
    must_call(pwrite(descriptor, bytes, n, (off_t)at));
}
static void calls_read(uint64_t at, void *bytes, size_t n)
{
    must_call(pread(descriptor, bytes, n, (off_t)at));
}

static const struct way api = {api_begin,         api_make_folder, api_create, api_stat, api_remove,
                               api_remove_folder, api_open,        api_write,  api_read};
static const struct way calls = {calls_begin,         calls_make_folder, calls_create, calls_stat, calls_remove,
                                 calls_remove_folder, calls_open,        calls_write,  calls_read};
static const struct way *way;

/* ---- Phases ---- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct period {
    double start, end;
} * period; /* of each process; memory that they share */

static void name_phase(enum phase phase, int me, long count)
{
    void (*call)(const char *) = phase == CREATE ? way->create : phase == STAT ? way->stat : way->remove;
    char path[64];

    period[me].start = now();
    for (long i = 0; i < count; i++) {
        snprintf(path, sizeof path, "/folder/file.%d.%ld", me, i);
        call(path);
    }
    period[me].end = now();
}

static void byte_phase(enum phase phase, int me, long count)
{
    size_t size = phase == SMALL_WRITE ? SMALL : LARGE;
    uint8_t *bytes = malloc(size);

    if (!bytes)
        exit(EXIT_FAILURE);
    memset(bytes, me + 1, size);
    srand((unsigned)me + 1);
    way->open(phase == SMALL_WRITE ? "/folder/small" : "/folder/large");
    period[me].start = now();
    for (long i = 0; i < count; i++) {
        uint64_t at = (phase == SMALL_WRITE ? (uint64_t)rand() % (SMALL_SPACE / SMALL) : (uint64_t)i) * size;
        if (phase == LARGE_READ)
            way->read(at, bytes, size);
        else
            way->write(at, bytes, size);
    }
    period[me].end = now();
    free(bytes);
}

/* Processor time of processes, in seconds. */
static double processor(int n, char **pids)
{
    double sum = 0;

    for (int i = 0; i < n; i++) {
        char path[64];
        unsigned long user = 0, kernel = 0;
        snprintf(path, sizeof path, "/proc/%s/stat", pids[i]);
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) == 2)
            sum += (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
        if (f)
            fclose(f);
    }
    return sum;
}

static double children(void)
{
    struct rusage used;

    getrusage(RUSAGE_CHILDREN, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* A phase by `processes` processes, `count` operations each. */
static void run(const char *key, enum phase phase, int processes, long count, int nodes, int pids, char **pid)
{
    double used = children() + processor(pids, pid), n = (double)processes * (double)count;
    struct period all = {.start = 1e300};
    int status;

    fflush(stdout);
    for (int i = 0; i < processes; i++) {
        if (must_call(fork()) != 0)
            continue;
        if (nodes > 0)
            pool_node_enter(i % nodes);
        way->begin();
        (phase < SMALL_WRITE ? name_phase : byte_phase)(phase, i, count);
        _exit(EXIT_SUCCESS);
    }
    while (wait(&status) > 0)
        if (status != 0)
            exit(EXIT_FAILURE);
    for (int i = 0; i < processes; i++) {
        all.start = period[i].start < all.start ? period[i].start : all.start;
        all.end = period[i].end > all.end ? period[i].end : all.end;
    }
    printf("%s %s %.6g\n", names[phase], key, n * (phase < LARGE_WRITE ? 1 : 1e-6 * LARGE) / (all.end - all.start));
    printf("%s-processor %s %.6g\n", names[phase], key, 1e6 * (children() + processor(pids, pid) - used) / n);
}

int main(int argc, char **argv)
{
    if (argc < 7)
        return EXIT_FAILURE;
    way = strcmp(argv[2], "api") == 0 ? &api : &calls;
    where = argv[3];
    period = mmap(NULL, PROCESSES * sizeof *period, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (period == MAP_FAILED)
        return EXIT_FAILURE;
    way->begin();
    way->make_folder("/folder");
    for (int phase = 0; phase < PHASES; phase++)
        run(argv[1], (enum phase)phase, phase < LARGE_WRITE ? PROCESSES : 1, atol(argv[phase < LARGE_WRITE ? 4 : 5]),
            atoi(argv[6]), argc - 7, argv + 7);
    way->remove("/folder/small");
    way->remove("/folder/large");
    way->remove_folder("/folder");
    return EXIT_SUCCESS;
}
