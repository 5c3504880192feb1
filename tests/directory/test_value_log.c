/* Records that stay with their writer (layout=local): places, what is read for a query, values of all sizes, places
 * that lead elsewhere, and the repair of value logs. */
#include <errno.h>
#include <unistd.h>
#include "base/coding.h"
#include "base/hash.h"
#include "directory/format/directory_format.h"
#include "directory/format/value_log.h"
#include "unit_help.h"
#include "unit_io.h"

#define NAMES 300

static char names[NAMES][24];

static deltafs_dir *create(const char *path, const char *keys, const char *value_size, const char *partitions)
{
    return unit_create(path, unit_options("layout", "local", "keys", keys, "value_size", value_size, "partitions",
                                          partitions, "memory", "16M", NULL));
}

static deltafs_dir *reopen(const char *path)
{
    deltafs_options *o = unit_options("memory", "16M", NULL);
    deltafs_dir *d = NULL;

    CHECK_IS(deltafs_reopen(path, o, &d), DELTAFS_OK);
    deltafs_options_destroy(o);
    return d;
}

static void check(struct model *m, const char *path)
{
    struct rng r = {5};
    deltafs_dir *d = unit_open(path);

    if (m->is_bytes)
        for (int i = 0; i < NAMES; i++)
            model_check_name(m, d, names[i], strlen(names[i]), NULL);
    else
        model_check_all(m, d, &r);
    model_check_scan(m, d, NULL);
    model_check_facts(m, d);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* ---- Places ---- */

static void test_places(void **state)
{
    static const uint32_t writers[] = {1, 2, 3, 4, 1000, 1024, 1 << 20};
    struct rng r = rng_init(101);

    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct manifest_job job = {.first = (uint32_t)rng_below(&r, 5000),
                                   .writers = writers[rng_below(&r, sizeof writers / sizeof writers[0])],
                                   .bits = (unsigned)rng_below(&r, POSITION_BITS_MAX + 1)};
        uint64_t end = position_offset_end(&job) / VALUES_ALIGN;
        struct position in = {.writer = job.first + (uint32_t)rng_below(&r, job.writers),
                              .offset = (i % 7 ? rng_below(&r, end) : end - 1) * VALUES_ALIGN,
                              .index = (uint32_t)rng_below(&r, UINT64_C(1) << job.bits)},
                        out;
        CHECK_IS(position_unpack(&job, position_pack(&job, &in), &out), 0);
        CHECK(in.writer == out.writer && in.offset == out.offset && in.index == out.index);
        in.writer = job.first + job.writers;
        if (job.writers == 3 || job.writers == 1000)
            CHECK_IS(position_unpack(&job, position_pack(&job, &in), &out), -1);
    }
}

/* ---- Writing and reading ---- */

/* One read more for each epoch than with layout=partitioned. */
static void test_reads_of_a_trajectory(void **state)
{
    enum { EPOCHS = 20 };
    struct rng r = rng_init(102);
    struct model m = {0};
    const char *path = unit_path("reads");
    deltafs_dir *d = create(path, "u64", "40", "3");

    (void)state;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        for (uint64_t key = 0; key < 9000; key++)
            CHECK_CALL(d, model_append(&m, d, key * 7, 40), DELTAFS_OK);
        model_end_epoch(&m, d, epoch);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    for (int i = 0; i < 20; i++) {
        struct deltafs_io_stat io = {.struct_size = sizeof io};
        d = unit_open(path);
        model_check_key(&m, d, 7 * rng_below(&r, 9000), NULL);
        CHECK_CALL(d, deltafs_io_stat(d, &io), DELTAFS_OK);
        CHECK(io.reads <= 2 + 3 * EPOCHS);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
    check(&m, path);
    model_fini(&m);
}

static uint32_t random_size(struct rng *r, const char *value_size)
{
    if (strcmp(value_size, "any") != 0)
        return (uint32_t)atoi(value_size);
    switch (rng_below(r, 200)) {
    case 0:
        return (1u << 20) - (uint32_t)rng_below(r, 300);
    case 1:
        return (uint32_t)rng_below(r, 100000);
    default:
        return (uint32_t)rng_below(r, 60);
    }
}

static void append(struct model *m, deltafs_dir *d, struct rng *r, const char *value_size, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *name = names[rng_below(r, NAMES)];
        uint32_t size = random_size(r, value_size);
        if (m->is_bytes && size > (1u << 20) - 64)
            size -= 64;
        CHECK_CALL(d,
                   m->is_bytes ? model_append_bytes(m, d, name, strlen(name), size)
                               : model_append(m, d, rng_below(r, 2000), size),
                   DELTAFS_OK);
    }
}

