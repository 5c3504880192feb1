/* MPI-IO through DeltaFS against MPI-IO of plain files, in one run on the same folder: writes of all ranks into one
 * file, in turn and in large pieces, and their reading; and how long the opening of a file takes that many have
 * written, with the index read in shares and by each rank for itself. A program like any other: it knows nothing of
 * DeltaFS but the file names, and the hint deltafs_index. Times are those of the slowest rank, from the open to the end
 * of the close. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <mpi.h>
#include "bench_help.h"
#include "bench_mpi.h"
#include "bench_table.h"

#define PIECE_LARGE (1 << 20)

static struct {
    const char *folder, *json;
    int megabytes; /* of a file */
    int runs, is_synced, is_quick, is_open_only;
} set = {.megabytes = 256, .runs = 5};

static int rank, ranks;
static uint8_t *bytes;

/* What stands at an offset of the file: so that what is read can be told right from wrong. */
static void fill(uint8_t *p, uint64_t offset, size_t n)
{
    uint64_t state = offset, word;

    for (size_t i = 0; i < n; i += sizeof word) {
        word = random_next(&state);
        memcpy(p + i, &word, n - i < sizeof word ? n - i : sizeof word);
    }
}

/* ---- Writing and reading ---- */

struct workload {
    const char *label;
    size_t piece;
    int is_strided; /* ranks take turns; else each has a part of the file */
};

static uint64_t pieces_of(const struct workload *w)
{
    return ((uint64_t)set.megabytes << 20) / (uint64_t)ranks / w->piece;
}

/* Where piece `i` of rank `who` stands. */
static uint64_t place(const struct workload *w, int who, uint64_t i)
{
    return (w->is_strided ? i * (uint64_t)ranks + (uint64_t)who : (uint64_t)who * pieces_of(w) + i) * w->piece;
}

static double run_write(const struct workload *w, const char *path)
{
    MPI_File f;

    MPI_Barrier(MPI_COMM_WORLD);
    double start = bench_now();
    mpi_must(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &f), "open");
    for (uint64_t i = 0; i < pieces_of(w); i++) {
        uint64_t at = place(w, rank, i);
        memcpy(bytes, &at, sizeof at);
        mpi_must(MPI_File_write_at(f, (MPI_Offset)at, bytes, (int)w->piece, MPI_BYTE, MPI_STATUS_IGNORE), "write");
    }
    if (set.is_synced)
        mpi_must(MPI_File_sync(f), "sync");
    mpi_must(MPI_File_close(&f), "close");
    return slowest(bench_now() - start);
}

/* Each reads what another has written. */
static double run_read(const struct workload *w, const char *path)
{
    int who = (rank + 1) % ranks;
    uint64_t wrong = 0, all;
    MPI_File f;

    MPI_Barrier(MPI_COMM_WORLD);
    double start = bench_now();
    mpi_must(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f), "open");
    for (uint64_t i = 0; i < pieces_of(w); i++) {
        uint64_t at = place(w, who, i), got;
        mpi_must(MPI_File_read_at(f, (MPI_Offset)at, bytes, (int)w->piece, MPI_BYTE, MPI_STATUS_IGNORE), "read");
        memcpy(&got, bytes, sizeof got);
        wrong += got != at;
    }
    mpi_must(MPI_File_close(&f), "close");
    double taken = slowest(bench_now() - start);
    MPI_Allreduce(&wrong, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (all > 0 && rank == 0)
        bench_die("%s: %llu pieces were not what was written", path, (unsigned long long)all);
    return taken;
}

