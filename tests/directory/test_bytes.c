/* Directories whose keys are bytes, against the model: keys of all lengths and bytes, whose hashes are alike as far as
 * the index has them, in segments and partitions; and each error as the header has it. */
#include <fcntl.h>
#include "base/hash.h"
#include "directory/format/directory_format.h"
#include "directory/format/index.h"
#include "directory/format/manifest.h"
#include "unit_help.h"

#define NAMES_MOST 70000

/* Keys that stay as long as the test. */
static struct name {
    uint32_t size;
    uint8_t bytes[20]; /* of a short one */
    uint8_t *far;      /* of a longer one */
} name[NAMES_MOST];

static const uint8_t *name_bytes(const struct name *n)
{
    return n->far ? n->far : n->bytes;
}

static void set_name(struct name *n, const void *bytes, size_t size)
{
    free(n->far);
    n->far = size > sizeof n->bytes ? malloc(size) : NULL;
    CHECK(size <= sizeof n->bytes || n->far);
    n->size = (uint32_t)size;
    memcpy(n->far ? n->far : n->bytes, bytes, size);
}

static void drop_names(void)
{
    for (size_t i = 0; i < NAMES_MOST; i++) {
        free(name[i].far);
        name[i] = (struct name){0};
    }
}

/* Names of several kinds: noise of all lengths; zeros, so that only the length tells; a long common beginning; texts;
 * the same but for the last byte. */
static void make_names(struct rng *r, size_t n)
{
    uint8_t bytes[255];

    for (size_t i = 0; i < n; i++) {
        size_t size = 1 + rng_below(r, 255);
        switch (i % 5) {
        case 0:
            rng_fill(r, bytes, size);
            break;
        case 1:
            memset(bytes, 0, sizeof bytes);
            bytes[size - 1] = (uint8_t)(rng_below(r, 4) == 0);
            break;
        case 2:
            memset(bytes, 'p', sizeof bytes);
            size = 200 + rng_below(r, 56);
            memcpy(bytes + size - 5, &i, 5);
            break;
        case 3:
            size = (size_t)snprintf((char *)bytes, sizeof bytes, "particle/%zu", i);
            break;
        default:
            memset(bytes, 'x', sizeof bytes);
            size = 1 + i % 255;
            bytes[size - 1] = (uint8_t)rng_next(r);
        }
        set_name(&name[i], bytes, size);
    }
}

static void append_some(struct model *m, deltafs_dir *d, struct rng *r, size_t names, uint32_t n, int64_t value_size)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct name *k = &name[rng_below(r, names)];
        uint32_t size = value_size >= 0         ? (uint32_t)value_size
                        : rng_below(r, 30) == 0 ? (uint32_t)rng_below(r, 9000)
                                                : (uint32_t)rng_below(r, 40);
        CHECK_CALL(d, model_append_bytes(m, d, name_bytes(k), k->size, size), DELTAFS_OK);
    }
}