/* All kinds, with epochs that are discarded, several jobs, and a reader that is open all the time. */
static void test_kinds(void **state)
{
    static const struct {
        const char *keys, *value_size;
        uint32_t records;
    } kinds[] = {{"u64", "40", 3000}, {"u64", "0", 900},     {"u64", "5000", 300},
                 {"u64", "any", 500}, {"bytes", "any", 400}, {"bytes", "12", 900}};

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct rng r = rng_init(110 + k);
        struct model m = {.is_bytes = kinds[k].keys[0] == 'b'};
        const char *path = unit_path("kind%zu", k);
        deltafs_dir *d = create(path, kinds[k].keys, kinds[k].value_size, "2"), *reader = unit_open(path);
        for (uint64_t epoch = 1; epoch <= 6; epoch++) {
            append(&m, d, &r, kinds[k].value_size, epoch == 3 ? 0 : kinds[k].records);
            model_end_epoch(&m, d, epoch);
            append(&m, d, &r, kinds[k].value_size, 100);
            CHECK_CALL(d, deltafs_epoch_cancel(d, "enough"), DELTAFS_OK);
            CHECK_IS(deltafs_epoch_end(d, epoch + 100), DELTAFS_ERR_CANCELLED);
            model_discard(&m);
            CHECK_CALL(reader, deltafs_refresh(reader), DELTAFS_OK);
            model_check_scan(&m, reader, NULL);
            if (epoch % 2 == 0) {
                CHECK_IS(deltafs_close(d), DELTAFS_OK);
                d = reopen(path);
            }
        }
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        CHECK_IS(deltafs_close(reader), DELTAFS_OK);
        check(&m, path);
        model_fini(&m);
    }
}

/* A byte stands before each value, and yet the longest is as long as it ever was. */
static void test_longest_value(void **state)
{
    static const char *const sizes[] = {"1M", "any"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct model m = {0};
        const char *path = unit_path("long%d", i);
        deltafs_dir *d = create(path, "u64", sizes[i], "1");
        for (uint64_t key = 0; key < 3; key++)
            CHECK_CALL(d, model_append(&m, d, key, 1 << 20), DELTAFS_OK);
        model_end_epoch(&m, d, 1);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        check(&m, path);
        model_fini(&m);
    }
}

