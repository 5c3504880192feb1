/* Ranges of keys, by either partitioner: what 100 neighbouring keys of an epoch take to read, in a directory of 256
 * partitions, and what it takes to write it. The epoch is placed by the one before: it is too large to be held back. */
#include <string.h>
#include <deltafs/deltafs.h>
#include "bench_contest.h"
#include "bench_help.h"
#include "bench_sections.h"

#define EPOCHS     2
#define PARTITIONS "256"
#define KEYS       100 /* of a range */
#define RANGES     10

enum { BY_RANGE, BY_HASH, WAYS };

struct ranging {
    const struct bench *bench;
    const struct dataset *data;
    const char *path, *partitioner;
    uint64_t seed;
};

static void must(int status, const deltafs_dir *d)
{
    if (status != DELTAFS_OK)
        bench_die("ranges: %s", deltafs_errmsg(d));
}

static void write_body(const void *arg, struct outcome *out)
{
    const struct ranging *r = arg;
    const struct dataset *data = r->data;
    deltafs_options *o = ours_options(r->bench, r->bench->memory, data->schema);
    struct meter meter;
    deltafs_dir *d;

    must(deltafs_options_set(o, "partitioner", r->partitioner), NULL);
    must(deltafs_options_set(o, "partitions", PARTITIONS), NULL);
    meter_start(&meter);
    must(deltafs_create(r->path, o, &d), NULL);
    for (size_t e = 0; e < data->epochs; e++) {
        must(deltafs_append_many(d, data->n, data->epoch[e].keys, 8, data->epoch[e].values, data->value_size,
                                 data->value_size),
             d);
        must(deltafs_epoch_end(d, data->epoch[e].label), d);
    }
    must(deltafs_close(d), NULL);
    meter_stop(&meter, out);
    deltafs_options_destroy(o);
}

/* Each range cold, with opening; the keys are 0 .. n - 1. */
static void read_body(const void *arg, struct outcome *out)
{
    const struct ranging *r = arg;
    uint64_t seed = r->seed, label = r->data->epoch[EPOCHS - 1].label;
    const struct deltafs_range epoch = {label, label};
    const struct deltafs_arrays none = {.struct_size = sizeof none};
    deltafs_options *o = ours_options(r->bench, r->bench->memory, NULL);

    for (int i = 0; i < RANGES; i++) {
        struct deltafs_io_stat io = {.struct_size = sizeof io};
        uint64_t low = random_below(&seed, r->data->n - KEYS);
        size_t n = 0;
        deltafs_dir *d;
        tree_evict(r->path);
        double start = bench_now();
        must(deltafs_open(r->path, o, &d), NULL);
        must(deltafs_scan_range_many(d, low, low + KEYS - 1, &epoch, &none, &n), d);
        out->sample[out->samples++] = bench_now() - start;
        if (n != KEYS)
            bench_die("ranges: by %s: %zu records instead of %d", r->partitioner, n, KEYS);
        must(deltafs_io_stat(d, &io), d);
        out->library_reads += (double)io.reads;
        must(deltafs_close(d), NULL);
    }
    deltafs_options_destroy(o);
}

void section_ranges(const struct bench *b, struct table *t)
{
    static const char *const partitioner[WAYS] = {"range", "hash"};
    double put[WAYS][RUNS_MAX], reads[WAYS][RUNS_MAX], ms[WAYS][RUNS_MAX];
    char path[256];
    struct dataset data;

    data_make(&data, ID_DENSE, EPOCHS, b->is_quick ? 1000000 : 3000000, 40);
    bench_say("ranges: %s", data.name);
    bench_text(path, "%s/ranges", b->scratch);
    for (unsigned run = 0; run < b->runs; run++)
        for (int way = 0; way < WAYS; way++) {
            const struct ranging r = {b, &data, path, partitioner[way], run};
            struct outcome written, read;
            run_process("writing by ranges", write_body, &r, &written);
            run_process("reading ranges", read_body, &r, &read);
            tree_remove(path);
            put[way][run] = 1e9 * (written.user + written.sys) / (double)data_records(&data);
            reads[way][run] = read.library_reads / RANGES;
            ms[way][run] = 1e3 * percentile(read.sample, read.samples, 0.5);
        }
    table_begin(t, "range of 100 keys, 256 partitions: reads from a fresh process", "reads a range", LESS);
    table_row(t, data.name, spread_of(reads[BY_RANGE], b->runs), "partitioner=hash", spread_of(reads[BY_HASH], b->runs),
              (struct target){BY_MEDIAN, 0.02});
    table_begin(t, "range of 100 keys, 256 partitions: cold, with opening", "ms", LESS);
    table_row(t, data.name, spread_of(ms[BY_RANGE], b->runs), "partitioner=hash", spread_of(ms[BY_HASH], b->runs),
              (struct target){BY_MEDIAN, 0.1});
    table_begin(t, "put, 256 partitions: processor time", "ns a record", LESS);
    table_row(t, data.name, spread_of(put[BY_RANGE], b->runs), "partitioner=hash", spread_of(put[BY_HASH], b->runs),
              (struct target){BY_MEDIAN, 1.1});
    data_free(&data);
}