static void check_directory(struct model *m, const char *path, struct rng *r)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    deltafs_dir *d = unit_open(path);
    uint8_t bytes[255];

    CHECK_CALL(d, deltafs_stat(d, &stat), DELTAFS_OK);
    CHECK(strcmp(stat.keys, "bytes") == 0);
    model_check_all(m, d, r);
    model_check_scan(m, d, NULL);
    model_check_facts(m, d);
    for (int i = 0; i < 300; i++) {
        const struct name *k = &name[rng_below(r, 400)];
        struct deltafs_range range = {rng_below(r, 5), rng_below(r, 5)};
        if (k->size == 0)
            continue;
        model_check_name(m, d, name_bytes(k), k->size, &range);
        /* Its beginning, itself with a byte more, itself with another byte. */
        memcpy(bytes, name_bytes(k), k->size);
        if (k->size > 1)
            model_check_name(m, d, bytes, k->size - 1, NULL);
        bytes[rng_below(r, k->size)] ^= 1;
        model_check_name(m, d, bytes, k->size, NULL);
        bytes[k->size < 255 ? k->size : 254] = 0;
        model_check_name(m, d, bytes, k->size < 255 ? k->size + 1 : 255, NULL);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* How many segments the epoch has in partition 0, and the first one's key_shift. */
static void look_into_index(const char *path, uint32_t epoch, uint32_t *segments, unsigned *key_shift)
{
    struct io io = io_default();
    struct manifest m;
    struct error e, tail = {0};
    struct index_reader r;
    struct segment *s;
    char log[PATH_ROOM];

    io_path_in(log, path, LOG_NAME_INDEX, 0, 0);
    CHECK_IS(manifest_read(&io, path, &m, &e), DELTAFS_OK);
    CHECK_IS(index_reader_open(&r, &io, log, 0, m.uuid, (uint32_t)m.epoch_count, (uint32_t)m.epoch_count,
                               m.is_closed ? m.tail_length : 0, &tail, &e),
             DELTAFS_OK);
    CHECK_IS(index_epoch(&r, epoch, &s, segments, &e), DELTAFS_OK);
    *key_shift = s->footer.key_shift;
    CHECK_IS(index_reader_close(&r, &e), DELTAFS_OK);
    manifest_fini(&m);
}

static void test_random(void **state)
{
    static const struct {
        const char *partitions, *value_size, *schema, *codec, *block, *memory, *threads;
        size_t names;
        uint32_t records;
    } cases[] = {
        {"1", "any", "", "snappy", "4K", "64M", "2", 400, 4000},
        {"3", "any", "", "none", "256", "64M", "0", 3000, 4000},
        {"300", "any", "", "snappy", "4K", "64M", "2", 3000, 6000},
        {"1", "0", "", "snappy", "4K", "64M", "1", 4, 4000},
        {"2", "12", "", "snappy", "64K", "64M", "2", 1000, 4000},
        {"5", "any", "x:f4,y:f8,n:u1", "snappy", "4K", "64M", "2", 1000, 4000},
        {"1", "any", "", "snappy", "4K", "8M", "2", 20000, 40000},
        {"1", "0", "", "snappy", "4K", "8M", "2", 60000, 300000}, /* several segments */
        {"7", "8", "", "snappy", "4K", "8M", "1", 60000, 60000},
    };
    struct rng r = rng_init(221);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = unit_path("bytes");
        int64_t size = cases[i].schema[0]                        ? 13
                       : strcmp(cases[i].value_size, "any") == 0 ? -1
                                                                 : atoll(cases[i].value_size);
        struct model m = {.is_bytes = 1};
        make_names(&r, cases[i].names);
        deltafs_dir *d = unit_create(path, unit_options("keys", "bytes", "partitions", cases[i].partitions,
                                                        "value_size", cases[i].value_size, "schema", cases[i].schema,
                                                        "codec", cases[i].codec, "block", cases[i].block, "memory",
                                                        cases[i].memory, "threads", cases[i].threads, NULL));
        model_end_epoch(&m, d, 0);
        for (uint64_t epoch = 1; epoch < (cases[i].records < 100000 ? 4 : 2); epoch++) {
            append_some(&m, d, &r, cases[i].names, cases[i].records, size);
            /* Some keys often, so that their order shows. */
            append_some(&m, d, &r, 3, 300, size);
            model_end_epoch(&m, d, epoch);
        }
        struct deltafs_memory_stat stat = {.struct_size = sizeof stat};
        CHECK_CALL(d, deltafs_memory_stat(d, &stat), DELTAFS_OK);
        CHECK(stat.peak <= stat.limit);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        uint32_t segments;
        unsigned shift;
        look_into_index(path, 1, &segments, &shift);
        CHECK(segments > 1 || cases[i].records < 100000);
        check_directory(&m, path, &r);
        unit_remove(path);
        model_fini(&m);
        drop_names();
    }
}

/* ---- Keys that are the same to the index ---- */

/* Two different keys whose hashes have the same first `bits` bits, of what the counter makes: found by sorting. */
struct hashed {
    uint64_t hash;
    uint32_t number;
};

