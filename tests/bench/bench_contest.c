#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include "bench_contest.h"
#include "bench_help.h"

void kv_key(char out[static KV_KEY], uint64_t id, size_t epoch)
{
    uint64_t high = htobe64(id);
    uint32_t low = htobe32((uint32_t)epoch);

    memcpy(out, &high, 8);
    memcpy(out + 8, &low, 4);
}

struct writing {
    const struct engine *engine;
    const struct job *job;
};

static void write_body(const void *arg, struct outcome *out)
{
    const struct writing *w = arg;

    w->engine->write(w->job, out);
}

void write_once(const struct engine *engine, const struct job *job, struct outcome *out)
{
    struct writing w = {engine, job};
    char what[256];

    tree_remove(job->path);
    /* What earlier runs and their removal left to be written must not be this run's to wait for. */
    tree_sync_system(job->bench->scratch);
    run_process(bench_text(what, "writing %s with %s", job->data->name, engine->name), write_body, &w, out);
    out->stored = (double)tree_bytes(job->path);
}

void contest_run(struct contest *c, const struct bench *b, const struct dataset *data,
                 const struct engine *const *engines, size_t n)
{
    char path[256];
    struct job job = {.bench = b, .data = data, .memory = b->memory};

    *c = (struct contest){.bench = b, .records = (double)data_records(data)};
    strcpy(c->label, data->name);
    for (size_t i = 0; i < n; i++) {
        if (!engines[i]->write)
            continue;
        c->engine[c->count] = engines[i];
        c->result[c->count++] = bench_grow(NULL, b->runs * sizeof **c->result);
    }
    job.path = bench_text(path, "%s/contest", b->scratch);
    if (c->count < 2)
        return; /* nobody to compete with */
    for (unsigned run = 0; run < b->runs; run++)
        for (size_t i = 0; i < c->count; i++)
            write_once(c->engine[i], &job, &c->result[i][run]);
    tree_remove(path);
}

void contest_fini(struct contest *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->result[i]);
}

struct spread contest_spread(const struct contest *c, size_t engine, figure_fn figure)
{
    double values[RUNS_MAX];

    for (unsigned run = 0; run < c->bench->runs; run++)
        values[run] = figure(&c->result[engine][run], c->records);
    return spread_of(values, c->bench->runs);
}

double figure_cpu(const struct outcome *out, double records)
{
    return (out->user + out->sys) * 1e9 / records;
}

double figure_user(const struct outcome *out, double records)
{
    return out->user * 1e9 / records;
}

double figure_sys(const struct outcome *out, double records)
{
    return out->sys * 1e9 / records;
}

double figure_wall(const struct outcome *out, double records)
{
    return out->wall * 1e9 / records;
}

double figure_stored(const struct outcome *out, double records)
{
    return out->stored / records;
}

double figure_memory(const struct outcome *out, double records)
{
    (void)records;
    return out->memory / (1 << 20);
}
