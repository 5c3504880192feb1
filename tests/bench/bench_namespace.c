/* Namespaces: creating files in one folder, and stat by path, against the same puts into RocksDB and against bounds. */
#include <fcntl.h>
#include <stdio.h>
#include <deltafs/deltafs_namespace.h>
#include "bench_contest.h"
#include "bench_help.h"
#include "bench_sections.h"

#define MEMORY       (64u << 20)
#define RECORD       60   /* bytes of an entry's record, about */
#define UPSTREAM_NS  5880 /* a create of upstream: 170 k a second per process; quoted, not run here */
#define CREATE_NS    500
#define EXCLUSIVE_NS 2000
#define STAT_NS      2000
#define STATS        100000 /* paths, which fit into memory; asked for twice, and measured the second time */

#define PATH_SIZE 24

struct creating {
    const struct bench *bench;
    const char *path;
    const char *names; /* paths of n files, PATH_SIZE bytes each: making them is not measured */
    size_t n;
    int flags;
};

static void must(int status)
{
    if (status != DELTAFS_OK)
        bench_die("namespace: %s", deltafs_errmsg(NULL));
}

static void stat_all(deltafs_namespace *ns, const struct creating *c, size_t n)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};

    for (size_t i = 0; i < n; i++)
        must(deltafs_namespace_stat(ns, c->names + i * PATH_SIZE, 0, &s));
}

/* The time of the creates is the run's; that of a stat is a sample. */
static void create_body(const void *arg, struct outcome *out)
{
    const struct creating *c = arg;
    deltafs_options *o = ours_options(c->bench, MEMORY, NULL);
    size_t stats = c->n < STATS ? c->n : STATS;
    struct outcome stat = {0};
    struct meter meter;
    deltafs_namespace *ns;

    must(deltafs_namespace_open(c->path, O_RDWR | O_CREAT | O_EXCL, o, &ns));
    must(deltafs_namespace_mkdir(ns, "/folder", 0755));
    meter_start(&meter);
    for (size_t i = 0; i < c->n; i++)
        must(deltafs_namespace_create(ns, c->names + i * PATH_SIZE, 0644, c->flags));
    must(deltafs_namespace_commit(ns));
    meter_stop(&meter, out);
    must(deltafs_namespace_close(ns));

    must(deltafs_namespace_open(c->path, O_RDONLY, o, &ns));
    stat_all(ns, c, stats);
    meter_start(&meter);
    stat_all(ns, c, stats);
    meter_stop(&meter, &stat);
    must(deltafs_namespace_close(ns));
    deltafs_options_destroy(o);
    out->sample[out->samples++] = 1e9 * (stat.user + stat.sys) / (double)stats;
}

/* Processor time of a create, and of a stat, in ns. */
static void create_run(const struct bench *b, size_t n, int flags, struct spread *create, struct spread *stat)
{
    double creates[RUNS_MAX], stats[RUNS_MAX];
    char path[256], *names = bench_alloc(n * PATH_SIZE);
    struct creating c = {b, bench_text(path, "%s/namespace", b->scratch), names, n, flags};

    for (size_t i = 0; i < n; i++)
        snprintf(names + i * PATH_SIZE, PATH_SIZE, "/folder/file%zu", i);

    for (size_t run = 0; run < b->runs; run++) {
        struct outcome out = {0};
        tree_remove(path);
        tree_sync_system(b->scratch);
        run_process("creating files", create_body, &c, &out);
        creates[run] = 1e9 * (out.user + out.sys) / (double)n;
        stats[run] = out.sample[0];
    }
    tree_remove(path);
    bench_free(names, n * PATH_SIZE);
    *create = spread_of(creates, b->runs);
    *stat = spread_of(stats, b->runs);
}

/* Records of the same size into RocksDB. */
static int put_run(const struct bench *b, size_t n, struct spread *out)
{
    double values[RUNS_MAX];
    char path[256];
    struct dataset data;

    if (!engine_rocksdb.write)
        return 0;
    data_make(&data, ID_VPIC, 1, n, RECORD);
    struct job job = {.bench = b, .data = &data, .memory = MEMORY};
    job.path = bench_text(path, "%s/puts", b->scratch);
    for (size_t run = 0; run < b->runs; run++) {
        struct outcome o;
        write_once(&engine_rocksdb, &job, &o);
        values[run] = figure_cpu(&o, (double)n);
    }
    tree_remove(path);
    data_free(&data);
    *out = spread_of(values, b->runs);
    return 1;
}

void section_namespace(const struct bench *b, struct table *t)
{
    const struct target bound = {BY_MEDIAN, 1}, third = {BY_MEDIAN, 1.0 / 3}, none = {0};
    size_t n = b->is_quick ? 1000000 : 4000000;
    struct spread create, exclusive, stat, ignored, puts;
    char label[256], count[16];

    bench_say("namespace: creating files");
    create_run(b, n, 0, &create, &stat);
    create_run(b, n, O_EXCL, &exclusive, &ignored);
    int has_puts = put_run(b, n, &puts);
    bench_text(label, "%s files in a folder", bench_count(count, n));
    table_begin(t, "namespace: processor time of a create", "ns a create", LESS);
    table_row(t, label, create, "bound", spread_exact(CREATE_NS), bound);
    table_row(t, label, create, "upstream, quoted", spread_exact(UPSTREAM_NS), none);
    if (has_puts)
        table_row(t, label, create, engine_rocksdb.name, puts, third);
    bench_text(label, "%s files, O_EXCL", count);
    table_row(t, label, exclusive, "bound", spread_exact(EXCLUSIVE_NS), bound);
    table_begin(t, "namespace: processor time of a stat, warm", "ns a stat", LESS);
    table_row(t, "by path", stat, "bound", spread_exact(STAT_NS), bound);
}
