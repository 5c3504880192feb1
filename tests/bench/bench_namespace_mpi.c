/* A namespace that the ranks of a job share: how many files a second all of them create together, in one folder or in
 * one each, many names at once or one by one; how many they ask for; and how long an answer takes while the other ranks
 * wait in the library, or compute. A program like any other: only the public API. Times are wall times of the slowest
 * rank; those of creating include the commit. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <mpi.h>
#include <deltafs/deltafs_mpi.h>
#include "bench_help.h"
#include "bench_mpi.h"
#include "bench_table.h"

#define NAME_ROOM    32
#define BATCHED      300 /* thousands a second, to reach */
#define ONE_BY_ONE   30
#define ASKED        30
#define ANSWER_US    2000 /* to stay below, while other ranks compute */
#define ANSWERS      200
#define COMPUTE_SECS 0.5

static struct {
    const char *folder, *json;
    int files; /* of a rank, created at once; a tenth of it one by one */
    int runs;
} set = {.files = 200000, .runs = 3};

static int rank, ranks, level;
static size_t count; /* of files */
static deltafs_namespace *ns;
static char (*text)[NAME_ROOM];
static const char **names;

static void must(int status)
{
    if (status == DELTAFS_OK)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, deltafs_errmsg(NULL));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void open_ns(char path[static 256])
{
    bench_text(path, "%s/shared", set.folder);
    if (rank == 0)
        tree_remove(path);
    must(deltafs_mpi_namespace_open(MPI_COMM_WORLD, path, O_RDWR | O_CREAT | O_EXCL, NULL, DELTAFS_NAMESPACE_SHARED,
                                    &ns));
}

/* All make the folder and fill it, if it is one for all. */
static void make_folder(char path[static 256], int is_one)
{
    bench_text(path, "/folder%d", is_one ? 0 : rank);
    int status = deltafs_namespace_mkdir(ns, path, 0755);
    must(status == DELTAFS_ERR_EXISTS ? DELTAFS_OK : status);
    must(deltafs_mpi_namespace_barrier(ns));
}

/* Thousands of creates a second, of all ranks. */
static double run_many(int is_one)
{
    char path[256], folder[256];

    open_ns(path);
    make_folder(folder, is_one);
    double start = bench_now();
    must(deltafs_namespace_create_many(ns, folder, names, count, 0644));
    must(deltafs_namespace_commit(ns));
    double taken = slowest(bench_now() - start);
    must(deltafs_namespace_close(ns));
    return 1e-3 * (double)count * ranks / taken;
}

/* The same one by one; *asked gets the stats of files that another rank has created. */
static double run_each(int is_one, int flags, double *asked)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    char path[256], folder[256], file[256];
    size_t n = count / 10;

    open_ns(path);
    make_folder(folder, is_one);
    double start = bench_now();
    for (size_t i = 0; i < n; i++)
        must(deltafs_namespace_create(ns, bench_text(file, "%s/%s", folder, names[i]), 0644, flags));
    must(deltafs_namespace_commit(ns));
    double taken = slowest(bench_now() - start);
    int other = (rank + 1) % ranks;
    start = bench_now();
    for (size_t i = 0; i < n; i++)
        must(deltafs_namespace_stat(ns, bench_text(file, "/folder%d/%d.%zu", is_one ? 0 : other, other, i), 0, &s));
    must(deltafs_mpi_namespace_barrier(ns));
    *asked = 1e-3 * (double)n * ranks / slowest(bench_now() - start);
    must(deltafs_namespace_close(ns));
    return 1e-3 * (double)n * ranks / taken;
}

