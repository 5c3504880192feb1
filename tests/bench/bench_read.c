/* Trajectories: reads, bytes and time for all records of one key, in all epochs, against the key-value stores, and
 * against what was promised. */
#include <stdio.h>
#include "bench_contest.h"
#include "bench_help.h"
#include "bench_query.h"
#include "bench_sections.h"

#define EPOCHS     5
#define ASKERS_MAX 8
#define UPSTREAM_COLD_MS                                                                                               \
    65.4 /* reading its index, the better of two figures, and then the query; quoted, not run here */
#define WARM_BOUND_US 10
#define READS(T)      (2 + 2 * (double)(T))

/* The askers of one data set; ours is the first. */
struct query_contest {
    char label[64];
    double epochs, record;
    size_t count;
    struct asker asker[ASKERS_MAX];
};

static void prepare_body(const void *arg, struct outcome *out)
{
    const struct asker *a = arg;

    (void)out;
    a->engine->settle(&a->job);
}

static void prepare(const struct asker *a)
{
    struct outcome out;

    bench_say("read: writing %s with %s", a->job.data->name, a->engine->name);
    write_once(a->engine, &a->job, &out);
    if (a->engine->settle)
        run_process("preparing for reads", prepare_body, a, &out);
}

static void contest_run_queries(struct query_contest *c, const struct bench *b, const struct dataset *d,
                                const struct engine *const *engines, size_t n)
{
    size_t cold = b->is_quick ? 12 : 20, warm = b->is_quick ? 300 : 1000;
    char path[ASKERS_MAX][256];
    struct probes probes;

    *c = (struct query_contest){.epochs = (double)d->epochs, .record = (double)data_record(d)};
    snprintf(c->label, sizeof c->label, "%s", d->name);
    for (size_t i = 0; i < n; i++) {
        struct job job = {.bench = b, .data = d, .memory = b->memory};
        job.path = bench_text(path[i], "%s/read%zu", b->scratch, i);
        if (!engines[i]->write)
            continue;
        asker_init(&c->asker[c->count++], &job, engines[i], 0, cold, warm);
        prepare(&c->asker[c->count - 1]);
        if (engines[i]->iterate)
            asker_init(&c->asker[c->count++], &job, engines[i], 1, cold, warm);
    }
    bench_say("read: trajectories of %s", d->name);
    probes_make(&probes, d, 2 * b->runs * warm);
    for (size_t run = 0; run < b->runs; run++) {
        for (size_t i = 0; i < c->count; i++)
            asker_run_cold(&c->asker[i], &probes, run);
        for (size_t i = 0; i < c->count; i++)
            asker_run_warm(&c->asker[i], &probes, run);
    }
    probes_free(&probes);
    for (size_t i = 0; i < n; i++)
        tree_remove(path[i]);
}

static void contest_end_queries(struct query_contest *c)
{
    for (size_t i = 0; i < c->count; i++)
        asker_fini(&c->asker[i]);
}

static struct spread scaled(struct spread s, double factor)
{
    return (struct spread){s.median * factor, s.low * factor, s.high * factor};
}

static const struct series *series_of(const struct asker *a, int is_warm)
{
    return is_warm ? &a->warm : &a->cold;
}

/* Whether the asker's way is the faster of its engine's two. */
static int is_faster_way(const struct query_contest *c, size_t i, int is_warm)
{
    for (size_t k = 0; k < c->count; k++)
        if (k != i && c->asker[k].engine == c->asker[i].engine &&
            series_percentile(series_of(&c->asker[k], is_warm), 0.5).median <
                series_percentile(series_of(&c->asker[i], is_warm), 0.5).median)
            return 0;
    return 1;
}

static void add_latencies(struct table *t, const struct query_contest *c, int is_warm, double unit)
{
    static const double shares[] = {0.5, 0.95, 0.99};
    char label[256];

    for (size_t i = 1; i < c->count; i++) {
        if (!is_faster_way(c, i, is_warm))
            continue;
        for (size_t k = 0; k < 3; k++) {
            struct spread ours = series_percentile(series_of(&c->asker[0], is_warm), shares[k]);
            struct spread peer = series_percentile(series_of(&c->asker[i], is_warm), shares[k]);
            bench_text(label, "%s, p%.0f", c->label, shares[k] * 100);
            table_row(t, label, scaled(ours, unit), c->asker[i].name, scaled(peer, unit), (struct target){0});
        }
    }
}

