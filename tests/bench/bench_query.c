#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench_help.h"
#include "bench_query.h"

static void series_init(struct series *s, size_t runs, size_t each)
{
    *s = (struct series){.runs = runs, .each = each, .value = bench_grow(NULL, runs * each * sizeof *s->value)};
}

struct spread series_percentile(const struct series *s, double share)
{
    size_t n = s->runs * s->each;
    double *copy = bench_grow(NULL, n * sizeof *copy);
    struct spread out = {0};

    memcpy(copy, s->value, n * sizeof *copy);
    for (size_t run = 0; run < s->runs; run++) {
        double v = percentile(copy + run * s->each, s->each, share);
        out.low = run == 0 || v < out.low ? v : out.low;
        out.high = run == 0 || v > out.high ? v : out.high;
    }
    out.median = percentile(copy, n, share);
    free(copy);
    return out;
}

void asker_init(struct asker *a, const struct job *job, const struct engine *engine, int is_iterating, size_t cold,
                size_t warm)
{
    size_t runs = job->bench->runs;

    *a = (struct asker){.job = *job, .engine = engine, .is_iterating = is_iterating};
    snprintf(a->name, sizeof a->name, "%s%s", engine->name, !engine->iterate ? "" : is_iterating ? " it." : " get");
    series_init(&a->cold, runs, cold);
    series_init(&a->calls, runs, cold);
    series_init(&a->storage, runs, cold);
    series_init(&a->own_reads, runs, cold);
    series_init(&a->own_bytes, runs, cold);
    series_init(&a->warm, runs, warm);
}

void asker_fini(struct asker *a)
{
    free(a->cold.value);
    free(a->calls.value);
    free(a->storage.value);
    free(a->own_reads.value);
    free(a->own_bytes.value);
    free(a->warm.value);
}

struct question {
    const struct asker *asker;
    const struct probes *probes;
    size_t first, n; /* which of them */
    uint8_t *values; /* room for an answer */
};

/* Returns the seconds that the answer took. */
static double ask(const struct question *q, void *db, size_t i)
{
    const struct asker *a = q->asker;
    double start = bench_now();
    size_t found = a->is_iterating ? a->engine->iterate(db, q->probes->keys[i], q->values)
                                   : a->engine->get(db, q->probes->keys[i], q->values);
    double took = bench_now() - start;

    probes_check(q->probes, a->job.data, i, q->values, found, a->engine->name);
    return took;
}

static void cold_body(const void *arg, struct outcome *out)
{
    const struct question *q = arg;
    const struct asker *a = q->asker;
    struct meter meter;

    meter_start(&meter);
    void *db = a->engine->open(&a->job);
    ask(q, db, q->first);
    meter_stop(&meter, out);
    a->engine->close(db, out);
}

static void warm_body(const void *arg, struct outcome *out)
{
    const struct question *q = arg;
    const struct asker *a = q->asker;

    tree_read(a->job.path);
    void *db = a->engine->open(&a->job);
    /* The first half is not timed: it fills the caches that the handle has. */
    for (size_t i = 0; i < q->n; i++)
        ask(q, db, q->first + i);
    for (size_t i = 0; i < q->n; i++)
        out->sample[i] = ask(q, db, q->first + q->n + i);
    a->engine->close(db, out);
}

static struct question question_make(const struct asker *a, const struct probes *p, size_t first, size_t n)
{
    if (first + n > p->n)
        bench_die("%zu probes are too few", p->n);
    return (struct question){.asker = a,
                             .probes = p,
                             .first = first,
                             .n = n,
                             .values = bench_grow(NULL, a->job.data->epochs * a->job.data->value_size)};
}

void asker_run_cold(struct asker *a, const struct probes *p, size_t run)
{
    struct question q = question_make(a, p, run * a->cold.each, a->cold.each);

    for (size_t i = 0; i < a->cold.each; i++, q.first++) {
        struct outcome out;
        size_t at = run * a->cold.each + i;
        tree_evict(a->job.path);
        run_process(a->name, cold_body, &q, &out);
        a->cold.value[at] = out.wall;
        a->calls.value[at] = out.calls_read;
        a->storage.value[at] = out.storage_read;
        a->own_reads.value[at] = out.library_reads;
        a->own_bytes.value[at] = out.library_bytes_read;
    }
    free(q.values);
}

void asker_run_warm(struct asker *a, const struct probes *p, size_t run)
{
    struct question q = question_make(a, p, run * 2 * a->warm.each, 2 * a->warm.each);
    struct outcome out;

    q.n = a->warm.each;
    run_process(a->name, warm_body, &q, &out);
    memcpy(a->warm.value + run * a->warm.each, out.sample, a->warm.each * sizeof *out.sample);
    free(q.values);
}