static int compare_hashed(const void *a, const void *b)
{
    const struct hashed *x = a, *y = b;

    return (x->hash > y->hash) - (x->hash < y->hash);
}

static size_t number_name(uint32_t number, uint8_t bytes[8])
{
    memcpy(bytes, &number, 4);
    return 4;
}

/* Keys whose hashes agree in all bits that the index has of them: with few records these are 17 and more, so pairs are
 * easily found. Records of one must not come back for the other, whether both, or only one, are there. */
static void test_collisions(void **state)
{
    enum { TRIED = 400000, PAIRS = 120 };
    static struct hashed h[TRIED];
    struct rng r = rng_init(222);
    struct model m = {.is_bytes = 1};
    const char *path = unit_path("alike");
    uint8_t bytes[8];
    size_t n = 0;
    unsigned alike = 0, absent = 0;

    (void)state;
    for (uint32_t i = 0; i < TRIED; i++)
        h[i] = (struct hashed){hash_bytes(bytes, number_name(i, bytes)), i};
    qsort(h, TRIED, sizeof *h, compare_hashed);
    /* 240 records in an epoch: the index has 8 + 16 bits of each key. */
    for (size_t i = 1; i < TRIED && n < 2 * PAIRS; i++)
        if (h[i].hash >> 40 == h[i - 1].hash >> 40 && (n == 0 || h[i - 1].hash >> 40 != h[n - 1].hash >> 40)) {
            for (size_t k = i - 1; k <= i; k++, n++)
                set_name(&name[n], bytes, number_name(h[k].number, bytes));
            alike++;
        }
    CHECK(alike == PAIRS);
    deltafs_dir *d = unit_create(path, unit_options("keys", "bytes", "value_size", "6", NULL));
    for (uint64_t epoch = 0; epoch < 4; epoch++) {
        /* Both of a pair, one after the other and mixed; the even ones alone; the odd ones alone. */
        for (int again = 0; again < (epoch == 1 ? 3 : 1); again++)
            for (size_t i = 0; i < n; i++) {
                size_t k = epoch == 1 ? rng_below(&r, n) : i;
                if (epoch < 2 || k % 2 == epoch % 2)
                    CHECK_CALL(d, model_append_bytes(&m, d, name_bytes(&name[k]), name[k].size, 6), DELTAFS_OK);
            }
        model_end_epoch(&m, d, epoch);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    uint32_t segments;
    unsigned shift;
    look_into_index(path, 0, &segments, &shift);
    CHECK_IS(shift, 40); /* or they are not alike to it */
    check_directory(&m, path, &r);
    d = unit_open(path);
    for (size_t i = 0; i < n; i++)
        for (uint64_t epoch = 0; epoch < 4; epoch++) {
            struct deltafs_range range = {epoch, epoch};
            const struct model_record *ignored;
            model_check_name(&m, d, name_bytes(&name[i]), name[i].size, &range);
            absent += model_find(&m, hash_bytes(name_bytes(&name[i]), name[i].size), epoch, epoch, &ignored) == 0;
        }
    CHECK(absent >= 2 * PAIRS);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_remove(path);
    model_fini(&m);
    drop_names();
}

/* So many that some are bound to agree by chance, in one partition and in three; asked for in one batch. */
static void test_many(void **state)
{
    static const char *const partitions[] = {"1", "3"};
    struct rng r = rng_init(223);
    uint8_t bytes[8];

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *path = unit_path("many");
        struct model m = {.is_bytes = 1};
        for (uint32_t k = 0; k < 1 << 16; k++)
            set_name(&name[k], bytes, number_name(k, bytes));
        deltafs_dir *d = unit_create(path, unit_options("keys", "bytes", "partitions", partitions[i], NULL));
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            for (uint32_t k = 0; k < 1 << 16; k++)
                CHECK_CALL(d, model_append_bytes(&m, d, name_bytes(&name[k]), name[k].size, k % 7), DELTAFS_OK);
            model_end_epoch(&m, d, epoch);
        }
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        check_directory(&m, path, &r);
        unit_remove(path);
        model_fini(&m);
        drop_names();
    }
}

