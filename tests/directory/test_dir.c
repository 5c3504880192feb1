/* Directories through the public API, against the model: what comes back must be what was appended, in order, whatever
 * the partitions, the memory, the sizes; and each error as the header has it. */
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>
#include "directory/format/directory_format.h"
#include "directory/format/partition.h"
#include "directory/format/index.h"
#include "directory/format/manifest.h"
#include "unit_help.h"

/* ---- Workloads ---- */

/* How many segments the epochs have, over all partitions: the least and the most. */
static void count_segments(const char *path, uint32_t *least, uint32_t *most)
{
    struct io io = io_default();
    struct manifest m;
    struct error e, tail = {0};

    *least = UINT32_MAX;
    *most = 0;
    CHECK_IS(manifest_read(&io, path, &m, &e), DELTAFS_OK);
    for (uint32_t p = 0; p < m.partitions; p++) {
        struct index_reader r;
        char log[PATH_ROOM];
        io_path_in(log, path, LOG_NAME_INDEX, p % BUCKET_COUNT, p);
        CHECK_IS(index_reader_open(&r, &io, log, p, m.uuid, (uint32_t)m.epoch_count, (uint32_t)m.epoch_count,
                                   m.tail_length, &tail, &e),
                 DELTAFS_OK);
        for (uint32_t epoch = 0; epoch < m.epoch_count; epoch++) {
            struct segment *s;
            uint32_t n;
            CHECK_IS(index_epoch(&r, epoch, &s, &n, &e), DELTAFS_OK);
            *least = n < *least ? n : *least;
            *most = n > *most ? n : *most;
        }
        CHECK_IS(index_reader_close(&r, &e), DELTAFS_OK);
    }
    manifest_fini(&m);
}

static void test_random_workloads(void **state)
{
    static const struct {
        const char *partitions, *value_size, *schema, *codec, *block;
        uint32_t records;
    } cases[] = {
        {"1", "8", "", "snappy", "4K", 3000},      {"1", "any", "", "snappy", "4K", 3000},
        {"1", "0", "", "snappy", "4K", 6000},      {"3", "40", "", "none", "256", 3000},
        {"3", "any", "", "none", "256", 3000},     {"3", "any", "x:f4,y:f8,n:u1", "snappy", "1M", 3000},
        {"300", "17", "", "snappy", "4K", 6000},   {"300", "any", "", "snappy", "64K", 3000},
        {"12", "3", "", "snappy", "4K", 5000},     {"7", "5000", "", "snappy", "4K", 500},
        {"2", "1048576", "", "snappy", "256", 12}, {"1", "3", "", "snappy", "256", 5000},
    };
    struct rng r = rng_init(61);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = unit_path("random");
        int64_t size = cases[i].schema[0]                        ? 13
                       : strcmp(cases[i].value_size, "any") == 0 ? -1
                                                                 : atoll(cases[i].value_size);
        struct model m = {0};
        deltafs_dir *d = unit_create(path, unit_options("memory", "512M", "partitions", cases[i].partitions,
                                                        "value_size", cases[i].value_size, "schema", cases[i].schema,
                                                        "codec", cases[i].codec, "block", cases[i].block, NULL));
        model_end_epoch(&m, d, 0); /* empty, and the label 0 */
        for (unsigned kind = 0; kind < KEYS_KINDS; kind++) {
            model_append_some(&m, d, &r, (enum key_kind)kind, cases[i].records / (kind == KEYS_FEW ? 10 : 1), size);
            model_end_epoch(&m, d, 10 * kind + 10);
        }
        model_end_epoch(&m, d, UINT64_MAX); /* empty, too */
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        model_check_directory(&m, path, &r);
        unit_remove(path);
        model_fini(&m);
    }
}