/* Microseconds until rank 0 has an answer, from owners that wait in the library or compute. */
static double run_answers(int computes)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    char path[256], file[256];
    double taken = 0;

    open_ns(path);
    for (int i = rank; i < ANSWERS; i += ranks)
        must(deltafs_namespace_mkdir(ns, bench_text(file, "/%d", i), 0755));
    must(deltafs_mpi_namespace_barrier(ns));
    double start = bench_now();
    for (int i = 0; rank == 0 && i < ANSWERS; i++) {
        int status = deltafs_namespace_stat(ns, bench_text(file, "/%d/none", i), 0, &s);
        must(status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status);
    }
    taken = bench_now() - start;
    while (computes && rank != 0 && bench_now() - start < COMPUTE_SECS)
        ;
    must(deltafs_namespace_close(ns));
    MPI_Bcast(&taken, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return 1e6 * taken / ANSWERS;
}

static void row(struct table *t, const char *label, const double *values, const char *peer, double bound)
{
    const struct target target = {BY_MEDIAN, 1};

    if (rank == 0)
        table_row(t, label, spread_of(values, (size_t)set.runs), peer, spread_exact(bound), target);
}

static void measure_creates(struct table *t)
{
    double many[2][RUNS_MAX], each[2][RUNS_MAX], exclusive[RUNS_MAX], asked[RUNS_MAX], ignored;

    for (int i = 0; i < set.runs; i++) {
        for (int is_one = 0; is_one < 2; is_one++) {
            many[is_one][i] = run_many(is_one);
            each[is_one][i] = run_each(is_one, 0, &asked[i]);
        }
        exclusive[i] = run_each(0, O_EXCL, &ignored);
    }
    row(t, "create_many, a folder each", many[0], "bound", BATCHED);
    row(t, "create_many, one folder", many[1], "bound", BATCHED);
    row(t, "create, a folder each", each[0], "bound", ONE_BY_ONE);
    row(t, "create, one folder", each[1], "bound", ONE_BY_ONE);
    row(t, "create, O_EXCL", exclusive, "bound", ONE_BY_ONE);
    row(t, "stat", asked, "bound", ASKED);
}

static void measure_answers(struct table *t)
{
    double waiting[RUNS_MAX], computing[RUNS_MAX];

    for (int i = 0; i < set.runs; i++) {
        waiting[i] = run_answers(0);
        computing[i] = level == MPI_THREAD_MULTIPLE ? run_answers(1) : 0;
    }
    row(t, "owners wait in the library", waiting, "bound", ANSWER_US);
    if (level == MPI_THREAD_MULTIPLE)
        row(t, "owners compute", computing, "bound", ANSWER_US);
}

static void parse(int argc, char **argv)
{
    static const struct bench_option options[] = {
        {"runs", .number = &set.runs}, {"files", .number = &set.files}, {"json", .text = &set.json}, {0}};
    static const char usage[] =
        "mpirun -np N bench-namespace-mpi [--runs N] [--files N] [--json FILE] calls|thread FOLDER";
    char **operands = bench_options(argc, argv, options, 2, &set.runs, usage);

    if (set.files < 10)
        bench_die("usage: %s", usage);
    level = strcmp(operands[0], "thread") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    set.folder = operands[1];
    count = (size_t)set.files;
}

int main(int argc, char **argv)
{
    char title[128];
    int given;

    parse(argc, argv);
    MPI_Init_thread(&argc, &argv, level, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    text = bench_alloc(count * sizeof *text);
    names = bench_alloc(count * sizeof *names);
    for (size_t i = 0; i < count; i++) {
        snprintf(text[i], sizeof text[i], "%d.%zu", rank, i);
        names[i] = text[i];
    }
    const char *way = level == MPI_THREAD_MULTIPLE ? "with a thread" : "without a thread";
    struct table *t = table_create();
    snprintf(title, sizeof title, "shared namespace, %d ranks %s", ranks, way);
    if (rank == 0)
        table_begin(t, title, "thousands/s", MORE);
    measure_creates(t);
    if (rank == 0)
        table_begin(t, "an answer of another rank", "us", LESS);
    measure_answers(t);
    if (rank == 0) {
        table_summary(t);
        if (set.json)
            table_write_json(t, set.json);
    }
    table_destroy(t);
    MPI_Finalize();
    return 0;
}