/* ---- Errors ---- */

static int ignore_record(const struct deltafs_record *record, void *arg)
{
    (void)record;
    (void)arg;
    return 0;
}

static void test_sizes(void **state)
{
    static uint8_t value[1 << 20];
    static const char long_key[256] = "long";
    const char *path = unit_path("sizes");
    deltafs_records *got = NULL, *many[2];
    const void *keys[2] = {"a", long_key};
    size_t sizes[2] = {1, 256};
    deltafs_dir *d = unit_create(path, unit_options("keys", "bytes", "memory", "16M", NULL));

    (void)state;
    rng_init(224);
    /* Each spoils its epoch. */
    static const struct {
        const void *key;
        size_t key_size, size;
        int status;
    } bad[] = {{"", 0, 1, DELTAFS_ERR_INVALID},
               {long_key, 256, 1, DELTAFS_ERR_INVALID},
               {long_key, SIZE_MAX, 1, DELTAFS_ERR_INVALID},
               {NULL, 1, 1, DELTAFS_ERR_INVALID},
               {"a", 1, (1 << 20) - 1, DELTAFS_ERR_SIZE},
               {long_key, 255, (1 << 20) - 255, DELTAFS_ERR_SIZE},
               {"a", 1, (1 << 20) + 1, DELTAFS_ERR_SIZE},
               {"a", 1, SIZE_MAX, DELTAFS_ERR_SIZE}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_CALL(d, deltafs_append_bytes(d, "fine", 4, value, 3), DELTAFS_OK);
        CHECK_IS(deltafs_append_bytes(d, bad[i].key, bad[i].key_size, value, bad[i].size), bad[i].status);
        CHECK_CALL(d, deltafs_append_bytes(d, "fine", 4, value, 3), DELTAFS_OK);
        CHECK_IS(deltafs_epoch_end(d, 1), bad[i].status);
    }
    CHECK_IS(deltafs_append_bytes(d, "a", 1, NULL, 1), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_epoch_end(d, 1), DELTAFS_ERR_INVALID);
    CHECK_CALL(d, deltafs_append_bytes(d, "a", 1, NULL, 0), DELTAFS_OK);
    CHECK_CALL(d, deltafs_append_bytes(d, "a", 1, value, (1 << 20) - 2), DELTAFS_OK);
    CHECK_CALL(d, deltafs_append_bytes(d, long_key, 255, value, (1 << 20) - 256), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);

    d = unit_open(path);
    CHECK_IS(deltafs_get_bytes(d, "a", 1, NULL, &got), DELTAFS_OK);
    CHECK(got->count == 2 && got->record[0].size == 0 && got->record[1].size == (1 << 20) - 2);
    CHECK(got->record[0].key_size == 1 && *(const char *)got->record[0].key_bytes == 'a');
    deltafs_records_destroy(got);
    CHECK_IS(deltafs_get_bytes(d, long_key, 255, NULL, &got), DELTAFS_OK);
    CHECK(got->count == 1 && got->record[0].size == (1 << 20) - 256 && got->record[0].key_size == 255);
    CHECK(memcmp(got->record[0].key_bytes, long_key, 255) == 0);
    deltafs_records_destroy(got);
    CHECK_IS(deltafs_get_bytes(d, "fine", 4, NULL, &got), DELTAFS_ERR_NOT_FOUND);
    CHECK(!got && strstr(deltafs_errmsg(d), "fine"));
    CHECK_IS(deltafs_get_bytes(d, "", 0, NULL, &got), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_get_bytes(d, long_key, 256, NULL, &got), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_get_bytes(d, NULL, 1, NULL, &got), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_get_bytes(d, "a", 1, NULL, NULL), DELTAFS_ERR_INVALID);
    many[0] = many[1] = (deltafs_records *)1;
    CHECK_IS(deltafs_get_many_bytes(d, 2, keys, sizes, NULL, many), DELTAFS_ERR_INVALID);
    CHECK(!many[0] && !many[1]);
    CHECK_IS(deltafs_get_many_bytes(d, 2, NULL, sizes, NULL, many), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_get_many_bytes(d, 2, keys, NULL, NULL, many), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_get_many_bytes(d, 0, NULL, NULL, NULL, NULL), DELTAFS_OK);
    sizes[1] = 255;
    CHECK_IS(deltafs_get_many_bytes(d, 2, keys, sizes, NULL, many), DELTAFS_OK);
    CHECK(many[0]->count == 2 && many[1]->count == 1);
    deltafs_records_destroy(many[0]);
    deltafs_records_destroy(many[1]);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* Values of one size are checked without their keys. */
static void test_value_size(void **state)
{
    const char *path = unit_path("fixed");
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    deltafs_dir *d = unit_create(path, unit_options("keys", "bytes", "schema", "x:f4,y:f4", NULL));

    (void)state;
    rng_init(225);
    CHECK_IS(deltafs_append_bytes(d, "key", 3, "1234567", 7), DELTAFS_ERR_SIZE);
    CHECK_IS(deltafs_append_bytes(d, "key", 3, "123456789", 9), DELTAFS_ERR_SIZE);
    CHECK_IS(deltafs_append_bytes(d, "key", 3, NULL, 0), DELTAFS_ERR_SIZE);
    CHECK_IS(deltafs_epoch_end(d, 1), DELTAFS_ERR_SIZE);
    CHECK_CALL(d, deltafs_append_bytes(d, "key", 3, "12345678", 8), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    CHECK_CALL(d, deltafs_stat(d, &stat), DELTAFS_OK);
    CHECK(stat.value_size == 8 && strcmp(stat.schema, "x:f4,y:f4") == 0 && stat.bytes_raw == 11);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* Calls of one kind on a directory of the other; an append so spoils the epoch. */
static void test_modes(void **state)
{
    const char *paths[2] = {unit_path("numbers"), unit_path("texts")};
    const char *kinds[2] = {"u64", "bytes"};
    const void *key = "1";
    size_t key_size = 1;
    uint64_t number = 1;
    deltafs_records *got;

    (void)state;
    rng_init(226);
    for (int i = 0; i < 2; i++) {
        deltafs_dir *d = unit_create(paths[i], unit_options("keys", kinds[i], NULL));
        for (int wrong = 1; wrong >= 0; wrong--) {
            CHECK_IS(wrong ^ i ? deltafs_append_bytes(d, key, 1, "v", 1) : deltafs_append(d, 1, "v", 1),
                     wrong ? DELTAFS_ERR_MODE : DELTAFS_OK);
            CHECK(!wrong || strstr(deltafs_errmsg(d), i ? "deltafs_append_bytes" : "numbers"));
            CHECK_IS(deltafs_epoch_end(d, 1), wrong ? DELTAFS_ERR_MODE : DELTAFS_OK);
        }
        CHECK_IS(deltafs_get_bytes(d, key, 1, NULL, &got), DELTAFS_ERR_MODE);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        d = unit_open(paths[i]);
        CHECK_IS(deltafs_append_bytes(d, key, 1, "v", 1), DELTAFS_ERR_MODE);
        for (int bytes = 0; bytes < 2; bytes++) {
            got = (deltafs_records *)1;
            CHECK_IS(bytes ? deltafs_get_bytes(d, key, 1, NULL, &got) : deltafs_get(d, 1, NULL, &got),
                     bytes == i ? DELTAFS_OK : DELTAFS_ERR_MODE);
            CHECK(bytes == i ? got->count == 1 : !got);
            deltafs_records_destroy(bytes == i ? got : NULL);
            CHECK_IS(bytes ? deltafs_get_many_bytes(d, 1, &key, &key_size, NULL, &got)
                           : deltafs_get_many(d, 1, &number, NULL, &got),
                     bytes == i ? DELTAFS_OK : DELTAFS_ERR_MODE);
            deltafs_records_destroy(bytes == i ? got : NULL);
        }
        CHECK_CALL(d, deltafs_scan(d, NULL, ignore_record, NULL, NULL), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
    CHECK_IS(deltafs_append_bytes(NULL, key, 1, "v", 1), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_get_bytes(NULL, key, 1, NULL, &got), DELTAFS_ERR_INVALID);
}

/* Subfiles by name. */
static void test_files(void **state)
{
    static const char *const names[] = {"0x1000", "4096", "a file", "\xff\x01", "dir/file", "."};
    const char *path = unit_path("files");
    char long_name[300], got[100];
    deltafs_file *f = NULL;
    size_t size;
    deltafs_dir *d = unit_create(path, unit_options("keys", "bytes", NULL));

    (void)state;
    rng_init(227);
    memset(long_name, 'n', sizeof long_name);
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int i = 0; i < 6; i++) {
            CHECK_IS(deltafs_openat(d, names[i], O_WRONLY | O_CREAT, &f), DELTAFS_OK);
            CHECK_IS(deltafs_write(f, names[i], strlen(names[i])), DELTAFS_OK);
            CHECK_IS(deltafs_write(f, "-", 1), DELTAFS_OK);
            CHECK_IS(deltafs_file_close(f), DELTAFS_OK);
        }
        long_name[255] = '\0';
        CHECK_IS(deltafs_openat(d, long_name, O_WRONLY, &f), DELTAFS_OK);
        CHECK_IS(deltafs_file_close(f), DELTAFS_OK);
        long_name[255] = 'n';
        long_name[256] = '\0';
        CHECK_IS(deltafs_openat(d, long_name, O_WRONLY, &f), DELTAFS_ERR_INVALID);
        CHECK_IS(deltafs_openat(d, "", O_WRONLY, &f), DELTAFS_ERR_INVALID);
        CHECK_CALL(d, deltafs_epoch_end(d, (uint64_t)epoch), DELTAFS_OK);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    for (int i = 0; i < 6; i++) {
        char want[100];
        int n = snprintf(want, sizeof want, "%s-%s-", names[i], names[i]);
        CHECK_IS(deltafs_openat(d, names[i], O_RDONLY, &f), DELTAFS_OK);
        CHECK_IS(deltafs_read(f, got, sizeof got, &size), DELTAFS_OK);
        CHECK_IS(size, n);
        CHECK(memcmp(got, want, (size_t)n) == 0);
        CHECK_IS(deltafs_file_close(f), DELTAFS_OK);
    }
    long_name[255] = '\0';
    CHECK_IS(deltafs_openat(d, long_name, O_RDONLY, &f), DELTAFS_OK);
    CHECK_IS(deltafs_read(f, got, sizeof got, &size), DELTAFS_OK);
    CHECK_IS(size, 0);
    CHECK_IS(deltafs_file_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_openat(d, "a fil", O_RDONLY, &f), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* ---- Damage ---- */

/* Every byte of the logs, changed: nothing wrong is handed out, and verify finds it. */
static void test_flipped(void **state)
{
    static const char *const logs[] = {"flip/00/p00000000.data", "flip/00/p00000000.index"};
    struct rng r = rng_init(228);
    struct model m = {.is_bytes = 1};
    const char *path = unit_path("flip");
    deltafs_dir *d = unit_create(path, unit_options("keys", "bytes", NULL));

    (void)state;
    make_names(&r, 50);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        append_some(&m, d, &r, 50, 100, 10);
        model_end_epoch(&m, d, epoch);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    for (int l = 0; l < 2; l++) {
        size_t n;
        uint8_t *bytes = unit_load(unit_path("%s", logs[l]), &n);
        for (size_t at = rng_below(&r, 20); at < n; at += 1 + rng_below(&r, l ? 20 : 60)) {
            struct deltafs_verify_counts stat = {.struct_size = sizeof stat};
            unit_poke(unit_path("%s", logs[l]), at, bytes[at] ^ (uint8_t)(1 + rng_below(&r, 255)));
            d = unit_open(path);
            model_check_honest(&m, d);
            CHECK_IS(deltafs_verify(d, NULL, NULL, &stat), DELTAFS_ERR_DAMAGED);
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
            unit_poke(unit_path("%s", logs[l]), at, bytes[at]);
        }
        free(bytes);
    }
    check_directory(&m, path, &r);
    model_fini(&m);
    drop_names();
}

/* ---- Forged records: with checksums that are right ---- */

/* A directory with one record, whose data block is replaced by one with `stored` in it. The block has the same length,
 * since nothing is compressed. */
static void forge(const char *path, const uint8_t *stored, size_t size, deltafs_dir **out)
{
    uint8_t value[64];
    size_t n;
    deltafs_dir *d = unit_create(path, unit_options("keys", "bytes", "codec", "none", NULL));

    rng_init(229);
    memset(value, 'v', sizeof value);
    CHECK_CALL(d, deltafs_append_bytes(d, "key", 3, value, size - 4), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    char log[512];
    snprintf(log, sizeof log, "%s/00/p00000000.data", path);
    uint8_t *bytes = unit_load(log, &n);
    uint8_t *at = memmem(bytes, n, "\3keyv", 5);
    CHECK(at != NULL && n > LOG_HEADER_SIZE);
    memcpy(at, stored, size);
    log_seal(log_seed(bytes + 16), bytes + LOG_HEADER_SIZE, n - LOG_HEADER_SIZE);
    unit_save(log, bytes, n);
    free(bytes);
    *out = unit_open(path);
}

/* A stored key that is truncated, empty, or another's. */
static void test_forged(void **state)
{
    static const struct {
        const char *stored;
        size_t size;
        int get, scan;
    } cases[] = {
        {"\3keyvvvv", 8, DELTAFS_OK, DELTAFS_OK},
        {"\377keyvvvv", 8, DELTAFS_ERR_DAMAGED, DELTAFS_ERR_DAMAGED}, /* longer than the record */
        {"\010keyvvvv", 8, DELTAFS_ERR_DAMAGED, DELTAFS_ERR_DAMAGED},
        {"\0keyvvvv", 8, DELTAFS_ERR_DAMAGED, DELTAFS_ERR_DAMAGED},
        /* Another key's: to a point read it looks like one whose hash is alike; a scan knows the hash. */
        {"\3kexvvvv", 8, DELTAFS_ERR_NOT_FOUND, DELTAFS_ERR_DAMAGED},
        {"\2keyvvvv", 8, DELTAFS_ERR_NOT_FOUND, DELTAFS_ERR_DAMAGED},
        {"\7keyvvvv", 8, DELTAFS_ERR_NOT_FOUND, DELTAFS_ERR_DAMAGED},
    };
    struct deltafs_verify_counts stat = {.struct_size = sizeof stat};
    const char *path = unit_path("forged");

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        deltafs_records *got = NULL;
        deltafs_dir *d;
        forge(path, (const uint8_t *)cases[i].stored, cases[i].size, &d);
        CHECK_IS(deltafs_get_bytes(d, "key", 3, NULL, &got), cases[i].get);
        CHECK((got && got->count > 0) == (cases[i].get == DELTAFS_OK));
        CHECK(cases[i].get != DELTAFS_ERR_DAMAGED || strstr(deltafs_errmsg(d), "p00000000.data"));
        deltafs_records_destroy(got);
        CHECK_IS(deltafs_scan(d, NULL, ignore_record, NULL, NULL), cases[i].scan);
        CHECK_IS(deltafs_verify(d, NULL, NULL, &stat), cases[i].scan);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        unit_remove(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random), cmocka_unit_test(test_collisions), cmocka_unit_test(test_many),
        cmocka_unit_test(test_sizes),  cmocka_unit_test(test_value_size), cmocka_unit_test(test_modes),
        cmocka_unit_test(test_files),  cmocka_unit_test(test_flipped),    cmocka_unit_test(test_forged),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