static void remove_file(const char *path)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        mpi_must(MPI_File_delete(path, MPI_INFO_NULL), "delete");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void compare(struct table *t, const struct workload *w)
{
    double wrote[2][RUNS_MAX], read[2][RUNS_MAX];
    char path[256], label[64];
    double megabytes = (double)(pieces_of(w) * w->piece * (uint64_t)ranks) / 1e6;

    fill(bytes, 1, w->piece);
    for (int run = 0; run < set.runs; run++)
        for (int k = 0; k < 2; k++) {
            bench_text(path, "%s%s/bench-mpiio", k ? "" : "deltafs:", set.folder);
            wrote[k][run] = megabytes / run_write(w, path);
            read[k][run] = megabytes / run_read(w, path);
            remove_file(path);
        }
    if (rank != 0)
        return;
    snprintf(label, sizeof label, "write %s", w->label);
    table_row(t, label, spread_of(wrote[0], (size_t)set.runs), "plain file", spread_of(wrote[1], (size_t)set.runs),
              (struct target){BY_MEDIAN, w->is_strided && w->piece <= 4096 ? 5 : 0.9});
    snprintf(label, sizeof label, "read %s", w->label);
    table_row(t, label, spread_of(read[0], (size_t)set.runs), "plain file", spread_of(read[1], (size_t)set.runs),
              (struct target){BY_MEDIAN, 0.9});
}

/* ---- Opening ---- */

/* Written by `writers` / ranks jobs one after another, some strided pieces each. */
static void make_index(const char *path, int writers)
{
    for (int job = 0; job < writers / ranks; job++) {
        MPI_File f;
        mpi_must(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &f), "open");
        for (uint64_t i = 0; i < 200; i++) {
            uint64_t at =
                ((i * (uint64_t)writers / (uint64_t)ranks + (uint64_t)job) * (uint64_t)ranks + (uint64_t)rank) * 64 +
                (i * i) % 32;
            mpi_must(MPI_File_write_at(f, (MPI_Offset)at, bytes, 32, MPI_BYTE, MPI_STATUS_IGNORE), "write");
        }
        mpi_must(MPI_File_close(&f), "close");
    }
}

#define LATENCY_NS 1000000 /* what a metadata server may take to answer, when many ask it */

static uint64_t files_opened;
static long latency; /* of opening a file, beside what it takes here */