/* The least memory that will do, so that each epoch takes many runs and several segments. */
static void test_segments(void **state)
{
    static const struct {
        const char *partitions, *value_size;
        uint32_t records;
    } cases[] = {{"40", "8", 450000}, {"1", "any", 20000}, {"3", "4000", 4000}, {"1", "16", 450000}};
    struct rng r = rng_init(62);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = unit_path("segments");
        int64_t size = strcmp(cases[i].value_size, "any") == 0 ? -1 : atoll(cases[i].value_size);
        struct model m = {0};
        uint32_t least, most;
        deltafs_dir *d = unit_create(path, unit_options("memory", "8M", "partitions", cases[i].partitions, "value_size",
                                                        cases[i].value_size, NULL));
        for (unsigned epoch = 0; epoch < (cases[i].records < 150000 ? 2 : 1); epoch++) {
            model_append_some(&m, d, &r, cases[i].records >= 150000 ? KEYS_SPARSE : KEYS_CLUSTERED, cases[i].records,
                              size);
            model_end_epoch(&m, d, epoch);
        }
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        count_segments(path, &least, &most);
        /* Keys that fit are merged at once, however many runs there are. */
        CHECK((most > 1) == (cases[i].records >= 150000));
        model_check_directory(&m, path, &r);
        unit_remove(path);
        model_fini(&m);
    }
}

/* Values of all sizes from none to the largest, in one directory. */
static void test_large_values(void **state)
{
    static const uint32_t sizes[] = {0, 1, 4095, 4096, 4097, 65535, 65536, (1 << 20) - 1, 1 << 20};
    struct rng r = rng_init(63);
    struct model m = {0};
    const char *path = unit_path("large");
    deltafs_dir *d = unit_create(path, unit_options("partitions", "2", "memory", "8M", NULL));

    (void)state;
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        for (int i = 0; i < 30; i++)
            CHECK_CALL(d, model_append(&m, d, rng_below(&r, 10), sizes[rng_below(&r, 9)]), DELTAFS_OK);
        model_end_epoch(&m, d, epoch);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_check_directory(&m, path, &r);
    model_fini(&m);
}