static void add_reads(struct table *t, const struct query_contest *c)
{
    struct spread ours = series_percentile(&c->asker[0].own_reads, 0.5);
    char bound[256];

    ours.low = series_percentile(&c->asker[0].own_reads, 0).low;
    ours.high = series_percentile(&c->asker[0].own_reads, 1).high;
    bench_text(bound, "bound: 2+2T, T=%.0f", c->epochs);
    table_row(t, c->label, ours, bound, spread_exact(READS(c->epochs)), (struct target){BY_WORST, 1});
}

/* Cold queries, ours against the others' faster way, in the median of all queries. */
static void add_costs(struct table *t, const struct query_contest *c, int is_storage, double unit)
{
    for (size_t i = 1; i < c->count; i++) {
        if (!is_faster_way(c, i, 0))
            continue;
        const struct asker *ours = &c->asker[0], *peer = &c->asker[i];
        table_row(t, c->label, scaled(series_percentile(is_storage ? &ours->storage : &ours->calls, 0.5), unit),
                  peer->name, scaled(series_percentile(is_storage ? &peer->storage : &peer->calls, 0.5), unit),
                  (struct target){0});
    }
}

static void print_tables(struct table *t, const struct query_contest *c, size_t n)
{
    const struct query_contest *large = &c[0];
    struct spread cold = series_percentile(&large->asker[0].cold, 0.5);
    struct spread warm = series_percentile(&large->asker[0].warm, 0.5);
    char label[256];

    table_begin(t, "trajectory: reads from a fresh process", "reads a query", LESS);
    for (size_t i = 0; i < n; i++)
        add_reads(t, &c[i]);
    table_begin(t, "trajectory: read calls of the process, cold", "calls a query", LESS);
    for (size_t i = 1; i < n; i++)
        add_costs(t, &c[i], 0, 1);
    table_begin(t, "trajectory: bytes read by the library, cold", "kB a query", LESS);
    for (size_t i = 0; i < n; i++)
        table_row(t, c[i].label, scaled(series_percentile(&c[i].asker[0].own_bytes, 0.5), 1e-3), "its records' bytes",
                  spread_exact(c[i].epochs * c[i].record / 1e3), (struct target){0});
    table_begin(t, "trajectory: bytes from storage, cold", "kB a query", LESS);
    for (size_t i = 1; i < n; i++)
        add_costs(t, &c[i], 1, 1e-3);
    table_begin(t, "trajectory: cold, with opening", "ms", LESS);
    bench_text(label, "%s, p50", large->label);
    table_row(t, label, scaled(cold, 1e3), "upstream 5x8M, quoted", spread_exact(UPSTREAM_COLD_MS),
              (struct target){BY_MEDIAN, 0.02});
    for (size_t i = 1; i < n; i++)
        add_latencies(t, &c[i], 0, 1e3);
    table_begin(t, "trajectory: warm, page cache and open handle", "us", LESS);
    table_row(t, label, scaled(warm, 1e6), "bound", spread_exact(WARM_BOUND_US), (struct target){BY_MEDIAN, 1});
    for (size_t i = 1; i < n; i++)
        add_latencies(t, &c[i], 1, 1e6);
}

void section_read(const struct bench *b, struct table *t)
{
    static const struct engine *const engines[] = {&engine_ours, &engine_leveldb, &engine_rocksdb,
                                                   &engine_rocksdb_compacted};
    struct query_contest contest[3];
    struct dataset data;
    size_t n = 0;

    data_make(&data, ID_DENSE, EPOCHS, b->is_quick ? 1000000 : 8000000, 40);
    contest_run_queries(&contest[n++], b, &data, engines, 1);
    data_free(&data);
    data_make(&data, ID_DENSE, EPOCHS, b->is_quick ? 500000 : 2000000, 40);
    contest_run_queries(&contest[n++], b, &data, engines, 4);
    data_free(&data);
    if (b->vpic && data_load_vpic(&data, b->vpic)) {
        contest_run_queries(&contest[n++], b, &data, engines, 4);
        data_free(&data);
    }
    print_tables(t, contest, n);
    for (size_t i = 0; i < n; i++)
        contest_end_queries(&contest[i]);
}
