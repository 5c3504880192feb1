/* What it costs to index the keys of records while a file is written through MPI-IO: the same deltafs: files with and
 * without the hints, in turn, in one run; into the page cache, synced to storage before the close, and where storage
 * takes so many bytes a second from each rank and no more, while the rank waits for each write, or has some on the way.
 * All ranks write their parts of files of 48-byte records; the keys are dense, and stand in an order that is another in
 * each file. A program like any other: it knows nothing of DeltaFS but the file names and the hints. Times are those of
 * the slowest rank, from the open to the end of the close, and where bytes are on the way then, until they have
 * arrived. The last run's files stay in FOLDER. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <mpi.h>
#include "bench_help.h"
#include "bench_mpi.h"
#include "bench_table.h"

#define RECORD 48
#define PIECE  (4 << 20) /* bytes of a write, about */
#define ON_WAY 8e6       /* bytes that a client of a parallel file system has on the way: 8 requests of 1 MiB */

static struct {
    const char *folder, *json, *order;
    int megabytes; /* of a file */
    int runs, steps;
    int throttle; /* 10^6 bytes a second of each rank */
} set = {.order = "shuffled", .megabytes = 256, .runs = 5, .steps = 3, .throttle = 50};

enum way { CACHED, SYNCED, THROTTLED, BEHIND, WAYS };

static int rank, ranks;
static uint64_t rows; /* of a rank */
static uint8_t *bytes;

/* ---- Slow storage ---- */

static struct {
    pthread_mutex_t mutex;
    double speed;   /* bytes a second; 0: as it is */
    double on_way;  /* bytes that nobody waits for */
    double free_at; /* when what was written before has been taken */
} storage = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Libraries that are loaded get this instead of the system's. */
ssize_t pwrite64(int fd, const void *from, size_t n, off64_t offset)
{
    pthread_mutex_lock(&storage.mutex);
    double now = bench_now(), wait = 0;
    if (storage.speed > 0) {
        storage.free_at = (storage.free_at > now ? storage.free_at : now) + (double)n / storage.speed;
        wait = storage.free_at - now - storage.on_way / storage.speed;
    }
    pthread_mutex_unlock(&storage.mutex);
    if (wait > 0)
        nanosleep(&(struct timespec){(time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9)}, NULL);
    return syscall(SYS_pwrite64, fd, from, n, offset);
}

/* ---- Dumps ---- */

/* A permutation of 0 .. n - 1: a few rounds of a Feistel cipher, walked until it is below n. */
static uint64_t permute(uint64_t x, uint64_t n, uint64_t seed)
{
    unsigned half = 1;

    while (half < 31 && UINT64_C(1) << 2 * half < n)
        half++;
    uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = x >> half, right = x & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t state = right ^ seed << 20 ^ round << 40, next = left ^ (random_next(&state) & mask);
            left = right;
            right = next;
        }
        x = left << half | right;
    } while (x >= n);
    return x;
}

static void fill(int step)
{
    uint64_t state = (uint64_t)rank + 1, all = rows * (uint64_t)ranks;

    for (uint64_t i = 0; i < rows * RECORD; i += sizeof state) {
        uint64_t word = random_next(&state);
        memcpy(bytes + i, &word, sizeof word);
    }
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t row = (uint64_t)rank * rows + i, key = row;
        if (strcmp(set.order, "shuffled") == 0)
            key = permute(row, all, (uint64_t)step + 1);
        memcpy(bytes + i * RECORD + 24, &key, sizeof key);
    }
}

