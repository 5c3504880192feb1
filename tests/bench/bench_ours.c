/* DeltaFS itself, through its public API alone. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs.h>
#include "bench_engine.h"
#include "bench_help.h"

#define WARM_RECORDS 1024

static void must(int status, const deltafs_dir *d, const char *what)
{
    if (status != DELTAFS_OK)
        bench_die("DeltaFS: %s: %s", what, deltafs_errmsg(d));
}

static void set(deltafs_options *o, const char *name, const char *value)
{
    must(deltafs_options_set(o, name, value), NULL, "options");
}

struct deltafs_options *ours_options(const struct bench *b, uint64_t memory, const char *schema)
{
    char text[256];
    deltafs_options *o;

    must(deltafs_options_create(&o), NULL, "options");
    set(o, "memory", bench_text(text, "%llu", (unsigned long long)memory));
    if (schema)
        set(o, "schema", schema);
    for (size_t i = 0; i < b->option_count; i++) {
        const char *equals = strchr(b->options[i], '=');
        set(o, bench_text(text, "%.*s", (int)(equals - b->options[i]), b->options[i]), equals + 1);
    }
    return o;
}

/* A small directory, written and thrown away, so that the code is in memory before the memory is measured; what that
 * leaves in malloc's hands is given back. */
static void ours_warm(const struct job *job, const deltafs_options *o)
{
    static const uint8_t zeros[WARM_RECORDS];
    char path[256];
    deltafs_dir *d;

    must(deltafs_create(bench_text(path, "%s.warm", job->path), o, &d), NULL, "create");
    must(deltafs_append_many(d, WARM_RECORDS, job->data->epoch[0].keys, 8, zeros, 0, job->data->value_size), d,
         "append");
    must(deltafs_epoch_end(d, 1), d, "end the epoch");
    must(deltafs_close(d), NULL, "close");
    tree_remove(path);
    malloc_trim(0);
}

static void ours_write(const struct job *job, struct outcome *out)
{
    const struct dataset *data = job->data;
    deltafs_options *o = ours_options(job->bench, job->memory, data->schema);
    struct deltafs_memory_stat memory = {.struct_size = sizeof memory};
    struct meter meter;
    deltafs_dir *d;

    ours_warm(job, o);
    meter_start(&meter);
    must(deltafs_create(job->path, o, &d), NULL, "create");
    for (size_t e = 0; e < data->epochs; e++) {
        must(deltafs_append_many(d, data->n, data->epoch[e].keys, 8, data->epoch[e].values, data->value_size,
                                 data->value_size),
             d, "append");
        must(deltafs_epoch_end(d, data->epoch[e].label), d, "end the epoch");
    }
    must(deltafs_memory_stat(d, &memory), d, "memory");
    must(deltafs_close(d), NULL, "close");
    meter_stop(&meter, out);
    out->library_peak = (double)memory.peak;
    deltafs_options_destroy(o);
}

struct ours_reader {
    deltafs_dir *dir;
    size_t value_size, epochs;
};

static void *ours_open(const struct job *job)
{
    struct ours_reader *r = bench_grow(NULL, sizeof *r);
    deltafs_options *o = ours_options(job->bench, job->memory, NULL);

    *r = (struct ours_reader){.value_size = job->data->value_size, .epochs = job->data->epochs};
    must(deltafs_open(job->path, o, &r->dir), NULL, "open");
    deltafs_options_destroy(o);
    return r;
}

static size_t ours_get(void *db, uint64_t key, uint8_t *values)
{
    struct ours_reader *r = db;
    deltafs_records *records;
    int status = deltafs_get(r->dir, key, NULL, &records);

    if (status == DELTAFS_ERR_NOT_FOUND)
        return 0;
    must(status, r->dir, "get");
    size_t n = records->count;
    for (size_t i = 0; i < n && i < r->epochs; i++)
        memcpy(values + i * r->value_size, records->record[i].value, r->value_size);
    deltafs_records_destroy(records);
    return n;
}

static void ours_close(void *db, struct outcome *out)
{
    struct ours_reader *r = db;
    struct deltafs_io_stat io = {.struct_size = sizeof io};

    must(deltafs_io_stat(r->dir, &io), r->dir, "file operations");
    out->library_reads = (double)io.reads;
    out->library_bytes_read = (double)io.bytes_read;
    must(deltafs_close(r->dir), NULL, "close");
    free(r);
}

const struct engine engine_ours = {
    .name = "ours", .write = ours_write, .open = ours_open, .get = ours_get, .close = ours_close};
