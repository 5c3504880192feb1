/* RocksDB, set up for loading in bulk: no write-ahead log; memtables that are flushed in the background; with
 * compaction as it comes, or without any. */
#include "config.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench_engine.h"
#include "bench_help.h"

#if HAVE_ROCKSDB
#include <rocksdb/c.h>

#define BATCH      1000 /* records of a write; more gains nothing */
#define BLOOM_BITS 10
#define NEVER      (1 << 30)
#define OPEN_FILES 1000 /* with a limit, opening does not read every table's index first */
#define LOG_LEVEL  2    /* warnings */

struct rocks {
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_block_based_table_options_t *tables;
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read;
    rocksdb_iterator_t *iterator;
    size_t value_size, epochs;
};

static void check(char *error, const char *what)
{
    if (error)
        bench_die("RocksDB: %s: %s", what, error);
}

static void rocks_configure(struct rocks *r, const struct job *job, int is_compacted)
{
    *r = (struct rocks){.value_size = job->data->value_size, .epochs = job->data->epochs};
    r->options = rocksdb_options_create();
    r->tables = rocksdb_block_based_options_create();
    r->cache = rocksdb_cache_create_lru(job->memory);
    r->read = rocksdb_readoptions_create();
    rocksdb_block_based_options_set_filter_policy(r->tables, rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS));
    rocksdb_block_based_options_set_block_cache(r->tables, r->cache);
    rocksdb_options_set_block_based_table_factory(r->options, r->tables);
    rocksdb_options_set_create_if_missing(r->options, 1);
    rocksdb_options_set_compression(r->options, rocksdb_no_compression); /* random floats do not compress */
    rocksdb_options_increase_parallelism(r->options, (int)sysconf(_SC_NPROCESSORS_ONLN));
    /* A memtable is a vector, sorted when it is flushed: nobody reads while it fills, and that takes less than
     * half of the skip list's time. One fills while the other, of the same size, is flushed. */
    rocksdb_options_set_write_buffer_size(r->options, job->memory);
    rocksdb_options_set_memtable_vector_rep(r->options);
    rocksdb_options_set_allow_concurrent_memtable_write(r->options, 0);
    rocksdb_options_set_max_open_files(r->options, OPEN_FILES);
    rocksdb_options_set_skip_stats_update_on_db_open(r->options, 1);
    rocksdb_options_set_skip_checking_sst_file_sizes_on_db_open(r->options, 1);
    rocksdb_options_set_info_log_level(r->options, LOG_LEVEL);
    if (is_compacted)
        return;
    rocksdb_options_set_disable_auto_compactions(r->options, 1);
    rocksdb_options_set_level0_slowdown_writes_trigger(r->options, NEVER);
    rocksdb_options_set_level0_stop_writes_trigger(r->options, NEVER);
}

static void rocks_stop(struct rocks *r)
{
    if (r->iterator)
        rocksdb_iter_destroy(r->iterator);
    rocksdb_close(r->db);
    rocksdb_readoptions_destroy(r->read);
    rocksdb_options_destroy(r->options);
    rocksdb_block_based_options_destroy(r->tables);
    rocksdb_cache_destroy(r->cache);
}

static void rocks_write_epoch(struct rocks *r, const struct dataset *d, size_t e, rocksdb_writeoptions_t *options)
{
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
    char *error = NULL;

    for (size_t i = 0; i < d->n; i++) {
        char key[KV_KEY];
        kv_key(key, d->epoch[e].keys[i], e);
        rocksdb_writebatch_put(batch, key, sizeof key, (const char *)d->epoch[e].values + i * d->value_size,
                               d->value_size);
        if ((i + 1) % BATCH != 0 && i + 1 != d->n)
            continue;
        rocksdb_write(r->db, options, batch, &error);
        check(error, "write");
        rocksdb_writebatch_clear(batch);
    }
    /* Waits, and syncs the tables: the epoch is durable then, as with ours. */
    rocksdb_flushoptions_set_wait(flush, 1);
    rocksdb_flush(r->db, flush, &error);
    check(error, "flush");
    rocksdb_flushoptions_destroy(flush);
    rocksdb_writebatch_destroy(batch);
}

