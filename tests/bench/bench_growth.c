/* A trajectory against what it takes without an index: reading every byte of the raw dumps (and only that). Both cold,
 * at several sizes: the scan grows with the data, the trajectory must not. */
#include <stdio.h>
#include <stdlib.h>
#include "bench_contest.h"
#include "bench_help.h"
#include "bench_query.h"
#include "bench_sections.h"

#define EPOCHS  5
#define SIZES   3
#define STEP    4 /* from one size to the next */
#define QUERIES 8 /* of a run */
#define LINEAR  0.8

static void scan_body(const void *arg, struct outcome *out)
{
    struct meter meter;

    meter_start(&meter);
    tree_read(arg);
    meter_stop(&meter, out);
}

static struct spread scan_run(const char *path, unsigned runs)
{
    double seconds[RUNS_MAX];
    struct outcome out;

    for (unsigned run = 0; run < runs; run++) {
        tree_evict(path);
        run_process("a full scan", scan_body, path, &out);
        seconds[run] = out.wall * 1e3;
    }
    return spread_of(seconds, runs);
}

/* The medians at one size, in milliseconds, and their row. Returns how many trajectories a scan takes. */
static double measure(const struct bench *b, struct table *t, const struct dataset *d)
{
    char ours[256], raw[256];
    struct job job = {.bench = b, .data = d, .memory = b->memory};
    struct probes probes;
    struct outcome out;
    struct asker asker;

    job.path = bench_text(raw, "%s/growth.raw", b->scratch);
    write_once(&engine_raw, &job, &out);
    job.path = bench_text(ours, "%s/growth", b->scratch);
    write_once(&engine_ours, &job, &out);
    probes_make(&probes, d, b->runs * QUERIES);
    asker_init(&asker, &job, &engine_ours, 0, QUERIES, 0);
    for (size_t run = 0; run < b->runs; run++)
        asker_run_cold(&asker, &probes, run);
    struct spread scan = scan_run(raw, b->runs), one = series_percentile(&asker.cold, 0.5);
    one = (struct spread){one.median * 1e3, one.low * 1e3, one.high * 1e3};
    table_row(t, d->name, one, "scan of the raw dumps", scan, (struct target){0});
    asker_fini(&asker);
    probes_free(&probes);
    tree_remove(ours);
    tree_remove(raw);
    return scan.median / one.median;
}

void section_growth(const struct bench *b, struct table *t)
{
    double times[SIZES], factor = 1;
    struct dataset data;
    size_t n = b->is_quick ? 250000 : 500000;

    bench_say("growth: trajectories and scans of %d sizes", SIZES);
    table_begin(t, "trajectory against a full scan, cold", "ms", LESS);
    for (size_t i = 0; i < SIZES; i++, n *= STEP) {
        data_make(&data, ID_DENSE, EPOCHS, n, 40);
        times[i] = measure(b, t, &data);
        data_free(&data);
    }
    table_begin(t, "growth of scan / trajectory with the data", "times", MORE);
    for (size_t i = 1; i < SIZES; i++) {
        char label[256];
        factor *= STEP;
        table_row(t, bench_text(label, "from 1 to %.0f times the data", factor), spread_exact(times[i] / times[0]),
                  "linear", spread_exact(factor), (struct target){BY_MEDIAN, LINEAR});
    }
}
