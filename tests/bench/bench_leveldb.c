/* LevelDB, set up for loading in bulk. Its write-ahead log and its compaction cannot be turned off. */
#include "config.h"
#include <stdlib.h>
#include <string.h>
#include "bench_engine.h"
#include "bench_help.h"

#if HAVE_LEVELDB
#include <leveldb/c.h>

#define BATCH      1000 /* records of a write; more gains nothing */
#define BLOOM_BITS 10
#define FILE_SIZE  (64u << 20) /* large tables: fewer files to open and to compact */

struct level {
    leveldb_t *db;
    leveldb_options_t *options;
    leveldb_filterpolicy_t *bloom;
    leveldb_cache_t *cache;
    leveldb_readoptions_t *read;
    leveldb_iterator_t *iterator;
    size_t value_size, epochs;
};

static void check(char *error, const char *what)
{
    if (error)
        bench_die("LevelDB: %s: %s", what, error);
}

static void level_start(struct level *l, const struct job *job)
{
    char *error = NULL;

    *l = (struct level){.value_size = job->data->value_size, .epochs = job->data->epochs};
    l->options = leveldb_options_create();
    l->bloom = leveldb_filterpolicy_create_bloom(BLOOM_BITS);
    l->cache = leveldb_cache_create_lru(job->memory);
    l->read = leveldb_readoptions_create();
    leveldb_options_set_create_if_missing(l->options, 1);
    /* Random floats do not get smaller by Snappy, and ours compresses nothing that does not: it would cost time only.
     */
    leveldb_options_set_compression(l->options, leveldb_no_compression);
    leveldb_options_set_write_buffer_size(l->options, job->memory);
    leveldb_options_set_max_file_size(l->options, FILE_SIZE);
    leveldb_options_set_filter_policy(l->options, l->bloom);
    leveldb_options_set_cache(l->options, l->cache);
    l->db = leveldb_open(l->options, job->path, &error);
    check(error, "open");
}

static void level_stop(struct level *l)
{
    leveldb_close(l->db);
    leveldb_readoptions_destroy(l->read);
    leveldb_options_destroy(l->options);
    leveldb_cache_destroy(l->cache);
    leveldb_filterpolicy_destroy(l->bloom);
}

/* Its way to make an epoch durable is a synced write of the last records. */
static void level_write_batch(struct level *l, leveldb_writebatch_t *batch, int is_synced)
{
    leveldb_writeoptions_t *options = leveldb_writeoptions_create();
    char *error = NULL;

    leveldb_writeoptions_set_sync(options, (uint8_t)is_synced);
    leveldb_write(l->db, options, batch, &error);
    check(error, "write");
    leveldb_writebatch_clear(batch);
    leveldb_writeoptions_destroy(options);
}

static void level_write(const struct job *job, struct outcome *out)
{
    const struct dataset *d = job->data;
    struct meter meter;
    struct level l;

    meter_start(&meter);
    level_start(&l, job);
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    for (size_t e = 0; e < d->epochs; e++) {
        for (size_t i = 0; i < d->n; i++) {
            char key[KV_KEY];
            kv_key(key, d->epoch[e].keys[i], e);
            leveldb_writebatch_put(batch, key, sizeof key, (const char *)d->epoch[e].values + i * d->value_size,
                                   d->value_size);
            if ((i + 1) % BATCH == 0 || i + 1 == d->n)
                level_write_batch(&l, batch, job->bench->is_synced && i + 1 == d->n);
        }
    }
    leveldb_writebatch_destroy(batch);
    level_stop(&l);
    meter_stop(&meter, out);
}

static void level_settle(const struct job *job)
{
    struct level l;

    level_start(&l, job);
    leveldb_compact_range(l.db, NULL, 0, NULL, 0);
    level_stop(&l);
}

static void *level_open(const struct job *job)
{
    struct level *l = bench_grow(NULL, sizeof *l);

    level_start(l, job);
    return l;
}

static size_t level_get(void *db, uint64_t key, uint8_t *values)
{
    struct level *l = db;
    size_t found = 0;

    for (size_t e = 0; e < l->epochs; e++) {
        char name[KV_KEY], *error = NULL;
        size_t size;
        kv_key(name, key, e);
        char *value = leveldb_get(l->db, l->read, name, sizeof name, &size, &error);
        check(error, "get");
        if (!value || size != l->value_size)
            continue;
        memcpy(values + found++ * l->value_size, value, size);
        leveldb_free(value);
    }
    return found;
}

static size_t level_iterate(void *db, uint64_t key, uint8_t *values)
{
    struct level *l = db;
    size_t found = 0, size;
    char name[KV_KEY], *error = NULL;

    if (!l->iterator)
        l->iterator = leveldb_create_iterator(l->db, l->read);
    kv_key(name, key, 0);
    for (leveldb_iter_seek(l->iterator, name, sizeof name); leveldb_iter_valid(l->iterator) && found < l->epochs;
         leveldb_iter_next(l->iterator)) {
        const char *at = leveldb_iter_key(l->iterator, &size);
        if (size != KV_KEY || memcmp(at, name, 8) != 0)
            break;
        const char *value = leveldb_iter_value(l->iterator, &size);
        if (size == l->value_size)
            memcpy(values + found++ * l->value_size, value, size);
    }
    leveldb_iter_get_error(l->iterator, &error);
    check(error, "iterate");
    return found;
}

static void level_close(void *db, struct outcome *out)
{
    struct level *l = db;

    (void)out;
    if (l->iterator)
        leveldb_iter_destroy(l->iterator);
    level_stop(l);
    free(l);
}

const struct engine engine_leveldb = {.name = "LevelDB",
                                      .write = level_write,
                                      .settle = level_settle,
                                      .open = level_open,
                                      .get = level_get,
                                      .iterate = level_iterate,
                                      .close = level_close};
#else
const struct engine engine_leveldb = {.name = "LevelDB"};
#endif