static void rocks_write(const struct job *job, int is_compacted, struct outcome *out)
{
    struct meter meter;
    struct rocks r;
    char *error = NULL;

    meter_start(&meter);
    rocks_configure(&r, job, is_compacted);
    r.db = rocksdb_open(r.options, job->path, &error);
    check(error, "open");
    rocksdb_writeoptions_t *options = rocksdb_writeoptions_create();
    rocksdb_writeoptions_disable_WAL(options, 1);
    for (size_t e = 0; e < job->data->epochs; e++)
        rocks_write_epoch(&r, job->data, e, options);
    rocksdb_writeoptions_destroy(options);
    rocks_stop(&r);
    meter_stop(&meter, out);
}

static void rocks_write_only(const struct job *job, struct outcome *out)
{
    rocks_write(job, 0, out);
}

static void rocks_write_compacted(const struct job *job, struct outcome *out)
{
    rocks_write(job, 1, out);
}

static void rocks_settle(const struct job *job)
{
    struct rocks r;
    char *error = NULL;

    rocks_configure(&r, job, 1);
    r.db = rocksdb_open(r.options, job->path, &error);
    check(error, "open");
    rocksdb_compact_range(r.db, NULL, 0, NULL, 0);
    rocks_stop(&r);
}

static void *rocks_open(const struct job *job)
{
    struct rocks *r = bench_grow(NULL, sizeof *r);
    char *error = NULL;

    rocks_configure(r, job, 0);
    r->db = rocksdb_open_for_read_only(r->options, job->path, 0, &error);
    check(error, "open");
    return r;
}

static size_t rocks_get(void *db, uint64_t key, uint8_t *values)
{
    struct rocks *r = db;
    size_t found = 0, size;

    for (size_t e = 0; e < r->epochs; e++) {
        char name[KV_KEY], *error = NULL;
        kv_key(name, key, e);
        rocksdb_pinnableslice_t *slice = rocksdb_get_pinned(r->db, r->read, name, sizeof name, &error);
        check(error, "get");
        const char *value = slice ? rocksdb_pinnableslice_value(slice, &size) : NULL;
        if (value && size == r->value_size)
            memcpy(values + found++ * r->value_size, value, size);
        rocksdb_pinnableslice_destroy(slice);
    }
    return found;
}

static size_t rocks_iterate(void *db, uint64_t key, uint8_t *values)
{
    struct rocks *r = db;
    size_t found = 0, size;
    char name[KV_KEY], *error = NULL;

    if (!r->iterator)
        r->iterator = rocksdb_create_iterator(r->db, r->read);
    kv_key(name, key, 0);
    for (rocksdb_iter_seek(r->iterator, name, sizeof name); rocksdb_iter_valid(r->iterator) && found < r->epochs;
         rocksdb_iter_next(r->iterator)) {
        const char *at = rocksdb_iter_key(r->iterator, &size);
        if (size != KV_KEY || memcmp(at, name, 8) != 0)
            break;
        const char *value = rocksdb_iter_value(r->iterator, &size);
        if (size == r->value_size)
            memcpy(values + found++ * r->value_size, value, size);
    }
    rocksdb_iter_get_error(r->iterator, &error);
    check(error, "iterate");
    return found;
}

static void rocks_close(void *db, struct outcome *out)
{
    (void)out;
    rocks_stop(db);
    free(db);
}

const struct engine engine_rocksdb = {.name = "RocksDB flush-only",
                                      .write = rocks_write_only,
                                      .open = rocks_open,
                                      .get = rocks_get,
                                      .iterate = rocks_iterate,
                                      .close = rocks_close};
const struct engine engine_rocksdb_compacted = {.name = "RocksDB compacted",
                                                .write = rocks_write_compacted,
                                                .settle = rocks_settle,
                                                .open = rocks_open,
                                                .get = rocks_get,
                                                .iterate = rocks_iterate,
                                                .close = rocks_close};
#else
const struct engine engine_rocksdb = {.name = "RocksDB flush-only"};
const struct engine engine_rocksdb_compacted = {.name = "RocksDB compacted"};
#endif
