/* The tables of scripts/bench-pool, from a file of lines "WHAT KEY VALUE"; several of one WHAT and KEY are runs.
 *
 *     bench_pool_table FILE FILE_SYSTEM JSON
 *
 * Keys: api-N a pool of N servers on one node, through its C API; nodes-N of N servers on as many nodes; run-1 of one
 * server, by "deltafs run"; memory-api-1 and memory-run-1 those in memory; disk and tmpfs without a pool. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "bench_help.h"
#include "bench_table.h"

#define LINES_MAX 4096

struct line {
    char what[32], key[32];
    double value;
};

static struct line lines[LINES_MAX];
static size_t line_count;
static struct table *table;
static const char *file_system;
static const struct target none = {0}, reach = {BY_MEDIAN, 1}, half = {BY_MEDIAN, 0.5}, most = {BY_MEDIAN, 0.8};

static void lines_read(const char *path)
{
    FILE *f = fopen(path, "r");

    if (!f)
        bench_die("open %s: %s", path, strerror(errno));
    while (line_count < LINES_MAX &&
           fscanf(f, "%31s %31s %lf", lines[line_count].what, lines[line_count].key, &lines[line_count].value) == 3)
        line_count++;
    fclose(f);
}

/* 0: nothing was measured. */
static int find(const char *what, const char *key, struct spread *out)
{
    double values[RUNS_MAX];
    size_t n = 0;

    for (size_t i = 0; i < line_count && n < RUNS_MAX; i++)
        if (strcmp(lines[i].what, what) == 0 && strcmp(lines[i].key, key) == 0)
            values[n++] = lines[i].value;
    if (n > 0)
        *out = spread_of(values, n);
    return n > 0;
}

static const char *label(const char *key)
{
    static const char *const labels[][2] = {{"api-1", "1 server"},
                                            {"run-1", "1 server, deltafs run"},
                                            {"memory-api-1", "1 server in memory"},
                                            {"memory-run-1", "in memory, deltafs run"},
                                            {"api-2", "2 servers on one node"},
                                            {"api-4", "4 servers on one node"},
                                            {"nodes-2", "2 servers on 2 nodes"},
                                            {"nodes-4", "4 servers on 4 nodes"},
                                            {"nodes-8", "8 servers on 8 nodes"}};

    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (strcmp(labels[i][0], key) == 0)
            return labels[i][1];
    return strcmp(key, "disk") == 0 ? file_system : key;
}

/* Rows: beside a number, and beside another measurement of the same. */
static void bound(const char *what, const char *key, const char *name, double value, struct target target)
{
    struct spread ours;

    if (find(what, key, &ours))
        table_row(table, label(key), ours, name, spread_exact(value), target);
}
static void beside(const char *what, const char *key, const char *peer, struct target target)
{
    struct spread ours, theirs;

    if (find(what, key, &ours) && find(what, peer, &theirs))
        table_row(table, label(key), ours, label(peer), theirs, target);
}

static void name_table(const char *title, const char *what, double quoted)
{
    static const char *const more[] = {"api-2", "api-4", "nodes-2", "nodes-4"};

    table_begin(table, title, "per second", MORE);
    bound(what, "api-1", "bound", 100000, reach);
    bound(what, "run-1", "bound", 100000, reach);
    bound(what, "api-1", "GekkoFS, quoted", quoted, none);
    beside(what, "api-1", "disk", none);
    beside(what, "run-1", "disk", none);
    beside(what, "memory-api-1", "tmpfs", none);
    beside(what, "memory-run-1", "tmpfs", none);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        beside(what, more[i], "api-1", half);
}

static void small_table(void)
{
    table_begin(table, "random writes of 8 KiB into one file, 4 processes", "per second", MORE);
    bound("write-8k", "api-1", "bound", 150000, reach);
    bound("write-8k", "run-1", "bound", 150000, reach);
    beside("write-8k", "api-1", "disk", none);
    beside("write-8k", "run-1", "disk", none);
    beside("write-8k", "memory-api-1", "tmpfs", none);
    beside("write-8k", "memory-run-1", "tmpfs", none);
}

static void large_table(const char *title, const char *what)
{
    table_begin(table, title, "MB per second", MORE);
    beside(what, "api-1", "disk", most);
    beside(what, "run-1", "disk", most);
    beside(what, "memory-api-1", "tmpfs", half);
    beside(what, "memory-run-1", "tmpfs", half);
}

static void processor_table(const char *title, const char *what)
{
    table_begin(table, title, "us", LESS);
    beside(what, "api-1", "disk", none);
    beside(what, "run-1", "disk", none);
    beside(what, "memory-api-1", "tmpfs", none);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        bench_die("usage: bench_pool_table FILE FILE_SYSTEM JSON");
    file_system = argv[2];
    lines_read(argv[1]);
    table = table_create();
    name_table("create files in one folder, 4 processes", "create", 90000);
    name_table("stat files, 4 processes", "stat", 86000);
    name_table("remove files, 4 processes", "remove", 43000);
    small_table();
    large_table("write 1 MiB at a time, one process, not synced", "write-1m");
    large_table("read 1 MiB at a time, one process, page cache", "read-1m");
    processor_table("processor time of a create, clients and server", "create-processor");
    processor_table("processor time of a write of 8 KiB", "write-8k-processor");
    table_begin(table, "start, until all servers answer", "seconds", LESS);
    bound("start", "nodes-8", "bound", 2, reach);
    table_begin(table, "processor time of each idle server", "ms per second", LESS);
    bound("idle", "api-1", "bound", 10, reach);
    bound("idle", "nodes-8", "bound", 10, reach);
    table_summary(table);
    table_write_json(table, argv[3]);
    table_destroy(table);
    return 0;
}
