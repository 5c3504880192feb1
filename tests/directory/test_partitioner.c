/* A caller's own partitioner: directories against the model, with readers that have it and such that have not; who may
 * write to them; and results that are no partitions. */
#include <deltafs/deltafs_query.h>
#include "unit_help.h"

#define PARTITIONS 6

static uint32_t by_digit(uint64_t key, uint32_t partitions, void *arg)
{
    CHECK(arg == &unit_seed);
    return (uint32_t)(key / 10 % partitions);
}

/* Of keys below a million there is a partition. */
static uint32_t by_million(uint64_t key, uint32_t partitions, void *arg)
{
    (void)arg;
    return key < 1000000 ? (uint32_t)(key % partitions) : partitions + 1;
}

static deltafs_options *options_with(const char *name, deltafs_partition_fn fn, void *arg, const char *layout)
{
    deltafs_options *o =
        unit_options("partitions", layout ? "6" : "auto", "layout", layout ? layout : "partitioned", NULL);

    if (name)
        CHECK_IS(deltafs_options_set_partitioner(o, name, fn, arg), DELTAFS_OK);
    return o;
}

static deltafs_options *reopen_options(void)
{
    deltafs_options *o = unit_options("commit", "async", NULL);

    CHECK_IS(deltafs_options_set_partitioner(o, "digit", by_digit, &unit_seed), DELTAFS_OK);
    return o;
}

static void append(struct model *m, deltafs_dir *d, struct rng *r, uint64_t label)
{
    for (int i = 0; i < 2000; i++)
        CHECK_CALL(d, model_append(m, d, i % 9 ? rng_below(r, 500) : rng_next(r), (uint32_t)rng_below(r, 40)),
                   DELTAFS_OK);
    model_end_epoch(m, d, label);
}

/* What is asked for a key, with the reader's options. */
static uint64_t reads_of_key(const char *path, const deltafs_options *o, uint64_t key)
{
    struct deltafs_io_stat io = {.struct_size = sizeof io};
    deltafs_records *records = NULL;
    deltafs_dir *d;

    CHECK_IS(deltafs_open(path, o, &d), DELTAFS_OK);
    CHECK_CALL(d, deltafs_get(d, key, NULL, &records), DELTAFS_OK);
    deltafs_records_destroy(records);
    CHECK_CALL(d, deltafs_io_stat(d, &io), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    return io.reads;
}

static void check_select(struct model *m, deltafs_dir *d)
{
    uint64_t keys[200];
    const struct deltafs_key_list list = {.count = 200, .number = keys};
    const struct deltafs_select_options o = {.struct_size = sizeof o, .keys = &list};
    const struct deltafs_record *row;
    const struct model_record *ignored;
    size_t wanted = 0, rows = 0, count = 1;
    deltafs_select *s;

    for (uint64_t i = 0; i < 200; i++) {
        keys[i] = 3 * i;
        wanted += model_find(m, keys[i], 0, UINT64_MAX, &ignored);
    }
    CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
    for (; count > 0; rows += count)
        CHECK_CALL(d, deltafs_select_next(s, &row, &count), DELTAFS_OK);
    CHECK_IS(rows, wanted);
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
}

static void check_with(struct model *m, const char *path, const deltafs_options *o, struct rng *r)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    deltafs_dir *d;

    CHECK_IS(deltafs_open(path, o, &d), DELTAFS_OK);
    CHECK_CALL(d, deltafs_stat(d, &stat), DELTAFS_OK);
    CHECK(strcmp(stat.partitioner, "digit") == 0);
    model_check_all(m, d, r);
    model_check_scan(m, d, NULL);
    model_check_facts(m, d);
    CHECK_CALL(d, deltafs_refresh(d), DELTAFS_OK);
    check_select(m, d);
    for (int i = 0; i < 100; i++)
        model_check_key(m, d, rng_below(r, 600), i % 2 ? &(struct deltafs_range){1, 2} : NULL);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void test_answers(void **state)
{
    static const char *const layouts[] = {"partitioned", "local"};
    struct rng r = rng_init(421);

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct model m = {0};
        const char *path = unit_path("answers");
        deltafs_options *o = options_with("digit", by_digit, &unit_seed, layouts[i]), *again = reopen_options();
        deltafs_options *other = options_with("other", by_million, NULL, NULL);
        deltafs_dir *d;
        CHECK_IS(deltafs_create(path, o, &d), DELTAFS_OK);
        append(&m, d, &r, 1);
        append(&m, d, &r, 2);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        CHECK_IS(deltafs_reopen(path, again, &d), DELTAFS_OK);
        append(&m, d, &r, 3);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        check_with(&m, path, o, &r);
        check_with(&m, path, NULL, &r);
        check_with(&m, path, other, &r); /* which is not asked */
        /* Each further partition takes a read or more. */
        CHECK(reads_of_key(path, o, m.record[1].key) + PARTITIONS - 1 <= reads_of_key(path, NULL, m.record[1].key));
        deltafs_options_destroy(o);
        deltafs_options_destroy(again);
        deltafs_options_destroy(other);
        unit_remove(path);
        model_fini(&m);
    }
}

