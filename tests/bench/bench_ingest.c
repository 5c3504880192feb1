/* Ingest: how much processor time, wall time, memory and storage a record takes, from making the directory to closing
 * it. The key-value stores take some ten times as long as ours, so they get a contest with fewer records; that
 * favours them, as their work for a record grows with the number of records. */
#include <string.h>
#include "bench_contest.h"
#include "bench_help.h"
#include "bench_sections.h"

#define UPSTREAM_NS 460 /* CPU of upstream's engine for a record, the better of two figures; quoted, not run here */
#define CONTESTS    8

struct workload {
    enum id_kind kind;
    size_t record;         /* bytes */
    size_t n, n_quick;     /* records of an epoch */
    int is_against_stores; /* else against raw dumps */
};

static const struct workload workloads[] = {
    {.kind = ID_DENSE, .record = 48, .n = 8000000, .n_quick = 1000000}, /* the main one */
    {.kind = ID_DENSE, .record = 48, .n = 2000000, .n_quick = 500000, .is_against_stores = 1},
    {.kind = ID_DENSE, .record = 16, .n = 4000000, .n_quick = 1000000},
    {.kind = ID_DENSE, .record = 40, .n = 2000000, .n_quick = 500000},
    {.kind = ID_DENSE, .record = 256, .n = 400000, .n_quick = 100000},
    {.kind = ID_VPIC, .record = 48, .n = 2000000, .n_quick = 500000},
};

static const struct engine *const raws[] = {&engine_ours, &engine_raw, &engine_raw_direct};
static const struct engine *const stores[] = {&engine_ours, &engine_leveldb, &engine_rocksdb,
                                              &engine_rocksdb_compacted};

#define EPOCHS 5

static void run_against(const struct bench *b, const struct dataset *d, int is_against_stores, struct contest *c)
{
    bench_say("ingest: %s against %s", d->name, is_against_stores ? "key-value stores" : "raw dumps");
    if (is_against_stores)
        contest_run(c, b, d, stores, sizeof stores / sizeof stores[0]);
    else
        contest_run(c, b, d, raws, b->has_direct ? 3 : 2);
}

/* A row for each peer. */
static void add_rows(struct table *t, const struct contest *c, figure_fn figure, struct target against_stores)
{
    const struct target none = {0};

    for (size_t i = 1; i < c->count; i++) {
        int has_target = c->engine[i] == &engine_leveldb || c->engine[i] == &engine_rocksdb;
        table_row(t, c->label, contest_spread(c, 0, figure), c->engine[i]->name, contest_spread(c, i, figure),
                  has_target ? against_stores : none);
    }
}

void section_ingest(const struct bench *b, struct table *t)
{
    const struct target fifth = {BY_MEDIAN, 0.2}, tenth = {BY_MEDIAN, 0.1}, none = {0};
    struct contest contest[CONTESTS];
    struct dataset data, real;
    size_t n = sizeof workloads / sizeof workloads[0];

    for (size_t i = 0; i < n; i++) {
        const struct workload *w = &workloads[i];
        data_make(&data, w->kind, EPOCHS, b->is_quick ? w->n_quick : w->n, w->record - 8);
        run_against(b, &data, w->is_against_stores, &contest[i]);
        data_free(&data);
    }
    if (b->vpic && data_load_vpic(&real, b->vpic)) {
        run_against(b, &real, 0, &contest[n++]);
        run_against(b, &real, 1, &contest[n++]);
        data_free(&real);
    }

    table_begin(t, "ingest: processor time", "ns a record", LESS);
    table_row(t, contest[0].label, contest_spread(&contest[0], 0, figure_cpu), "upstream, quoted",
              spread_exact(UPSTREAM_NS), fifth);
    for (size_t i = 0; i < n; i++)
        add_rows(t, &contest[i], figure_cpu, tenth);
    table_begin(t, "ingest: wall time", "ns a record", LESS);
    for (size_t i = 0; i < n; i++)
        add_rows(t, &contest[i], figure_wall, none);
    table_begin(t, "ingest: processor time in the kernel", "ns a record", LESS);
    for (size_t i = 0; i < 2; i++)
        add_rows(t, &contest[i], figure_sys, none);
    table_begin(t, "ingest: processor time outside the kernel", "ns a record", LESS);
    for (size_t i = 0; i < 2; i++)
        add_rows(t, &contest[i], figure_user, none);
    table_begin(t, "ingest: stored", "bytes a record", LESS);
    for (size_t i = 0; i < 2; i++)
        add_rows(t, &contest[i], figure_stored, none);
    table_begin(t, "ingest: growth of the process's memory", "MiB", LESS);
    for (size_t i = 0; i < 2; i++)
        add_rows(t, &contest[i], figure_memory, none);
    for (size_t i = 0; i < n; i++)
        contest_fini(&contest[i]);
}