static void test_many_epochs(void **state)
{
    struct rng r = rng_init(64);
    struct model m = {0};
    const char *path = unit_path("epochs");
    deltafs_dir *d = unit_create(path, unit_options("partitions", "3", "value_size", "8", NULL));

    (void)state;
    for (uint64_t epoch = 0; epoch < 1000; epoch++) {
        model_append_some(&m, d, &r, KEYS_FEW, epoch % 7 == 3 ? 0 : 4, 8);
        model_end_epoch(&m, d, 100 * epoch);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_check_directory(&m, path, &r);
    d = unit_open(path);
    for (int i = 0; i < 300; i++) {
        struct deltafs_range range = {rng_below(&r, 110000), rng_below(&r, 110000)};
        if (i % 3 == 0)
            range.last = range.first + rng_below(&r, 300);
        if (i % 10 == 0)
            range.last = UINT64_MAX;
        /* Half of them begin or end at a label. */
        range.first -= i % 4 == 1 || i % 4 == 2 ? range.first % 100 : 0;
        range.last -= i % 4 == 2 || i % 4 == 3 ? range.last % 100 : 0;
        model_check_key(&m, d, rng_below(&r, 5) * 1000003, &range);
        if (i % 10 == 0)
            model_check_scan(&m, d, &range);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_fini(&m);
}

/* One key often enough that its records fill many leaves, with neighbours on both sides. */
static void test_one_key_often(void **state)
{
    enum { OFTEN = 100000 };
    static const char *const memory[] = {"64M", "8M"};
    struct rng r = rng_init(65);

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *path = unit_path("often");
        struct model m = {0};
        deltafs_dir *d = unit_create(path, unit_options("value_size", "8", "memory", memory[i], NULL));
        for (int k = 0; k < OFTEN; k++) {
            CHECK_CALL(d, model_append(&m, d, 1000, 8), DELTAFS_OK);
            if (k % 100 == 0)
                CHECK_CALL(d, model_append(&m, d, rng_below(&r, 2001), 8), DELTAFS_OK);
        }
        model_end_epoch(&m, d, 1);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        model_check_directory(&m, path, &r);
        unit_remove(path);
        model_fini(&m);
    }
}

static void test_strides(void **state)
{
    struct {
        char pad;
        uint8_t key[8], more[3], value[5];
    } record[50];
    struct model m = {0};
    const char *path = unit_path("strides");
    deltafs_dir *d = unit_create(path, unit_options("value_size", "5", NULL));

    (void)state;
    for (uint64_t i = 0; i < 50; i++) {
        uint64_t key = i % 20;
        memcpy(record[i].key, &key, 8);
        model_append(&m, NULL, key, 5);
        model_value(i + 1, record[i].value, 5);
    }
    CHECK_CALL(d, deltafs_append_many(d, 50, record[0].key, sizeof record[0], record[0].value, sizeof record[0], 5),
               DELTAFS_OK);
    model_end_epoch(&m, d, 1);
    /* One value for all keys, and the keys from the last to the first; and none at all. */
    uint64_t keys[3] = {7, 8, 9};
    for (uint64_t i = 3; i-- > 0;)
        model_append(&m, NULL, keys[i], 5);
    for (uint64_t i = 0; i < 3; i++) {
        uint8_t value[5];
        model_value(51 + i, value, 5);
        CHECK_CALL(d, deltafs_append_many(d, 1, &keys[2 - i], 0, value, 0, 5), DELTAFS_OK);
    }
    CHECK_CALL(d, deltafs_append_many(d, 0, NULL, 8, NULL, 5, 5), DELTAFS_OK);
    model_end_epoch(&m, d, 2);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    model_check_scan(&m, d, NULL);
    for (uint64_t key = 0; key < 25; key++)
        model_check_key(&m, d, key, NULL);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_fini(&m);
}

/* ---- Reading ---- */

static void test_get_many(void **state)
{
    static const uint64_t keys[] = {5, 77, 5, 1, 0, 78, 5, UINT64_MAX};
    deltafs_records *out[8];
    struct model m = {0};
    struct deltafs_range none = {5, 3};
    const char *path = unit_path("many");
    deltafs_dir *d = unit_create(path, unit_options("partitions", "3", NULL));

    (void)state;
    for (uint64_t key = 0; key < 10; key++)
        CHECK_CALL(d, model_append(&m, d, key, (uint32_t)key), DELTAFS_OK);
    model_end_epoch(&m, d, 4);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    CHECK_IS(deltafs_get_many(d, 8, keys, NULL, out), DELTAFS_ERR_NOT_FOUND);
    for (size_t i = 0; i < 8; i++) {
        CHECK((out[i] != NULL) == (keys[i] < 10));
        CHECK(!out[i] || (out[i]->count == 1 && out[i]->record->key == keys[i] && out[i]->record->size == keys[i]));
        deltafs_records_destroy(out[i]);
    }
    CHECK_IS(deltafs_get_many(d, 8, keys, &none, out), DELTAFS_ERR_NOT_FOUND);
    for (size_t i = 0; i < 8; i++)
        CHECK(!out[i]);
    CHECK_IS(deltafs_get_many(d, 0, NULL, NULL, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_get_many(d, 1, NULL, NULL, out), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_get_many(d, 1, keys, NULL, NULL), DELTAFS_ERR_INVALID);
    deltafs_records_destroy(NULL);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_fini(&m);
}

static int stop_after(const struct deltafs_record *record, void *arg)
{
    int *left = arg;

    (void)record;
    return --*left == 0 ? 1234 : 0;
}

static int count_record(const struct deltafs_record *record, void *arg)
{
    (void)record;
    ++*(size_t *)arg;
    return 0;
}

/* A scan's function that reads from the same handle, which it must not. */
static int read_within(const struct deltafs_record *record, void *arg)
{
    deltafs_records *got = NULL;
    int status = deltafs_get(arg, record->key, NULL, &got);

    CHECK(got == NULL);
    return status;
}

static void test_scan_parts(void **state)
{
    struct model m = {0};
    struct rng r = rng_init(66);
    const char *path = unit_path("scan");
    deltafs_dir *d = unit_create(path, unit_options("partitions", "5", NULL));
    size_t count = 0;
    int left = 37, stopped = 0;

    (void)state;
    model_append_some(&m, d, &r, KEYS_DENSE, 1000, -1);
    model_end_epoch(&m, d, 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    CHECK_IS(deltafs_scan(d, NULL, stop_after, &left, &stopped), DELTAFS_OK);
    CHECK_IS(stopped, 1234);
    CHECK_IS(left, 0);
    for (uint32_t p = 0; p < 5; p++)
        CHECK_CALL(d, deltafs_scan_partition(d, p, NULL, count_record, &count, &stopped), DELTAFS_OK);
    CHECK_IS(stopped, 0);
    CHECK_IS(count, 1000);
    CHECK_IS(deltafs_scan_partition(d, 5, NULL, count_record, &count, NULL), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_scan(d, NULL, NULL, NULL, NULL), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_scan(d, NULL, read_within, d, &stopped), DELTAFS_OK);
    CHECK_IS(stopped, DELTAFS_ERR_MODE);
    CHECK_CALL(d, deltafs_scan(d, NULL, count_record, &count, NULL), DELTAFS_OK);
    CHECK_IS(count, 2000);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_fini(&m);
}

#define ROW_SIZE 22 /* a key, a label, and a value of 6 bytes */

/* The record is in the next row of an array. */
static int is_in_row(const struct deltafs_record *record, void *arg)
{
    const uint8_t **row = arg;

    CHECK(memcmp(*row, &record->key, 8) == 0);
    CHECK(memcmp(*row + 8, &record->label, 8) == 0);
    CHECK(record->size == 6 && memcmp(*row + 16, record->value, 6) == 0);
    *row += ROW_SIZE;
    return 0;
}

static void test_scan_many(void **state)
{
    static uint8_t rows[2000 * ROW_SIZE];
    struct deltafs_arrays to = {.struct_size = sizeof to,
                                .capacity = 2000,
                                .keys = rows,
                                .key_stride = ROW_SIZE,
                                .labels = rows + 8,
                                .label_stride = ROW_SIZE,
                                .values = rows + 16,
                                .value_stride = ROW_SIZE};
    struct model m = {0};
    struct rng r = rng_init(68);
    const char *path = unit_path("scan_many");
    deltafs_dir *d = unit_create(path, unit_options("partitions", "3", "value_size", "6", NULL));
    const uint8_t *next = rows;
    size_t count, sum = 0;

    (void)state;
    for (uint64_t label = 1; label <= 2; label++) {
        model_append_some(&m, d, &r, KEYS_DENSE, 1000, 6);
        model_end_epoch(&m, d, label);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    CHECK_CALL(d, deltafs_scan_many(d, NULL, NULL, &to, &count), DELTAFS_OK);
    CHECK_IS(count, 2000);
    CHECK_CALL(d, deltafs_scan(d, NULL, is_in_row, &next, NULL), DELTAFS_OK);
    CHECK(next == rows + sizeof rows);

    /* Neither rows beyond the capacity nor what is not asked for are touched. */
    memset(rows, 0xee, sizeof rows);
    to.capacity = 10;
    to.values = NULL;
    for (uint32_t p = 0; p < 3; p++) {
        CHECK_CALL(d, deltafs_scan_many(d, &p, &(struct deltafs_range){2, 2}, &to, &count), DELTAFS_OK);
        sum += count;
    }
    CHECK_IS(sum, 1000);
    for (size_t i = 0; i < sizeof rows; i++)
        CHECK(i / ROW_SIZE < 10 && i % ROW_SIZE < 16 ? i % ROW_SIZE != 8 || rows[i] == 2 : rows[i] == 0xee);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_fini(&m);
}

/* Its copy, taken before the close, is what a crash leaves: footers are looked for instead of a tail. With records
 * behind the last epoch's end, some of them on disk already. */
static void test_never_closed(void **state)
{
    static const char *const partitions[] = {"1", "3", "40"};
    struct rng r = rng_init(67);

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct model m = {0};
        const char *path = unit_path("open"), *copy = unit_path("crashed");
        struct deltafs_stat stat = {.struct_size = sizeof stat};
        deltafs_dir *d =
            unit_create(path, unit_options("partitions", partitions[i], "value_size", "8", "memory", "8M", NULL));
        for (uint64_t epoch = 0; epoch < 5; epoch++) {
            model_append_some(&m, d, &r, KEYS_DENSE, epoch == 3 ? 0 : 2000, 8);
            model_end_epoch(&m, d, epoch);
        }
        size_t before = m.count;
        model_append_some(&m, d, &r, KEYS_SPARSE, 300000, 8);
        unit_copy(path, copy);
        m.count = before;
        CHECK_IS(deltafs_close(d), DELTAFS_ERR_UNCOMMITTED);
        model_check_directory(&m, copy, &r);
        model_check_directory(&m, path, &r);
        d = unit_open(copy);
        CHECK(deltafs_stat(d, &stat) == DELTAFS_OK && !stat.is_closed);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        d = unit_open(path);
        CHECK(deltafs_stat(d, &stat) == DELTAFS_OK && stat.is_closed);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        unit_remove(path);
        unit_remove(copy);
        model_fini(&m);
    }
}

/* A handle sees what was committed when it was opened, whatever is written afterwards. */
/* A power loss before the first commit may take the logs, or their headers: there is nothing in them. (It was damage to
 * scan and verify.) */
static void test_no_epochs_no_logs(void **state)
{
    const char *path = unit_path("no-logs");
    struct deltafs_verify_counts verified = {.struct_size = sizeof verified};
    struct model m = {0};
    deltafs_records *got;

    (void)state;
    deltafs_dir *writer = unit_create(path, unit_options("partitions", "2", NULL));
    CHECK(truncate(unit_path("no-logs/00/p00000000.data"), 0) == 0);
    CHECK(unlink(unit_path("no-logs/01/p00000001.index")) == 0);
    deltafs_dir *d = unit_open(path);
    model_check_scan(&m, d, NULL);
    CHECK_CALL(d, deltafs_get(d, 1, NULL, &got), DELTAFS_ERR_NOT_FOUND);
    CHECK_CALL(d, deltafs_get(d, 2, NULL, &got), DELTAFS_ERR_NOT_FOUND);
    CHECK_CALL(d, deltafs_verify(d, NULL, NULL, &verified), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    deltafs_close(writer);
    unit_remove(path);
}

static void test_reading_while_writing(void **state)
{
    struct rng r = rng_init(68);
    struct model m = {0}, early = {0};
    const char *path = unit_path("while");
    deltafs_dir *first = NULL;
    deltafs_dir *d = unit_create(path, unit_options("partitions", "3", "memory", "8M", "value_size", "100", NULL));

    (void)state;
    for (uint64_t epoch = 0; epoch < 6; epoch++) {
        model_append_some(&m, d, &r, KEYS_DENSE, 3000, 100);
        model_end_epoch(&m, d, epoch);
        if (epoch == 2) {
            first = unit_open(path);
            early = m;
            early.record = malloc(m.capacity * sizeof *m.record);
            CHECK(early.record != NULL);
            memcpy(early.record, m.record, m.count * sizeof *m.record);
        }
        model_append_some(&m, d, &r, KEYS_DENSE, 20000, 100);
        model_check_directory(&m, path, &r);
        m.count = m.committed;
        CHECK_CALL(d, deltafs_epoch_cancel(d, "enough of it"), DELTAFS_OK);
        CHECK_IS(deltafs_epoch_end(d, epoch + 100), DELTAFS_ERR_CANCELLED);
        if (first)
            model_check_all(&early, first, &r);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_check_scan(&early, first, NULL);
    model_check_facts(&early, first);
    CHECK_IS(deltafs_close(first), DELTAFS_OK);
    model_check_directory(&m, path, &r);
    model_fini(&m);
    model_fini(&early);
}

/* The promise of the design: manifest, tail, and for each epoch one leaf and one block. */
static void test_reads_of_a_trajectory(void **state)
{
    enum { EPOCHS = 40 };
    struct rng r = rng_init(69);
    struct model m = {0};
    const char *path = unit_path("reads");
    deltafs_dir *d = unit_create(path, unit_options("partitions", "3", "value_size", "40", NULL));

    (void)state;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        for (uint64_t key = 0; key < 20000; key++)
            CHECK_CALL(d, model_append(&m, d, key * 7, 40), DELTAFS_OK);
        model_end_epoch(&m, d, epoch);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    for (int i = 0; i < 20; i++) {
        struct deltafs_io_stat io = {.struct_size = sizeof io};
        uint64_t key = 7 * rng_below(&r, 20000);
        d = unit_open(path);
        CHECK_CALL(d, deltafs_io_stat(d, &io), DELTAFS_OK);
        CHECK_IS(io.reads, 1);
        model_check_key(&m, d, key, NULL);
        CHECK_CALL(d, deltafs_io_stat(d, &io), DELTAFS_OK);
        CHECK(io.reads <= 2 + 2 * EPOCHS);
        CHECK(io.writes == 0 && io.bytes_written == 0);
        model_check_key(&m, d, key, NULL);
        CHECK_CALL(d, deltafs_io_stat(d, &io), DELTAFS_OK);
        CHECK(io.reads <= 2 + 4 * EPOCHS);
        model_check_key(&m, d, key + 1, NULL);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
    model_fini(&m);
}

/* ---- Facts ---- */

static void test_stat(void **state)
{
    const char *path = unit_path("stat");
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
    struct model m = {0};
    struct rng r = rng_init(74);
    uint64_t bytes, stored = 0;
    size_t n;
    deltafs_dir *d = unit_create(path, unit_options("schema", "x:f4,y:i2", "partitions", "4", NULL));

    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        model_append_some(&m, d, &r, KEYS_SPARSE, 3000 * (uint32_t)(i % 2), 6);
        model_end_epoch(&m, d, i);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    CHECK_CALL(d, deltafs_stat(d, &stat), DELTAFS_OK);
    CHECK(strcmp(stat.schema, "x:f4,y:i2") == 0 && stat.value_size == 6 && stat.partitions == 4 && stat.is_closed);
    CHECK_IS(strlen(stat.uuid), 36);
    for (uint64_t i = 0; i < 4; i++) {
        CHECK_CALL(d, deltafs_epoch_stat(d, i, &epoch), DELTAFS_OK);
        CHECK(epoch.label == i && epoch.records == 3000 * (i % 2) && epoch.bytes_raw == 14 * epoch.records);
        stored += epoch.bytes_stored;
    }
    /* All that there is: the epochs, headers, tails, and the manifest. */
    CHECK_CALL(d, deltafs_bytes_stored(d, &bytes), DELTAFS_OK);
    uint64_t files = 0;
    for (uint32_t p = 0; p < 4; p++) {
        free(unit_load(unit_path("stat/" LOG_NAME_DATA, p, p), &n));
        files += n;
        free(unit_load(unit_path("stat/" LOG_NAME_INDEX, p, p), &n));
        files += n;
    }
    CHECK(files > stored + 8 * LOG_HEADER_SIZE && files < stored + 8 * LOG_HEADER_SIZE + 4 * 2000);
    free(unit_load(unit_path("stat/MANIFEST"), &n));
    files += n;
    free(unit_load(unit_path("stat/MANIFEST.copy"), &n));
    CHECK_IS(bytes, files + n);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_fini(&m);
}

/* What a writer takes stays within its budget, by its own account; and that agrees with the heap's, but for paths and
 * handles of files, some hundred bytes for each partition. */
static void test_memory_budget(void **state)
{
    static const struct {
        const char *memory, *partitions, *value_size;
        uint32_t size;
        int records, epochs;
    } cases[] = {
        {"8M", "1", "8", 8, 300000, 2},    {"8M", "200", "8", 8, 300000, 2}, {"8M", "3", "4000", 4000, 9000, 2},
        {"8M", "1", "any", 100, 60000, 2}, {"8M", "1", "any", 0, 900000, 1}, {"32M", "64", "any", 16000, 9000, 1},
        {"16M", "4", "40", 40, 300000, 2}, {"64M", "16", "0", 0, 900000, 1}, {"8M", "5", "8", 8, 100, 3000}};
    static uint8_t value[16000];
    struct rng r = rng_init(75);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = unit_path("budget");
        deltafs_options *o = unit_options("memory", cases[i].memory, "partitions", cases[i].partitions, "value_size",
                                          cases[i].value_size, NULL);
        uint64_t limit = (uint64_t)atoi(cases[i].memory) << 20, partitions = (uint64_t)atoi(cases[i].partitions);
        struct deltafs_memory_stat stat = {.struct_size = sizeof stat};
        struct mallinfo2 before = mallinfo2();
        deltafs_dir *d = unit_create(path, o);
        for (int epoch = 0; epoch < cases[i].epochs; epoch++) {
            for (int k = 0; k < cases[i].records; k++) {
                CHECK_CALL(d, deltafs_append(d, rng_next(&r), value, cases[i].size), DELTAFS_OK);
                if (k % 1000 != 0)
                    continue;
                struct mallinfo2 now = mallinfo2();
                uint64_t used = now.uordblks + now.hblkhd - before.uordblks - before.hblkhd;
                CHECK_CALL(d, deltafs_memory_stat(d, &stat), DELTAFS_OK);
                CHECK(stat.limit == limit && stat.used <= stat.peak && stat.peak <= limit);
                if (used > stat.used + 20000 + 1500 * partitions)
                    fail_msg("case %zu: %llu bytes used, %llu told", i, (unsigned long long)used,
                             (unsigned long long)stat.used);
            }
            CHECK_CALL(d, deltafs_epoch_end(d, (uint64_t)epoch), DELTAFS_OK);
        }
        CHECK_CALL(d, deltafs_memory_stat(d, &stat), DELTAFS_OK);
        CHECK(stat.peak <= limit);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        unit_remove(path);
    }
}

/* ---- In the shape of files ---- */

static void test_files(void **state)
{
    static uint8_t bytes[5000], got[30000];
    const char *path = unit_path("files");
    struct rng r = rng_init(76);
    deltafs_file *f = NULL;
    uint64_t half;
    size_t at = 0, n;
    deltafs_dir *d = unit_create(path, unit_options(NULL, NULL));

    (void)state;
    rng_fill(&r, bytes, sizeof bytes);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        /* 1,000 bytes in pieces, then nothing, then 500 more; under two names of the key. */
        CHECK_IS(deltafs_openat(d, "4096", O_WRONLY | O_APPEND | O_CREAT, &f), DELTAFS_OK);
        for (size_t piece = 0; piece < 1000; piece += 50)
            CHECK_IS(deltafs_write(f, bytes + 1500 * epoch + piece, 50), DELTAFS_OK);
        CHECK_IS(deltafs_write(f, NULL, 0), DELTAFS_OK);
        CHECK_IS(deltafs_read(f, got, 1, &n), DELTAFS_ERR_MODE);
        CHECK_IS(deltafs_file_close(f), DELTAFS_OK);
        CHECK_IS(deltafs_openat(d, "0x1000", O_WRONLY, &f), DELTAFS_OK);
        CHECK_IS(deltafs_file_close(f), DELTAFS_OK);
        CHECK_IS(deltafs_openat(d, "0x1000", O_WRONLY, &f), DELTAFS_OK);
        CHECK_IS(deltafs_write(f, bytes + 1500 * epoch + 1000, 500), DELTAFS_OK);
        CHECK_IS(deltafs_file_close(f), DELTAFS_OK);
        CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);

    d = unit_open(path);
    for (size_t piece = 1; piece < 20000; piece = piece * 3 + 1) {
        CHECK_IS(deltafs_openat(d, "4096", O_RDONLY, &f), DELTAFS_OK);
        CHECK_IS(deltafs_write(f, bytes, 1), DELTAFS_ERR_MODE);
        CHECK_IS(deltafs_read(f, NULL, 0, &n), DELTAFS_OK);
        CHECK_IS(n, 0);
        CHECK_IS(deltafs_read(f, got, 1, NULL), DELTAFS_ERR_MODE);
        at = 0;
        do {
            CHECK_IS(deltafs_read(f, got + at, piece, &n), DELTAFS_OK);
            CHECK(n <= piece);
            at += n;
        } while (n > 0);
        CHECK_IS(at, 4500);
        CHECK(memcmp(got, bytes, 4500) == 0);
        CHECK_IS(deltafs_file_close(f), DELTAFS_OK);
    }
    CHECK_IS(deltafs_openat(d, "4097", O_RDONLY, &f), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_openat(d, "4096", O_RDWR, &f), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_openat(d, "", O_RDONLY, &f), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_openat(d, "particle", O_RDONLY, &f), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_openat(d, NULL, O_RDONLY, &f), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_openat(NULL, "1", O_RDONLY, &f), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_file_close(NULL), DELTAFS_OK);
    CHECK_CALL(d, deltafs_bytes_stored(d, &half), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* A file of another size than the directory's values: the close says so, and the epoch is spoilt. */
static void test_file_of_wrong_size(void **state)
{
    const char *path = unit_path("wrong");
    deltafs_file *f = NULL;
    deltafs_dir *d = unit_create(path, unit_options("value_size", "8", NULL));

    (void)state;
    CHECK_IS(deltafs_openat(d, "1", O_WRONLY, &f), DELTAFS_OK);
    CHECK_IS(deltafs_write(f, "1234567", 7), DELTAFS_OK);
    CHECK_IS(deltafs_file_close(f), DELTAFS_ERR_SIZE);
    CHECK(strstr(deltafs_errmsg(NULL), "7 bytes") != NULL);
    CHECK_IS(deltafs_epoch_end(d, 1), DELTAFS_ERR_SIZE);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* A write that fails spoils the epoch, also for a caller who looks at its end only. */
static void test_file_too_long(void **state)
{
    static uint8_t bytes[1 << 20];
    const char *path = unit_path("long");
    deltafs_file *f = NULL;
    size_t n;
    deltafs_dir *d = unit_create(path, unit_options(NULL, NULL));

    (void)state;
    CHECK_IS(deltafs_openat(d, "1", O_WRONLY, &f), DELTAFS_OK);
    CHECK_IS(deltafs_write(f, bytes, sizeof bytes), DELTAFS_OK);
    CHECK_IS(deltafs_write(f, bytes, 0), DELTAFS_OK);
    CHECK_IS(deltafs_write(f, bytes, 1), DELTAFS_ERR_SIZE);
    CHECK_IS(deltafs_write(f, bytes, 1), DELTAFS_ERR_SIZE);
    CHECK_IS(deltafs_file_close(f), DELTAFS_ERR_SIZE);
    CHECK(deltafs_epoch_end(d, 1) != DELTAFS_OK);
    CHECK_IS(deltafs_openat(d, "1", O_WRONLY, &f), DELTAFS_OK);
    CHECK_IS(deltafs_write(f, bytes, sizeof bytes), DELTAFS_OK);
    CHECK_IS(deltafs_file_close(f), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    CHECK_IS(deltafs_openat(d, "1", O_RDONLY, &f), DELTAFS_OK);
    CHECK_IS(deltafs_read(f, bytes, sizeof bytes, &n), DELTAFS_OK);
    CHECK_IS(n, sizeof bytes);
    CHECK_IS(deltafs_read(f, bytes, sizeof bytes, &n), DELTAFS_OK);
    CHECK_IS(n, 0);
    CHECK_IS(deltafs_file_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* Killed while it made its logs. */
static void test_no_logs(void **state)
{
    const char *path = unit_path("no_logs");
    deltafs_dir *d = unit_create(path, unit_options("partitions", "1", NULL));
    uint64_t bytes = 0;

    (void)state;
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_remove(unit_path("no_logs/00"));
    d = unit_open(path);
    CHECK_CALL(d, deltafs_bytes_stored(d, &bytes), DELTAFS_OK);
    CHECK(bytes > 0);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* The manifest's copy gets no line before the manifest has it for certain. */
static void test_copy_after_sync(void **state)
{
    static const char *const syncs[] = {"commit", "close"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *path = unit_path("copied%d", i), *copy = unit_path("copied%d/MANIFEST.copy", i);
        deltafs_dir *d = unit_create(path, unit_options("sync", syncs[i], "value_size", "8", NULL));
        uint64_t value = 1;
        size_t n, m;
        CHECK_CALL(d, deltafs_append(d, 1, &value, sizeof value), DELTAFS_OK);
        CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
        CHECK_IS(unit_exists(copy), i == 0);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        uint8_t *is = unit_load(copy, &n), *want = unit_load(unit_path("copied%d/MANIFEST", i), &m);
        CHECK(n == m && memcmp(is, want, n) == 0);
        free(is);
        free(want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy_after_sync),
        cmocka_unit_test(test_no_logs),
        cmocka_unit_test(test_random_workloads),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_large_values),
        cmocka_unit_test(test_many_epochs),
        cmocka_unit_test(test_one_key_often),
        cmocka_unit_test(test_strides),
        cmocka_unit_test(test_get_many),
        cmocka_unit_test(test_scan_parts),
        cmocka_unit_test(test_scan_many),
        cmocka_unit_test(test_never_closed),
        cmocka_unit_test(test_no_epochs_no_logs),
        cmocka_unit_test(test_reading_while_writing),
        cmocka_unit_test(test_reads_of_a_trajectory),
        cmocka_unit_test(test_stat),
        cmocka_unit_test(test_memory_budget),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_file_of_wrong_size),
        cmocka_unit_test(test_file_too_long),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