/* Without the function, or with another, nobody writes; but repair does its work. */
static void test_writers(void **state)
{
    struct rng r = rng_init(422);
    struct model m = {0};
    const char *path = unit_path("writers");
    deltafs_options *o = options_with("digit", by_digit, &unit_seed, "partitioned");
    deltafs_options *other = options_with("other", by_million, NULL, NULL),
                    *hash = unit_options("partitioner", "hash", NULL);
    deltafs_dir *d = NULL;

    (void)state;
    CHECK_IS(deltafs_create(path, o, &d), DELTAFS_OK);
    append(&m, d, &r, 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(deltafs_reopen(path, NULL, &d), DELTAFS_ERR_OPTION);
    CHECK(strstr(deltafs_errmsg(NULL), path) && strstr(deltafs_errmsg(NULL), "'digit'"));
    CHECK_IS(deltafs_reopen(path, hash, &d), DELTAFS_ERR_OPTION);
    CHECK_IS(deltafs_reopen(path, other, &d), DELTAFS_ERR_OPTION);
    CHECK(strstr(deltafs_errmsg(NULL), "'other'") && strstr(deltafs_errmsg(NULL), "'digit'"));
    unit_cut_manifest(path, strlen("Deltafs version=1 uuid=01234567-89ab-4cde-8f01-23456789abcd ~01234567\n") +
                                strlen("Directory keys=u64 partitioner=caller partitions=6 value_size=any name=digit "
                                       "~01234567\n"));
    struct deltafs_repair_options repair = {.struct_size = sizeof repair, .has_label = 1, .label = 1};
    CHECK_IS(deltafs_repair(path, &repair, NULL, NULL), DELTAFS_OK);
    check_with(&m, path, o, &r);
    deltafs_options_destroy(o);
    deltafs_options_destroy(other);
    deltafs_options_destroy(hash);
    model_fini(&m);
}

/* Keys stay in their partitions, which the compaction need not know. */
static void test_compact(void **state)
{
    struct rng r = rng_init(423);
    struct model m = {0};
    const char *path = unit_path("from"), *to = unit_path("to");
    deltafs_options *o = options_with("digit", by_digit, &unit_seed, "partitioned");
    deltafs_dir *d = NULL;

    (void)state;
    CHECK_IS(deltafs_create(path, o, &d), DELTAFS_OK);
    for (uint64_t label = 1; label < 5; label++)
        append(&m, d, &r, label);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(deltafs_compact(path, to, NULL), DELTAFS_OK);
    check_with(&m, to, o, &r);
    check_with(&m, to, NULL, &r);
    deltafs_options_destroy(o);
    model_fini(&m);
}

static void test_results(void **state)
{
    const uint64_t keys[] = {1, 999999, 1000000, 2}, one = 5;
    deltafs_options *o = options_with("million", by_million, NULL, "partitioned");
    deltafs_dir *d = NULL;

    (void)state;
    CHECK_IS(deltafs_create(unit_path("results"), o, &d), DELTAFS_OK);
    CHECK_CALL(d, deltafs_append_many(d, 2, keys, 8, keys, 8, 8), DELTAFS_OK);
    CHECK_CALL(d, deltafs_append_many(d, 4, keys, 8, keys, 8, 8), DELTAFS_ERR_INVALID);
    CHECK(strstr(deltafs_errmsg(d), "returns 7 for the key 1000000"));
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_ERR_INVALID); /* nothing of it is committed */
    CHECK_CALL(d, deltafs_append(d, one, &one, 8), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    deltafs_options_destroy(o);
}

static void test_names(void **state)
{
    static const char *const bad[] = {"", "hash", "range", "two words", "a=b", "0123456789012345678901234567890123"};
    deltafs_options *o = unit_options("keys", "bytes", NULL);
    const char *text;
    deltafs_dir *d;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_IS(deltafs_options_set_partitioner(o, bad[i], by_million, NULL), DELTAFS_ERR_OPTION);
    CHECK_IS(deltafs_options_set_partitioner(o, "x", NULL, NULL), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_options_get(o, "partitioner", &text), DELTAFS_OK);
    CHECK(strcmp(text, "hash") == 0);
    CHECK_IS(deltafs_options_set_partitioner(o, "million", by_million, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_options_get(o, "partitioner", &text), DELTAFS_OK);
    CHECK(strcmp(text, "million") == 0);
    CHECK_IS(deltafs_create(unit_path("names"), o, &d), DELTAFS_ERR_OPTION);
    CHECK(strstr(deltafs_errmsg(NULL), "keys=bytes"));
    CHECK_IS(deltafs_options_set(o, "partitioner", "million"), DELTAFS_ERR_OPTION); /* only with its function */
    deltafs_options_destroy(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers), cmocka_unit_test(test_writers), cmocka_unit_test(test_compact),
        cmocka_unit_test(test_results), cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
