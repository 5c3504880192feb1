/* How fast a pool is: creates, stats and removes, and small writes into one file, by several processes.
 *
 *     bench_pool POINT PROCESSES COUNT NODES [PID...]
 *
 * Prints for each phase operations per second, and the processor time per operation that clients took, and the servers
 * with these process numbers. Processes are distributed over so many nodes; 0: they are on this one. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <deltafs/deltafs_pool.h>
#include "pool_node.h"

#define WRITE_BYTES 8192
#define FILE_BYTES  (UINT64_C(256) << 20)

enum phase { CREATE, STAT, REMOVE, WRITE, READ, LARGE_WRITE, LARGE_READ, PHASES };
static const char *const names[PHASES] = {
    "create", "stat", "remove", "write 8 KiB at random", "read 8 KiB at random", "write 1 MiB", "read 1 MiB"};

static void must(int status)
{
    if (status == DELTAFS_OK)
        return;
    fprintf(stderr, "%s\n", deltafs_errmsg(NULL));
    exit(EXIT_FAILURE);
}

static void name_phase(deltafs_pool *pool, enum phase phase, int me, long count)
{
    struct deltafs_pool_stat st = {.struct_size = sizeof st};
    deltafs_pool_file *f;
    char path[64];

    for (long i = 0; i < count; i++) {
        snprintf(path, sizeof path, "/folder/file.%d.%ld", me, i);
        if (phase == CREATE) {
            must(deltafs_pool_file_open(pool, path, O_WRONLY | O_CREAT | O_EXCL, 0600, &f));
            deltafs_pool_file_close(f);
        } else {
            must(phase == STAT ? deltafs_pool_stat(pool, path, 0, &st) : deltafs_pool_unlink(pool, path));
        }
    }
}

static void byte_phase(deltafs_pool *pool, enum phase phase, int me, long count)
{
    size_t bytes = phase < LARGE_WRITE ? WRITE_BYTES : 1 << 20, got;
    uint8_t *buffer = malloc(bytes);
    deltafs_pool_file *f;

    count = phase < LARGE_WRITE ? count : count / 100 + 1;
    memset(buffer, me + 1, bytes);
    srand((unsigned)me);
    must(deltafs_pool_file_open(pool, "/folder/shared", O_RDWR | O_CREAT, 0600, &f));
    for (long i = 0; i < count; i++) {
        uint64_t n = FILE_BYTES / bytes;
        uint64_t at = (phase < LARGE_WRITE ? (uint64_t)rand() : (uint64_t)(me * count + i)) % n * bytes;
        must(phase == WRITE || phase == LARGE_WRITE ? deltafs_pool_file_write(f, at, buffer, bytes)
                                                    : deltafs_pool_file_read(f, at, buffer, bytes, &got));
    }
    deltafs_pool_file_close(f);
    free(buffer);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
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

static void run(const char *point, enum phase phase, int processes, long count, int nodes, int pids, char **pid)
{
    double start = now(), client = children(), server = processor(pids, pid);
    int status, failed = 0;

    for (int i = 0; i < processes; i++) {
        if (fork() != 0)
            continue;
        deltafs_pool *pool;
        if (nodes > 0)
            pool_node_enter(i % nodes);
        must(deltafs_pool_open(point, &pool));
        (phase < WRITE ? name_phase : byte_phase)(pool, phase, i, count);
        deltafs_pool_close(pool);
        exit(EXIT_SUCCESS);
    }
    while (wait(&status) > 0)
        failed |= status != 0;
    double n = (double)processes * (double)(phase < LARGE_WRITE ? count : count / 100 + 1);
    printf("%-22s %9.0f /s   processor: %6.2f us client, %6.2f us server%s\n", names[phase], n / (now() - start),
           1e6 * (children() - client) / n, 1e6 * (processor(pids, pid) - server) / n, failed ? "  FAILED" : "");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    deltafs_pool *pool;

    if (argc < 5)
        return EXIT_FAILURE;
    must(deltafs_pool_open(argv[1], &pool));
    must(deltafs_pool_mkdir(pool, "/folder", 0700));
    for (int phase = 0; phase < PHASES; phase++)
        run(argv[1], (enum phase)phase, atoi(argv[2]), atol(argv[3]), atoi(argv[4]), argc - 5, argv + 5);
    must(deltafs_pool_unlink(pool, "/folder/shared"));
    must(deltafs_pool_rmdir(pool, "/folder"));
    deltafs_pool_close(pool);
    return EXIT_SUCCESS;
}