/* Libraries that are loaded get this instead of the system's. */
int open64(const char *path, int flags, ...)
{
    const struct timespec wait = {.tv_nsec = latency};
    mode_t mode = 0;
    va_list ap;

    if (flags & O_CREAT) {
        va_start(ap, flags);
        mode = va_arg(ap, mode_t);
        va_end(ap);
    }
    files_opened++;
    if (latency > 0)
        nanosleep(&wait, NULL);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static double bytes_read(void)
{
    unsigned long long n;
    FILE *f = fopen("/proc/self/io", "r");

    if (!f || fscanf(f, "rchar: %llu", &n) != 1)
        bench_die("/proc/self/io: cannot be read");
    fclose(f);
    return (double)n;
}

/* How fast; the same where each file takes longer; and what the rank that does most opens and reads for it. */
struct opening {
    double opens[RUNS_MAX], slow[RUNS_MAX], files[RUNS_MAX], kilobytes[RUNS_MAX];
};

/* With MPI_COMM_SELF each rank reads all extents by itself. */
static double time_open(const char *path, MPI_Comm comm)
{
    MPI_File f;

    MPI_Barrier(MPI_COMM_WORLD);
    double start = bench_now();
    mpi_must(MPI_File_open(comm, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f), "open");
    double taken = slowest(bench_now() - start);
    mpi_must(MPI_File_close(&f), "close");
    return 1 / taken;
}

static void run_open(const char *path, MPI_Comm comm, struct opening *o, int run)
{
    double before = bytes_read(), asking = bytes_read() - before;

    before = bytes_read();
    files_opened = 0;
    o->opens[run] = time_open(path, comm);
    o->kilobytes[run] = slowest(bytes_read() - before - asking) / 1e3;
    o->files[run] = slowest((double)files_opened);
    latency = LATENCY_NS;
    o->slow[run] = time_open(path, comm);
    latency = 0;
}

static void compare_opening(struct opening opening[2], int writers)
{
    char path[256];

    bench_text(path, "deltafs:%s/bench-index", set.folder);
    make_index(path, writers);
    run_open(path, MPI_COMM_WORLD, &opening[0], 0); /* into the page cache */
    for (int run = 0; run < set.runs; run++)
        for (int k = 0; k < 2; k++)
            run_open(path, k ? MPI_COMM_SELF : MPI_COMM_WORLD, &opening[k], run);
    remove_file(path);
}

#define OPENINGS 3 /* with 64, 256, 1024 writers' extents */

static void opening_row(struct table *t, int i, const double *ours, const double *peer, double target)
{
    char label[64];

    snprintf(label, sizeof label, "%d writers' extents", 64 << 2 * i);
    table_row(t, label, spread_of(ours, (size_t)set.runs), "each reads all", spread_of(peer, (size_t)set.runs),
              i == OPENINGS - 1 && target > 0 ? (struct target){BY_MEDIAN, target} : (struct target){NO_TARGET, 0});
}

/* On one machine, from the page cache, an opening is mostly MPI's collective calls; where each file that is opened
 * waits for a server, it is the files that one rank opens. */
static void compare_openings(struct table *t)
{
    static struct opening opening[OPENINGS][2];
    int n = set.is_quick ? 2 : OPENINGS;

    for (int i = 0; i < n; i++)
        compare_opening(opening[i], 64 << 2 * i);
    if (rank != 0)
        return;
    table_begin(t, "opening for reading, from the page cache", "opens/s", MORE);
    for (int i = 0; i < n; i++)
        opening_row(t, i, opening[i][0].opens, opening[i][1].opens, 0);
    table_begin(t, "opening for reading, where each file takes a millisecond more", "opens/s", MORE);
    for (int i = 0; i < n; i++)
        opening_row(t, i, opening[i][0].slow, opening[i][1].slow, 3.5);
    table_begin(t, "files opened by the rank that opens most", "files", LESS);
    for (int i = 0; i < n; i++)
        opening_row(t, i, opening[i][0].files, opening[i][1].files, 1 / 3.5);
    table_begin(t, "and what it reads", "kB", LESS);
    for (int i = 0; i < n; i++)
        opening_row(t, i, opening[i][0].kilobytes, opening[i][1].kilobytes, 1 / 3.5);
}

/* ---- All of it ---- */

static void parse(int argc, char **argv)
{
    static const struct bench_option options[] = {{"runs", .number = &set.runs},
                                                  {"megabytes", .number = &set.megabytes},
                                                  {"json", .text = &set.json},
                                                  {"sync", .is_on = &set.is_synced},
                                                  {"quick", .is_on = &set.is_quick},
                                                  {"open", .is_on = &set.is_open_only},
                                                  {0}};
    static const char usage[] = "mpirun -np N bench-mpiio [--runs N] [--megabytes N] [--sync] [--quick] [--open] "
                                "[--json FILE] FOLDER";

    set.folder = bench_options(argc, argv, options, 1, &set.runs, usage)[0];
    if (set.megabytes < 1)
        bench_die("usage: %s", usage);
}

int main(int argc, char **argv)
{
    static const struct workload workloads[] = {
        {"1 KiB in turn", 1 << 10, 1},      {"4 KiB in turn", 4 << 10, 1},     {"16 KiB in turn", 16 << 10, 1},
        {"47,001 bytes in turn", 47001, 1}, {"1 MiB in turn", PIECE_LARGE, 1}, {"1 MiB, a part each", PIECE_LARGE, 0}};
    char title[128];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    parse(argc, argv);
    bytes = bench_alloc(PIECE_LARGE);
    struct table *t = table_create();
    snprintf(title, sizeof title, "%d ranks, one file of %d MiB%s", ranks, set.megabytes,
             set.is_synced ? ", synced" : "");
    if (rank == 0 && !set.is_open_only)
        table_begin(t, title, "MB/s", MORE);
    for (size_t i = 0; !set.is_open_only && i < sizeof workloads / sizeof workloads[0]; i++)
        compare(t, &workloads[i]);
    compare_openings(t);
    if (rank == 0) {
        table_summary(t);
        if (set.json)
            table_write_json(t, set.json);
    }
    table_destroy(t);
    bench_free(bytes, PIECE_LARGE);
    MPI_Finalize();
    return 0;
}