/* Where records are is the directory's own. */
static void test_reopen_option(void **state)
{
    static const char *const places[] = {"local", "partitioned"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *path = unit_path("option%d", i);
        deltafs_dir *d = unit_create(path, unit_options("layout", places[i], NULL));
        struct deltafs_stat stat = {.struct_size = sizeof stat};
        deltafs_options *o = unit_options("layout", places[!i], NULL);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        CHECK_IS(deltafs_reopen(path, o, &d), DELTAFS_ERR_OPTION);
        CHECK(strstr(deltafs_errmsg(NULL), places[i]));
        deltafs_options_destroy(o);
        CHECK_IS(deltafs_close(reopen(path)), DELTAFS_OK);
        d = unit_open(path);
        CHECK_CALL(d, deltafs_stat(d, &stat), DELTAFS_OK);
        assert_string_equal(stat.layout, places[i]);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
}

/* ---- What leads elsewhere ---- */

static uint32_t seed_of(const uint8_t *log)
{
    return log_seed(log + 16);
}

/* A hostile data log, with right checksums, in which two records have each other's places: the byte before the value
 * tells. A third is in a log that no writer has, a fourth beyond the end of one. */
static void test_wrong_places(void **state)
{
    const char *path = unit_path("wrong"), *data = unit_path("wrong/00/p00000000.data");
    deltafs_dir *d = unit_create(path, unit_options("layout", "local", "value_size", "4", "codec", "none", NULL));
    deltafs_records *got = NULL;
    uint64_t keys[5] = {0};
    size_t n;

    (void)state;
    for (uint64_t key = 1, k = 0; k < 5; key++)
        if (k == 0 || (uint8_t)hash_key(key) != (uint8_t)hash_key(keys[k - 1])) {
            uint32_t value = (uint32_t)key;
            keys[k++] = key;
            CHECK_CALL(d, deltafs_append(d, key, &value, sizeof value), DELTAFS_OK);
        }
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    uint8_t *log = unit_load(data, &n), *places = log + LOG_HEADER_SIZE + BLOCK_HEADER_SIZE;
    uint64_t first = get_u64(places), second = get_u64(places + 8);
    CHECK_IS(n, LOG_HEADER_SIZE + BLOCK_HEADER_SIZE + 5 * POSITION_SIZE);
    put_u64(places, second);
    put_u64(places + 8, first);
    put_u64(places + 16, UINT64_MAX);
    put_u64(places + 24, get_u64(places + 24) | UINT64_C(1) << 40);
    log_seal(seed_of(log), log + LOG_HEADER_SIZE, BLOCK_HEADER_SIZE + 5 * POSITION_SIZE);
    unit_save(data, log, n);
    free(log);
    d = unit_open(path);
    for (int i = 0; i < 4; i++) {
        CHECK_IS(deltafs_get(d, keys[i], NULL, &got), DELTAFS_ERR_DAMAGED);
        CHECK(strstr(deltafs_errmsg(d), ".values") && strstr(deltafs_errmsg(d), "offset"));
        CHECK(got && got->count == 0 && got->missing_count == 1 && got->missing[0] == 1);
        deltafs_records_destroy(got);
    }
    CHECK_CALL(d, deltafs_get(d, keys[4], NULL, &got), DELTAFS_OK);
    CHECK(got->count == 1 && memcmp(got->record[0].value, &(uint32_t){(uint32_t)keys[4]}, 4) == 0);
    deltafs_records_destroy(got);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* A value log that cannot be opened for the first of two blocks, and can for the second: no bytes are taken from the
 * block that was read before. What is in that block, the places, looks like a value of the first key here. */
static void test_opened_late(void **state)
{
    const char *path = unit_path("late");
    deltafs_dir *d = unit_create(path, unit_options("layout", "local", "value_size", "5000", "codec", "none", NULL));
    uint64_t keys[2] = {1, 1};
    uint8_t value[2][5000];
    deltafs_records *got[2];

    (void)state;
    while ((uint8_t)hash_key(keys[0]) != LOG_HEADER_SIZE / VALUES_ALIGN)
        keys[0]++;
    keys[1] = keys[0] + 1;
    for (int i = 0; i < 2; i++) {
        memset(value[i], i + 1, sizeof value[i]);
        CHECK_CALL(d, deltafs_append(d, keys[i], value[i], sizeof value[i]), DELTAFS_OK);
    }
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_io_begin();
    d = unit_open(path);
    unit_io_fail(OP_OPEN, ".values", 0, 1, EMFILE);
    int status = deltafs_get_many(d, 2, keys, NULL, got);
    CHECK_IS(unit_io_failures(), 1);
    CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_IO);
    for (int i = 0; i < 2; i++) {
        CHECK(got[i] && got[i]->count + got[i]->missing_count == 1 && (got[i]->count == 1 || status != DELTAFS_OK));
        CHECK(got[i]->count == 0 || (got[i]->record[0].size == sizeof value[i] &&
                                     memcmp(got[i]->record[0].value, value[i], sizeof value[i]) == 0));
        deltafs_records_destroy(got[i]);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_io_end();
}

/* Two jobs' logs are exchanged, or one is missing, truncated, or has another byte anywhere. */
static void test_damage(void **state)
{
    struct rng r = rng_init(130);
    struct model m = {0};
    const char *path = unit_path("damage"),
               *log[2] = {unit_path("damage/00/v00000000.values"), unit_path("damage/01/v00000001.values")};
    deltafs_dir *d = create(path, "u64", "any", "2");
    uint8_t *bytes[2];
    size_t n[2];

    (void)state;
    for (uint64_t epoch = 1; epoch <= 4; epoch++) {
        for (int i = 0; i < 300; i++)
            CHECK_CALL(d, model_append(&m, d, rng_below(&r, 100), (uint32_t)rng_below(&r, 40)), DELTAFS_OK);
        model_end_epoch(&m, d, epoch);
        if (epoch == 2) {
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
            d = reopen(path);
        }
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    for (int i = 0; i < 2; i++)
        bytes[i] = unit_load(log[i], &n[i]);
    for (int i = 0; i < 60; i++) {
        int which = i % 2;
        size_t at = (size_t)rng_below(&r, n[which] - LOG_HEADER_SIZE) + LOG_HEADER_SIZE;
        if (i == 0)
            unlink(log[which]);
        else if (i < 3)
            unit_save(log[which], bytes[!which], n[!which]);
        else if (i < 20)
            unit_save(log[which], bytes[which], at);
        else
            unit_poke(log[which], at, (uint8_t)~bytes[which][at]);
        d = unit_open(path);
        if (i != 0 && i < 3)
            CHECK(model_check_honest(&m, d) > 0);
        else
            model_check_honest(&m, d);
        struct deltafs_verify_counts stat = {.struct_size = sizeof stat};
        CHECK_IS(deltafs_verify(d, NULL, NULL, &stat), DELTAFS_ERR_DAMAGED);
        CHECK(strstr(deltafs_errmsg(d), log[which]));
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        unit_save(log[which], bytes[which], n[which]);
    }
    check(&m, path);
    for (int i = 0; i < 2; i++)
        free(bytes[i]);
    model_fini(&m);
}

/* ---- Repair ---- */

static char said[4096];

static void note(int status, const char *message, void *arg)
{
    size_t n = strlen(said);

    (void)status;
    (void)arg;
    snprintf(said + n, sizeof said - n, "%s\n", message);
}

static int repair(const char *path, const struct deltafs_repair_options *wish)
{
    said[0] = '\0';
    return deltafs_repair(path, wish, note, NULL);
}

static void check_said(const char *text)
{
    if (!strstr(said, text))
        fail_msg("seed %llu: no '%s' in '%s'", (unsigned long long)unit_seed, text, said);
}

/* A job that died behind its second epoch, with a third in its logs; the model has that as well. */
static void make_cut_short(struct model *m, const char *path)
{
    struct rng r = rng_init(140);
    char made[300];

    snprintf(made, sizeof made, "%s.made", path);
    deltafs_dir *d = unit_create(made, unit_options("layout", "local", "value_size", "40", "partitions", "2", "commit",
                                                    "async", "threads", "0", NULL));
    for (uint64_t epoch = 1; epoch <= 3; epoch++) {
        append(m, d, &r, "40", 700);
        CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
        if (epoch == 2)
            CHECK_CALL(d, deltafs_epoch_wait(d), DELTAFS_OK);
        model_keep(m, epoch);
    }
    unit_copy(made, path);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_remove(made);
}

/* The same without the third. */
static void forget_last(struct model *m)
{
    m->count = m->committed = 2 * 700;
    m->epochs = 2;
}

static void poke_header(const char *log)
{
    size_t n;
    uint8_t *bytes = unit_load(log, &n);

    unit_poke(log, 20, (uint8_t)~bytes[20]);
    free(bytes);
}

/* What is behind the last epoch is truncated, garbage behind that as well; and a header is restored. */
static void test_repair(void **state)
{
    struct model m = {0};
    const char *path = unit_path("repair"), *log = unit_path("repair/00/v00000000.values");
    static const struct deltafs_repair_options dry = {.struct_size = sizeof dry, .dry_run = 1};
    size_t before, after;

    (void)state;
    make_cut_short(&m, path);
    forget_last(&m);
    check(&m, path);
    uint8_t *bytes = unit_load(log, &before), *more = malloc(before + 777);
    memcpy(more, bytes, before);
    memset(more + before, 0x5a, 777);
    unit_save(log, more, before + 777);
    poke_header(log);
    CHECK_IS(repair(path, &dry), DELTAFS_OK);
    check_said("v00000000.values: data after the last committed epoch is truncated");
    CHECK_IS(repair(path, NULL), DELTAFS_OK);
    check_said("v00000000.values: data after the last committed epoch is truncated");
    check_said("it is written again, from what the manifest says");
    free(unit_load(log, &after));
    CHECK(after < before && after > before / 2);
    check(&m, path);
    CHECK_IS(repair(path, &dry), DELTAFS_OK);
    assert_string_equal(said, "");
    free(bytes);
    free(more);
    model_fini(&m);
}

/* A job that died in its third epoch, and one that wrote that again and died, too: each job's logs count for its own
 * epochs. (Blocks of the first were added to what the second had, and epochs that were whole were said to lack
 * something.) */
static void test_repair_jobs(void **state)
{
    struct model m = {0};
    struct rng r = rng_init(141);
    const char *path = unit_path("jobs"), *copy = unit_path("jobs_copy");

    (void)state;
    make_cut_short(&m, path);
    forget_last(&m);
    deltafs_dir *d = reopen(path);
    for (uint64_t epoch = 3; epoch < 5; epoch++) {
        append(&m, d, &r, "40", 300);
        model_end_epoch(&m, d, epoch);
    }
    unit_copy(path, copy);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(repair(copy, NULL), DELTAFS_OK);
    check_said("v00000000.values: data after the last committed epoch is truncated");
    if (strstr(said, "--drop-from"))
        fail_msg("%s", said);
    check(&m, copy);
    model_fini(&m);
}

/* With its label the epoch is kept, and nothing of it truncated. */
static void test_repair_keeps(void **state)
{
    static const struct deltafs_repair_options label = {.struct_size = sizeof label, .has_label = 1, .label = 3};
    struct model m = {0};
    const char *path = unit_path("keep"), *log = unit_path("keep/00/v00000000.values");
    size_t before, after;

    (void)state;
    make_cut_short(&m, path);
    free(unit_load(log, &before));
    CHECK_IS(repair(path, &label), DELTAFS_OK);
    check_said("is committed: 700 records labelled 3");
    free(unit_load(log, &after));
    CHECK_IS(after, before);
    check(&m, path);
    model_fini(&m);
}

/* The epoch's values are not all there: it is discarded. */
static void test_repair_gives_up(void **state)
{
    static const struct deltafs_repair_options label = {.struct_size = sizeof label, .has_label = 1, .label = 3};
    struct model m = {0};
    const char *path = unit_path("discard"), *log = unit_path("discard/00/v00000000.values");
    size_t n;

    (void)state;
    make_cut_short(&m, path);
    forget_last(&m);
    uint8_t *bytes = unit_load(log, &n);
    unit_save(log, bytes, n - 1);
    free(bytes);
    CHECK_IS(repair(path, &label), DELTAFS_ERR_NOT_FOUND);
    check_said("is incomplete");
    CHECK_IS(repair(path, NULL), DELTAFS_OK);
    check(&m, path);
    model_fini(&m);
}

/* A committed epoch's values are not all there: nothing is truncated, and it can be discarded. */
static void test_repair_drops(void **state)
{
    static const struct deltafs_repair_options drop = {.struct_size = sizeof drop, .has_drop_from = 1, .drop_from = 2},
                                               wrong = {
                                                   .struct_size = sizeof wrong, .has_drop_from = 1, .drop_from = 99};
    struct model m = {0};
    const char *path = unit_path("drop"), *log = unit_path("drop/00/v00000000.values");
    size_t n, after;

    (void)state;
    make_cut_short(&m, path);
    uint8_t *bytes = unit_load(log, &n);
    unit_save(log, bytes, n / 2);
    free(bytes);
    CHECK_IS(repair(path, &wrong), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(repair(path, &drop), DELTAFS_OK);
    check_said("epoch 2, of 700 records, is discarded: its label was given");
    free(unit_load(log, &after));
    CHECK(after <= n / 2);
    m.count = m.committed = 700;
    m.epochs = 1;
    check(&m, path);
    model_fini(&m);
}

static void test_repair_truncates_nothing(void **state)
{
    struct model m = {0};
    const char *path = unit_path("remark"), *log = unit_path("remark/00/v00000000.values");
    size_t n, after;

    (void)state;
    make_cut_short(&m, path);
    uint8_t *bytes = unit_load(log, &n);
    unit_save(log, bytes, n / 2);
    free(bytes);
    CHECK_IS(repair(path, NULL), DELTAFS_OK);
    free(unit_load(log, &after));
    CHECK_IS(after, n / 2);
    model_fini(&m);
}

/* A writer whose log cannot be made, or written, loses its epoch and no other. */
static void test_faults(void **state)
{
    static const enum unit_op ops[] = {OP_OPEN, OP_WRITE, OP_SYNC};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct rng r = rng_init(150);
        struct model m = {0};
        const char *path = unit_path("fault%d", i);
        unit_io_begin();
        deltafs_dir *d = unit_create(path, unit_options("layout", "local", "value_size", "40", "sync", "commit", NULL));
        for (uint64_t epoch = 1; epoch <= 4; epoch++) {
            unit_io_fail(ops[i], ".values", 0, epoch % 2, 5);
            append(&m, d, &r, "40", 500);
            int status = deltafs_epoch_end(d, epoch);
            /* What is open need not be opened again. */
            if (status == DELTAFS_OK) {
                model_keep(&m, epoch);
            } else {
                CHECK_IS(status, DELTAFS_ERR_IO);
                CHECK(strstr(deltafs_errmsg(d), ".values"));
                model_discard(&m);
            }
            CHECK(status != DELTAFS_OK || epoch % 2 == 0 || (ops[i] == OP_OPEN && epoch > 1));
        }
        unit_io_fail(OP_OPEN, ".values", 0, 0, 0);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        unit_io_end();
        check(&m, path);
        model_fini(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),        cmocka_unit_test(test_reads_of_a_trajectory),
        cmocka_unit_test(test_kinds),         cmocka_unit_test(test_longest_value),
        cmocka_unit_test(test_reopen_option), cmocka_unit_test(test_wrong_places),
        cmocka_unit_test(test_opened_late),   cmocka_unit_test(test_damage),
        cmocka_unit_test(test_repair),        cmocka_unit_test(test_repair_jobs),
        cmocka_unit_test(test_repair_keeps),  cmocka_unit_test(test_repair_gives_up),
        cmocka_unit_test(test_repair_drops),  cmocka_unit_test(test_repair_truncates_nothing),
        cmocka_unit_test(test_faults),
    };

    for (int i = 0; i < NAMES; i++)
        snprintf(names[i], sizeof names[i], "name-%d", i);
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
