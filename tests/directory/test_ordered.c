/* Ordered scans: ranges of keys against a sorted list of all records, what they read, and damage. */
#include <malloc.h>
#include "directory/format/directory_format.h"
#include "io/io.h"
#include "unit_help.h"

/* ---- The oracle ---- */

static int compare_records(const void *a, const void *b)
{
    const struct model_record *x = a, *y = b;

    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* All records by epoch, key and order of appending. */
static void sort_model(struct model *m)
{
    qsort(m->record, m->count, sizeof *m->record, compare_records);
    m->is_sorted = 0;
}

struct query {
    struct model *model;
    uint64_t low, high;
    struct deltafs_range epochs;
    int may_miss; /* records */
    size_t at, count;
};

static int is_wanted(const struct query *q, const struct model_record *r)
{
    return r->key >= q->low && r->key <= q->high && r->label >= q->epochs.first && r->label <= q->epochs.last;
}

/* The next wanted record of the list. */
static int next_record(const struct deltafs_record *got, void *arg)
{
    struct query *q = arg;
    const struct model_record *r = q->model->record;

    for (; q->at < q->model->committed; q->at++) {
        if (!is_wanted(q, &r[q->at]))
            continue;
        int is_it = r[q->at].key == got->key && r[q->at].label == got->label && model_is_value(&r[q->at], got);
        CHECK(is_it || q->may_miss);
        if (is_it)
            break;
    }
    CHECK(q->at < q->model->committed);
    q->at++;
    q->count++;
    return 0;
}

static void check_end(struct query *q)
{
    for (; q->at < q->model->committed && !q->may_miss; q->at++)
        CHECK(!is_wanted(q, &q->model->record[q->at]));
}

static struct query query_of(struct model *m, uint64_t low, uint64_t high)
{
    return (struct query){.model = m, .low = low, .high = high, .epochs = {0, UINT64_MAX}};
}

/* By calls of a function. */
static size_t check_scan(struct query q, deltafs_dir *d)
{
    int stopped = 1;

    CHECK_CALL(d, deltafs_scan_range(d, q.low, q.high, &q.epochs, next_record, &q, &stopped), DELTAFS_OK);
    CHECK_IS(stopped, 0);
    check_end(&q);
    return q.count;
}

/* By an iterator, with other calls on the same handle between its steps. */
static void check_iter(struct query q, deltafs_dir *d)
{
    const struct deltafs_record *got;
    deltafs_iter *iter = NULL;
    deltafs_records *same = NULL;

    CHECK_CALL(d, deltafs_iter_open(d, q.low, q.high, &q.epochs, &iter), DELTAFS_OK);
    for (;;) {
        CHECK_CALL(d, deltafs_iter_next(iter, &got), DELTAFS_OK);
        if (!got)
            break;
        if (q.count % 512 == 0) {
            CHECK_CALL(d, deltafs_get(d, got->key ^ q.count, NULL, &same), same ? DELTAFS_OK : DELTAFS_ERR_NOT_FOUND);
            deltafs_records_destroy(same);
            same = NULL;
        }
        next_record(got, &q);
    }
    CHECK_CALL(d, deltafs_iter_next(iter, &got), DELTAFS_OK);
    CHECK(got == NULL);
    CHECK_IS(deltafs_iter_close(iter), DELTAFS_OK);
    check_end(&q);
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void check_ranges(struct model *m, const char *path, struct rng *r, int n)
{
    deltafs_dir *d = unit_open(path);

    sort_model(m);
    CHECK_IS(check_scan(query_of(m, 0, UINT64_MAX), d), m->committed);
    check_iter(query_of(m, 0, UINT64_MAX), d);
    check_scan(query_of(m, 0, 0), d);
    check_scan(query_of(m, UINT64_MAX, UINT64_MAX), d);
    CHECK_IS(check_scan(query_of(m, 1, 0), d), 0);
    CHECK_IS(check_scan(query_of(m, UINT64_MAX, 0), d), 0);
    for (int i = 0; i < n && m->committed > 0; i++) {
        /* The ends are keys, or beside them. */
        uint64_t ends[2];
        for (int k = 0; k < 2; k++)
            ends[k] = m->record[rng_below(r, m->committed)].key + rng_below(r, 3) - 1;
        qsort(ends, 2, sizeof ends[0], compare_keys);
        struct query q = query_of(m, ends[0], i % 3 ? ends[1] : ends[0] + rng_below(r, 100));
        if (i % 4 == 0)
            q.epochs = (struct deltafs_range){rng_below(r, 4), 1 + rng_below(r, 5)};
        check_scan(q, d);
        if (i % 4 == 1)
            check_iter(q, d);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* ---- Answers ---- */

static void test_random(void **state)
{
    static const struct {
        const char *partitions, *value_size, *layout, *memory, *block;
        uint32_t records;
        const char *partitioner;
    } cases[] = {
        {"1", "any", "partitioned", "64M", "4K", 6000, "hash"},
        {"3", "12", "partitioned", "64M", "16K", 9000, "hash"},
        {"40", "any", "partitioned", "64M", "4K", 6000, "hash"}, /* more than are kept open otherwise */
        {"3", "any", "local", "64M", "4K", 5000, "hash"},
        {"40", "12", "local", "64M", "4K", 5000, "hash"},
        {"2", "0", "partitioned", "8M", "64K", 300000, "hash"}, /* several segments */
        {"3", "any", "partitioned", "64M", "4K", 5000, "range"},
        {"40", "12", "partitioned", "64M", "4K", 5000, "range"},
        {"7", "any", "local", "64M", "4K", 5000, "range"},
    };
    struct rng r = rng_init(331);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct model m = {0};
        const char *path = unit_path("random"), *size = cases[i].value_size;
        int is_large = cases[i].records > 100000;
        deltafs_dir *d = unit_create(path, unit_options("partitions", cases[i].partitions, "value_size", size, "layout",
                                                        cases[i].layout, "memory", cases[i].memory, "block",
                                                        cases[i].block, "partitioner", cases[i].partitioner, NULL));
        for (uint64_t epoch = 0; epoch < (is_large ? 1 : 5); epoch++) {
            enum key_kind kind = is_large ? KEYS_SPARSE : (enum key_kind)((i + epoch) % KEYS_KINDS);
            int64_t bytes = strcmp(size, "any") == 0 ? -1 : atoll(size);
            model_append_some(&m, d, &r, kind, epoch == 3 ? 0 : cases[i].records, bytes);
            model_append_some(&m, d, &r, KEYS_ENDS, epoch == 3 ? 0 : 40, bytes);
            model_end_epoch(&m, d, epoch);
        }
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        check_ranges(&m, path, &r, is_large ? 3 : 40);
        unit_remove(path);
        model_fini(&m);
    }
}

/* More records of one key than a leaf has otherwise, and more bytes than a portion has. */
static void test_one_giant_key(void **state)
{
    struct rng r = rng_init(332);
    struct model m = {0};
    const char *path = unit_path("giant");
    deltafs_dir *d = unit_create(path, unit_options("partitions", "2", "value_size", "8", NULL));

    (void)state;
    for (uint32_t i = 0; i < 60000; i++)
        CHECK_CALL(d, model_append(&m, d, i % 6 ? 500 : rng_below(&r, 1000), 8), DELTAFS_OK);
    model_end_epoch(&m, d, 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    check_ranges(&m, path, &r, 10);
    model_fini(&m);
}

/* Streams share the memory: with as little as a reader can have, portions are as short as they get. */
static void test_little_memory(void **state)
{
    struct rng r = rng_init(333);
    struct model m = {0};
    const char *path = unit_path("little");
    deltafs_options *o = unit_options("memory", "8M", NULL);
    deltafs_dir *d = unit_create(path, unit_options("partitions", "200", "value_size", "500", NULL));

    (void)state;
    model_append_some(&m, d, &r, KEYS_DENSE, 20000, 500);
    model_end_epoch(&m, d, 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    sort_model(&m);
    CHECK_IS(deltafs_open(path, o, &d), DELTAFS_OK);
    CHECK_IS(check_scan(query_of(&m, 0, UINT64_MAX), d), 20000);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    deltafs_options_destroy(o);
    model_fini(&m);
}

static uint64_t bytes_read(deltafs_dir *d, uint64_t *reads)
{
    struct deltafs_io_stat io = {.struct_size = sizeof io};

    CHECK_CALL(d, deltafs_io_stat(d, &io), DELTAFS_OK);
    *reads = io.reads;
    return io.bytes_read;
}

/* A few values are far longer than all others, some of them with one key: a portion ends early there. What is held
 * meanwhile is bounded by what is gathered at once, and by the option memory, not by the average size. */
static void test_uneven_sizes(void **state)
{
    enum { LONG = 60, SAME = 30, SHORT = 60000 };
    const struct deltafs_record *record;
    struct model m = {0};
    const char *path = unit_path("uneven");
    deltafs_options *o = unit_options("memory", "8M", NULL);
    deltafs_dir *d = unit_create(path, unit_options("partitions", "2", "value_size", "any", NULL));
    deltafs_iter *iter;
    uint64_t reads;
    size_t most = 0;

    (void)state;
    for (uint32_t i = 0; i < LONG; i++)
        CHECK_CALL(d, model_append(&m, d, i < SAME ? 7 : i, 1 << 20), DELTAFS_OK);
    for (uint32_t i = 0; i < SHORT; i++)
        CHECK_CALL(d, model_append(&m, d, LONG + i, 8), DELTAFS_OK);
    model_end_epoch(&m, d, 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    sort_model(&m);
    CHECK_IS(deltafs_open(path, o, &d), DELTAFS_OK);
    CHECK_IS(check_scan(query_of(&m, 0, UINT64_MAX), d), LONG + SHORT);
    CHECK(bytes_read(d, &reads) < (uint64_t)3 * LONG << 20); /* each stream gathers too much once */
    check_iter(query_of(&m, 0, UINT64_MAX), d);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);

    const struct mallinfo2 before = mallinfo2();
    CHECK_IS(deltafs_open(path, o, &d), DELTAFS_OK);
    CHECK_CALL(d, deltafs_iter_open(d, 0, UINT64_MAX, NULL, &iter), DELTAFS_OK);
    do {
        const struct mallinfo2 now = mallinfo2();
        size_t held = now.uordblks + now.hblkhd - before.uordblks - before.hblkhd;
        most = held > most ? held : most;
        CHECK_CALL(d, deltafs_iter_next(iter, &record), DELTAFS_OK);
    } while (record && record->key < LONG);
    CHECK(most < (size_t)64 << 20);
    CHECK_IS(deltafs_iter_close(iter), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    deltafs_options_destroy(o);
    unit_remove(path);
    model_fini(&m);
}

/* All values are longer than a stream's share of the memory: each is read once, also of keys that have many. */
static void test_long_values(void **state)
{
    enum { RECORDS = 200, SIZE = 200000 };
    struct model m = {0};
    const char *path = unit_path("long");
    deltafs_options *o = unit_options("memory", "8M", NULL);
    deltafs_dir *d = unit_create(path, unit_options("partitions", "40", "value_size", "200000", NULL));
    uint64_t reads;

    (void)state;
    for (uint32_t i = 0; i < RECORDS; i++)
        CHECK_CALL(d, model_append(&m, d, i % 8 ? i : 7, SIZE), DELTAFS_OK);
    model_end_epoch(&m, d, 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    sort_model(&m);
    CHECK_IS(deltafs_open(path, o, &d), DELTAFS_OK);
    CHECK_IS(check_scan(query_of(&m, 0, UINT64_MAX), d), RECORDS);
    CHECK(bytes_read(d, &reads) < (uint64_t)RECORDS * SIZE * 11 / 10);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    deltafs_options_destroy(o);
    unit_remove(path);
    model_fini(&m);
}

/* The same in many streams, which share little memory, so that portions end early all the time: also within one key,
 * whose records are in several leaves. */
static void test_uneven_streams(void **state)
{
    struct rng r = rng_init(337);

    (void)state;
    for (int run = 0; run < 2; run++) {
        struct model m = {0};
        const char *path = unit_path("streams");
        deltafs_options *o = unit_options("memory", "8M", NULL);
        deltafs_dir *d =
            unit_create(path, unit_options("partitions", run ? "150" : "3", "value_size", "any", "memory", "8M", NULL));
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            for (uint32_t i = 0; i < 9000; i++) {
                uint64_t key = i % 3 == 0 ? 500 : rng_below(&r, 6000);
                uint64_t size = rng_below(&r, 20) == 0 ? rng_below(&r, 60000) : rng_below(&r, 50);
                CHECK_CALL(d, model_append(&m, d, key, (uint32_t)size), DELTAFS_OK);
            }
            model_end_epoch(&m, d, epoch);
        }
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        sort_model(&m);
        CHECK_IS(deltafs_open(path, o, &d), DELTAFS_OK);
        CHECK_IS(check_scan(query_of(&m, 0, UINT64_MAX), d), m.committed);
        check_iter(query_of(&m, 0, UINT64_MAX), d);
        check_iter(query_of(&m, 500, 500), d);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        deltafs_options_destroy(o);
        unit_remove(path);
        model_fini(&m);
    }
}

/* ---- Keys of bytes ---- */

static int compare_names(const void *a, const void *b)
{
    const struct model_record *x = a, *y = b;
    uint32_t size = x->name_size < y->name_size ? x->name_size : y->name_size;
    int order = x->label != y->label ? (x->label < y->label ? -1 : 1) : memcmp(x->name, y->name, size);

    if (order == 0 && x->name_size != y->name_size)
        order = x->name_size < y->name_size ? -1 : 1;
    return order != 0 ? order : x->serial < y->serial ? -1 : x->serial > y->serial;
}

struct names {
    struct model *model;
    size_t at, end;
};

static int next_name(const struct deltafs_record *got, void *arg)
{
    struct names *n = arg;
    const struct model_record *r = &n->model->record[n->at];

    CHECK(n->at++ < n->end);
    CHECK(got->label == r->label && got->key_size == r->name_size);
    CHECK(memcmp(got->key_bytes, r->name, r->name_size) == 0 && model_is_value(r, got));
    return 0;
}

static int count_record(const struct deltafs_record *record, void *arg)
{
    (void)record;
    ++*(int *)arg;
    return 0;
}

/* More records than fit into the memory, also of one key: the epochs are read several times. */
static void test_names(void **state)
{
    enum { NAMES = 3000, RECORDS = 90000 };
    static char names[NAMES][12];
    struct rng r = rng_init(336);
    struct model m = {.is_bytes = 1};
    const char *path = unit_path("names");
    deltafs_options *o = unit_options("memory", "8M", NULL);
    deltafs_dir *d = unit_create(path, unit_options("keys", "bytes", "partitions", "3", NULL));
    const struct deltafs_record *record;
    deltafs_iter *iter = NULL;
    int stopped = 0;

    (void)state;
    for (int i = 0; i < NAMES; i++)
        snprintf(names[i], sizeof names[i], "%llx", (unsigned long long)rng_next(&r) >> (24 + 8 * (i % 4)));
    for (uint64_t label = 1; label < 3; label++) {
        for (uint32_t i = 0; i < RECORDS / label / label; i++) {
            const char *name = names[i % 5 > 1 && label == 1 ? 0 : rng_below(&r, NAMES)];
            CHECK_CALL(d, model_append_bytes(&m, d, name, strlen(name), (uint32_t)rng_below(&r, 20)), DELTAFS_OK);
        }
        model_end_epoch(&m, d, label);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    qsort(m.record, m.count, sizeof *m.record, compare_names);
    CHECK_IS(deltafs_open(path, o, &d), DELTAFS_OK);
    struct names n = {&m, 0, m.count};
    CHECK_CALL(d, deltafs_scan_range_bytes(d, NULL, 0, NULL, 0, NULL, next_name, &n, NULL), DELTAFS_OK);
    CHECK_IS(n.at, m.count);
    for (int i = 0; i < 5; i++) {
        const char *ends[2] = {names[rng_below(&r, NAMES)], names[rng_below(&r, NAMES)]};
        int is_empty = strcmp(ends[0], ends[1]) > 0;
        n = (struct names){&m, 0, 0};
        while (n.end < m.count && m.record[n.end].label == 1 && strcmp(m.record[n.end].name, ends[1]) <= 0)
            n.end++;
        while (n.at < n.end && strcmp(m.record[n.at].name, ends[0]) < 0)
            n.at++;
        CHECK_CALL(d,
                   deltafs_scan_range_bytes(d, ends[0], strlen(ends[0]), ends[1], strlen(ends[1]),
                                            &(struct deltafs_range){1, 1}, next_name, &n, NULL),
                   DELTAFS_OK);
        CHECK(n.at == n.end || is_empty);
    }
    CHECK_CALL(d, deltafs_iter_open_bytes(d, names[0], strlen(names[0]), NULL, 0, NULL, &iter), DELTAFS_OK);
    CHECK_CALL(d, deltafs_iter_next(iter, &record), DELTAFS_OK);
    CHECK(record && record->key_size == strlen(names[0]) && memcmp(record->key_bytes, names[0], record->key_size) == 0);
    CHECK_IS(deltafs_iter_close(iter), DELTAFS_OK);
    CHECK_CALL(d, deltafs_iter_open_bytes(d, names, 256, NULL, 0, NULL, &iter), DELTAFS_ERR_INVALID);
    CHECK_CALL(d, deltafs_iter_open_bytes(d, names, 0, NULL, 0, NULL, &iter), DELTAFS_ERR_INVALID);
    CHECK_CALL(d, deltafs_scan_range_bytes(d, NULL, 0, names, 256, NULL, next_name, &n, &stopped), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);

    /* One damaged block is met in each pass, and is one damage. */
    char log[PATH_ROOM];
    size_t size;
    io_path_in(log, path, LOG_NAME_DATA, 1, 1);
    uint8_t *bytes = unit_load(log, &size);
    unit_poke(log, 3000, (uint8_t)~bytes[3000]);
    free(bytes);
    int count = 0;
    CHECK_IS(deltafs_open(path, o, &d), DELTAFS_OK);
    CHECK_CALL(d, deltafs_scan_range_bytes(d, NULL, 0, NULL, 0, NULL, count_record, &count, NULL), DELTAFS_ERR_DAMAGED);
    CHECK(count > (int)m.count / 2 && !strstr(deltafs_errmsg(d), "more damage"));
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    deltafs_options_destroy(o);
    model_fini(&m);
}

/* ---- What is read ---- */

/* Of 100,000 records in 2 partitions: once they are open, a range of 50 keys takes from each a leaf or two, read at
 * once, and a block or two. */
static void test_reads(void **state)
{
    enum { RECORDS = 100000 };
    struct rng r = rng_init(334);
    struct model m = {0};
    const char *path = unit_path("reads");
    deltafs_dir *d =
        unit_create(path, unit_options("partitions", "2", "value_size", "40", "codec", "none", "block", "16K", NULL));
    uint64_t before, after;

    (void)state;
    for (uint64_t i = 0; i < RECORDS; i++)
        CHECK_CALL(d, model_append(&m, d, i * 7919 % RECORDS, 40), DELTAFS_OK);
    model_end_epoch(&m, d, 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    sort_model(&m);
    d = unit_open(path);
    CHECK_IS(check_scan(query_of(&m, RECORDS, UINT64_MAX), d), 0);
    for (int i = 0; i < 20; i++) {
        uint64_t low = rng_below(&r, RECORDS - 50), was = bytes_read(d, &before);
        CHECK_IS(check_scan(query_of(&m, low, low + 49), d), 50);
        uint64_t now = bytes_read(d, &after);
        CHECK(after - before <= 2 * (1 + 2));
        CHECK(now - was <= 2 * (2 * 10000 + 2 * 17000));
        was = bytes_read(d, &before);
        CHECK_IS(check_scan(query_of(&m, RECORDS + low, UINT64_MAX), d), 0);
        CHECK_IS(bytes_read(d, &after) - was, 0);
        CHECK_IS(after, before);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_fini(&m);
}

/* ---- Damage ---- */

static size_t check_damaged(struct query q, deltafs_dir *d, const char *file)
{
    q.may_miss = 1;
    CHECK_CALL(d, deltafs_scan_range(d, q.low, q.high, NULL, next_record, &q, NULL), DELTAFS_ERR_DAMAGED);
    CHECK(strstr(deltafs_errmsg(d), file) != NULL);
    return q.count;
}

/* A damaged block or leaf hides its own records only, and only from ranges that touch it; a lost log those of its
 * partition. */
static void test_damage(void **state)
{
    static const char *const logs[] = {LOG_NAME_DATA, LOG_NAME_INDEX};
    struct rng r = rng_init(335);
    struct model m = {0};
    char log[PATH_ROOM];
    size_t n;

    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        const char *path = unit_path("damage");
        deltafs_dir *d = unit_create(
            path, unit_options("partitions", "3", "value_size", "16", "codec", "none", "block", "4K", NULL));
        m = (struct model){0};
        for (uint64_t epoch = 1; epoch < 3; epoch++) {
            model_append_some(&m, d, &r, KEYS_SPARSE, 20000, 16);
            model_end_epoch(&m, d, epoch);
        }
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        sort_model(&m);
        io_path_in(log, path, logs[kind], 1, 1);
        uint8_t *bytes = unit_load(log, &n);
        unit_poke(log, 3000, (uint8_t)~bytes[3000]); /* in the first block or leaf: of low keys */
        free(bytes);
        d = unit_open(path);
        size_t whole = check_damaged(query_of(&m, 0, UINT64_MAX), d, log);
        CHECK(whole < m.committed && whole > m.committed * 9 / 10);
        check_scan(query_of(&m, UINT64_MAX / 2, UINT64_MAX), d);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        unit_save(log, "gone", 4);
        d = unit_open(path);
        whole = check_damaged(query_of(&m, 0, UINT64_MAX), d, log);
        CHECK(whole < m.committed * 3 / 4 && whole > m.committed / 2);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        unit_remove(path);
        model_fini(&m);
    }
}

/* ---- Calls ---- */

static int stop_at_once(const struct deltafs_record *record, void *arg)
{
    (void)record;
    ++*(int *)arg;
    return 77;
}

static int read_within(const struct deltafs_record *record, void *arg)
{
    deltafs_records *got = NULL;
    deltafs_iter *iter = NULL;

    CHECK_IS(deltafs_iter_open(arg, 0, 1, NULL, &iter), DELTAFS_ERR_MODE);
    CHECK(iter == NULL);
    return deltafs_get(arg, record->key, NULL, &got);
}

static void test_into_arrays(void **state)
{
    uint64_t keys[10] = {0}, labels[10];
    struct deltafs_arrays to = {.struct_size = sizeof to,
                                .capacity = 9,
                                .keys = keys,
                                .key_stride = sizeof keys[0],
                                .labels = labels,
                                .label_stride = sizeof labels[0]};
    const char *path = unit_path("arrays");
    size_t count = 0;
    deltafs_dir *d = unit_create(path, unit_options("partitions", "3", "value_size", "1", NULL));

    (void)state;
    for (uint64_t label = 1; label <= 2; label++) {
        for (uint64_t key = 0; key < 50; key++)
            CHECK_CALL(d, deltafs_append(d, 7 * key % 50, "v", 1), DELTAFS_OK);
        CHECK_CALL(d, deltafs_epoch_end(d, label), DELTAFS_OK);
    }
    CHECK_CALL(d, deltafs_scan_range_many(d, 0, 9, NULL, &to, &count), DELTAFS_ERR_MODE);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    CHECK_CALL(d, deltafs_scan_range_many(d, 20, 24, NULL, &to, &count), DELTAFS_OK);
    CHECK_IS(count, 10);
    for (uint64_t i = 0; i < 9; i++)
        CHECK(keys[i] == 20 + i % 5 && labels[i] == 1 + i / 5);
    CHECK_IS(keys[9], 0);
    CHECK_CALL(d, deltafs_scan_range_many(d, 24, 20, NULL, &to, &count), DELTAFS_OK);
    CHECK_IS(count, 0);
    CHECK_CALL(d, deltafs_scan_range_many(d, 20, 24, NULL, NULL, &count), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void test_calls(void **state)
{
    const char *path = unit_path("calls");
    deltafs_dir *d = unit_create(path, unit_options("partitions", "40", NULL));
    const struct deltafs_record *record;
    deltafs_iter *iter = NULL;
    int stopped = 0, calls = 0;

    (void)state;
    CHECK_CALL(d, deltafs_scan_range(d, 0, 1, NULL, stop_at_once, &calls, &stopped), DELTAFS_ERR_MODE);
    for (uint64_t i = 0; i < 100; i++)
        CHECK_CALL(d, deltafs_append(d, i, "v", 1), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    CHECK_CALL(d, deltafs_scan_range(d, 0, 99, NULL, NULL, NULL, NULL), DELTAFS_ERR_INVALID);
    CHECK_CALL(d, deltafs_iter_open(d, 0, 99, NULL, NULL), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_iter_next(NULL, &record), DELTAFS_ERR_INVALID);
    CHECK_CALL(d, deltafs_scan_range(d, 0, 99, NULL, stop_at_once, &calls, &stopped), DELTAFS_OK);
    CHECK(stopped == 77 && calls == 1);
    CHECK_CALL(d, deltafs_scan_range(d, 0, 99, NULL, read_within, d, &stopped), DELTAFS_OK);
    CHECK_IS(stopped, DELTAFS_ERR_MODE);
    CHECK_CALL(d, deltafs_iter_open(d, 5, 99, NULL, &iter), DELTAFS_OK);
    CHECK_CALL(d, deltafs_iter_next(iter, NULL), DELTAFS_ERR_INVALID);
    CHECK_CALL(d, deltafs_refresh(d), DELTAFS_ERR_MODE);
    CHECK(strstr(deltafs_errmsg(d), "has an open iterator") != NULL);
    CHECK_CALL(d, deltafs_iter_next(iter, &record), DELTAFS_OK);
    CHECK(record && record->key == 5);
    CHECK_IS(deltafs_iter_close(iter), DELTAFS_OK);
    CHECK_IS(deltafs_iter_close(NULL), DELTAFS_OK);
    CHECK_CALL(d, deltafs_refresh(d), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_create(unit_path("texts"), unit_options("keys", "bytes", NULL));
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(unit_path("texts"));
    CHECK_CALL(d, deltafs_iter_open(d, 0, 99, NULL, &iter), DELTAFS_ERR_MODE);
    CHECK(strstr(deltafs_errmsg(d), "its keys are bytes") != NULL);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),        cmocka_unit_test(test_one_giant_key),
        cmocka_unit_test(test_little_memory), cmocka_unit_test(test_uneven_sizes),
        cmocka_unit_test(test_long_values),   cmocka_unit_test(test_uneven_streams),
        cmocka_unit_test(test_reads),         cmocka_unit_test(test_damage),
        cmocka_unit_test(test_calls),         cmocka_unit_test(test_into_arrays),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