static double run_write(const char *path, MPI_Info info, enum way way)
{
    MPI_Offset at = (MPI_Offset)((uint64_t)rank * rows * RECORD);
    uint64_t n = rows * RECORD;
    MPI_File f;
    double own, all;

    MPI_Barrier(MPI_COMM_WORLD);
    storage.speed = way == THROTTLED || way == BEHIND ? 1e6 * set.throttle : 0;
    storage.on_way = way == BEHIND ? ON_WAY : 0;
    double start = bench_now();
    storage.free_at = start;
    mpi_must(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &f), "open");
    for (uint64_t i = 0; i < n; i += PIECE)
        mpi_must(MPI_File_write_at(f, at + (MPI_Offset)i, bytes + i, (int)(n - i < PIECE ? n - i : PIECE), MPI_BYTE,
                                   MPI_STATUS_IGNORE),
                 "write");
    if (way == SYNCED)
        mpi_must(MPI_File_sync(f), "sync");
    mpi_must(MPI_File_close(&f), "close");
    own = bench_now() - start;
    /* Until storage has all of it. */
    if (way == BEHIND && storage.free_at - start > own)
        own = storage.free_at - start;
    storage.speed = 0;
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static void run_remove(const char *path)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        mpi_must(MPI_File_delete(path, MPI_INFO_NULL), "delete");
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Seconds of one run's files, with the index or without. The index grows from run to run. */
static double run_steps(int is_indexed, enum way way, int run, int is_last)
{
    char path[256], index[256], label[16];
    double sum = 0;
    MPI_Info info;

    for (int step = 0; step < set.steps; step++) {
        MPI_Info_create(&info);
        if (is_indexed) {
            MPI_Info_set(info, "deltafs_schema", "x:f4,y:f4,z:f4,ux:f4,uy:f4,uz:f4,id:u8,w:f8,e:f8");
            MPI_Info_set(info, "deltafs_key", "id");
            MPI_Info_set(info, "deltafs_index", bench_text(index, "%s/keys-%d-%d", set.folder, (int)way, run));
            snprintf(label, sizeof label, "%d", step);
            MPI_Info_set(info, "deltafs_epoch", label);
        }
        fill(step);
        bench_text(path, "deltafs:%s/dump-%d-%d.%d", set.folder, (int)way, is_indexed, step);
        sum += run_write(path, info, way);
        MPI_Info_free(&info);
    }
    for (int step = 0; step < set.steps && !(is_last && is_indexed); step++)
        run_remove(bench_text(path, "deltafs:%s/dump-%d-%d.%d", set.folder, (int)way, is_indexed, step));
    return sum;
}

static void compare(struct table *t, enum way way)
{
    char throttled[256], behind[256];
    const char *name[WAYS] = {"into the page cache", "synced before the close",
                              bench_text(throttled, "storage of %d MB/s a rank", set.throttle),
                              bench_text(behind, "the same, %.0f MB on the way to it", ON_WAY / 1e6)};
    double taken[2][RUNS_MAX], megabytes = (double)(rows * RECORD * (uint64_t)ranks * (uint64_t)set.steps) / 1e6;

    for (int run = 0; run < set.runs; run++)
        for (int k = 0; k < 2; k++) {
            int is_indexed = k ^ (run & 1); /* neither is always the first */
            taken[is_indexed][run] =
                1e9 * run_steps(is_indexed, way, run, run + 1 == set.runs) / (megabytes * 1e6 / RECORD);
        }
    if (rank == 0)
        table_row(t, name[way], spread_of(taken[1], (size_t)set.runs), "not indexed",
                  spread_of(taken[0], (size_t)set.runs), (struct target){BY_MEDIAN, 1.15});
}

static void parse(int argc, char **argv)
{
    static const struct bench_option options[] = {{"runs", .number = &set.runs},
                                                  {"megabytes", .number = &set.megabytes},
                                                  {"steps", .number = &set.steps},
                                                  {"order", .text = &set.order},
                                                  {"json", .text = &set.json},
                                                  {"throttle", .number = &set.throttle},
                                                  {0}};
    static const char usage[] = "mpirun -np N bench-keys [--runs N] [--megabytes N] [--steps N] "
                                "[--order written|shuffled] [--throttle MB] [--json FILE] FOLDER";

    set.folder = bench_options(argc, argv, options, 1, &set.runs, usage)[0];
    if (set.megabytes < 1 || set.steps < 1 || set.throttle < 1)
        bench_die("usage: %s", usage);
}

int main(int argc, char **argv)
{
    char title[128];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    parse(argc, argv);
    rows = ((uint64_t)set.megabytes << 20) / RECORD / (uint64_t)ranks;
    bytes = bench_alloc(rows * RECORD);
    struct table *t = table_create();
    snprintf(title, sizeof title, "%d ranks, %d files of %d MiB, keys %s", ranks, set.steps, set.megabytes, set.order);
    if (rank == 0)
        table_begin(t, title, "ns a record", LESS);
    for (int way = 0; way < WAYS; way++)
        compare(t, (enum way)way);
    if (rank == 0) {
        table_summary(t);
        if (set.json)
            table_write_json(t, set.json);
    }
    table_destroy(t);
    bench_free(bytes, rows * RECORD);
    MPI_Finalize();
    return 0;
}
