/* Columns of records that a get or a scan returned: stored and computed ones, of records in any order of epochs, and
 * within a scan; what cannot be computed names the epoch. */
#include <stdlib.h>
#include <deltafs/deltafs_query.h>
#include "unit_help.h"

#define KEYS   700
#define EPOCHS 3

static void set_number(const char *name, uint64_t from, double v)
{
    const struct deltafs_attribute a = {
        .struct_size = sizeof a, .name = name, .from = from, .count = 1, .type = DELTAFS_ATTRIBUTE_F8, .value = &v};

    CHECK_IS(deltafs_attribute_set_closed(unit_path("d"), &a), DELTAFS_OK);
}

static void set_computed(const char *name, uint64_t from, const char *expression)
{
    const struct deltafs_attribute a = {
        .struct_size = sizeof a, .name = name, .from = from, .type = DELTAFS_ATTRIBUTE_EXPRESSION, .value = expression};

    CHECK_IS(deltafs_attribute_set_closed(unit_path("d"), &a), DELTAFS_OK);
}

struct stored {
    float v;
    int32_t n;
};

static struct stored stored_of(uint64_t key, uint64_t label)
{
    return (struct stored){(float)key / 8 - (float)label, (int32_t)(key * 3 % 100) - 50};
}

/* `factor` is label / 10 + 2. */
static void make(void)
{
    deltafs_dir *d = unit_create(unit_path("d"), unit_options("schema", "v:f4,n:i4", "partitions", "3", NULL));

    for (uint64_t label = 0; label < 10 * EPOCHS; label += 10) {
        for (uint64_t key = 0; key < KEYS; key++) {
            struct stored s = stored_of(key, label);
            CHECK_CALL(d, deltafs_append(d, key, &s, 8), DELTAFS_OK);
        }
        CHECK_CALL(d, deltafs_epoch_end(d, label), DELTAFS_OK);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    for (uint64_t i = 0; i < EPOCHS; i++)
        set_number("factor", 10 * i, (double)i + 2);
    set_computed("twice", 0, "factor * n + epoch");
}

/* Rows of the schema v:f4,n:i4,twice:f8. */
static void check_rows(const struct deltafs_record *row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct stored s = stored_of(row[i].key, row[i].label);
        double twice;
        CHECK_IS(row[i].size, 16);
        CHECK(memcmp(row[i].value, &s, 8) == 0);
        memcpy(&twice, (const char *)row[i].value + 8, 8);
        CHECK(twice == ((double)row[i].label / 10 + 2) * s.n + (double)row[i].label);
        CHECK((const char *)row[i].value == (const char *)row[0].value + 16 * i);
    }
}

/* The records of all keys, key by key, so that each has another label than the one before. */
static void test_get(void **state)
{
    static struct deltafs_record all[KEYS * EPOCHS];
    static deltafs_records *found[KEYS];
    static uint64_t keys[KEYS];
    const struct deltafs_record *row;
    deltafs_columns *c;
    size_t n = 0;

    (void)state;
    deltafs_dir *d = unit_open(unit_path("d"));
    for (uint64_t i = 0; i < KEYS; i++)
        keys[i] = KEYS - 1 - i;
    CHECK_CALL(d, deltafs_get_many(d, KEYS, keys, NULL, found), DELTAFS_OK);
    for (size_t i = 0; i < KEYS; i++)
        for (size_t k = 0; k < found[i]->count; k++)
            all[n++] = found[i]->record[k];
    CHECK_IS(n, KEYS * EPOCHS);
    CHECK_CALL(d, deltafs_columns_open(d, NULL, &c), DELTAFS_OK);
    CHECK(strcmp(deltafs_columns_schema(c), "v:f4,n:i4,twice:f8") == 0);
    const size_t some[] = {0, 1, 2, n};
    for (size_t s = 0; s < sizeof some / sizeof some[0]; s++) {
        CHECK_IS(deltafs_columns_rows(c, some[s], all, &row), DELTAFS_OK);
        for (size_t i = 0; i < some[s]; i++)
            CHECK(row[i].key == all[i].key && row[i].label == all[i].label);
        check_rows(row, some[s]);
    }
    CHECK_IS(deltafs_columns_close(c), DELTAFS_OK);
    /* Some columns, in another order. */
    CHECK_CALL(d, deltafs_columns_open(d, "twice,factor,n", &c), DELTAFS_OK);
    CHECK(strcmp(deltafs_columns_schema(c), "twice:f8,factor:f8,n:i4") == 0);
    CHECK_IS(deltafs_columns_rows(c, n, all, &row), DELTAFS_OK);
    for (size_t i = 0; i < n; i++) {
        struct stored s = stored_of(all[i].key, all[i].label);
        const double factor = (double)all[i].label / 10 + 2, twice = factor * s.n + (double)all[i].label;
        CHECK_IS(row[i].size, 20);
        CHECK(memcmp(row[i].value, &twice, 8) == 0);
        CHECK(memcmp((const char *)row[i].value + 8, &factor, 8) == 0);
        CHECK(memcmp((const char *)row[i].value + 16, &s.n, 4) == 0);
    }
    CHECK_IS(deltafs_columns_close(c), DELTAFS_OK);
    /* Nothing is to be done. */
    CHECK_CALL(d, deltafs_columns_open(d, "v,n", &c), DELTAFS_OK);
    CHECK_IS(deltafs_columns_rows(c, n, all, &row), DELTAFS_OK);
    CHECK(row == all);
    CHECK_IS(deltafs_columns_close(c), DELTAFS_OK);
    for (size_t i = 0; i < KEYS; i++)
        deltafs_records_destroy(found[i]);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

struct scan {
    deltafs_columns *columns;
    size_t n;
};

static int scanned(const struct deltafs_record *record, void *arg)
{
    struct scan *s = arg;
    const struct deltafs_record *row;

    CHECK_IS(deltafs_columns_rows(s->columns, 1, record, &row), DELTAFS_OK);
    check_rows(row, 1);
    s->n++;
    return 0;
}

static void test_scan(void **state)
{
    struct scan s = {0};

    (void)state;
    deltafs_dir *d = unit_open(unit_path("d"));
    CHECK_CALL(d, deltafs_columns_open(d, NULL, &s.columns), DELTAFS_OK);
    CHECK_CALL(d, deltafs_scan(d, NULL, scanned, &s, NULL), DELTAFS_OK);
    CHECK_IS(s.n, KEYS * EPOCHS);
    CHECK_IS(deltafs_columns_close(s.columns), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void check_message(int status, int wanted, const char *message)
{
    CHECK_IS(status, wanted);
    if (!strstr(deltafs_errmsg(NULL), message))
        fail_msg("'%s' is not in the message: %s", message, deltafs_errmsg(NULL));
}

static void test_refused(void **state)
{
    const struct stored s = stored_of(1, 0);
    const struct deltafs_record records[] = {{.key = 1, .label = 10, .value = &s, .size = 8},
                                             {.key = 1, .label = 0, .value = &s, .size = 8}},
                                short_one = {.key = 1, .label = 10, .value = &s, .size = 4};
    const struct deltafs_record *row;
    deltafs_columns *c;

    (void)state;
    set_number("later", 10, 1);
    deltafs_dir *d = unit_open(unit_path("d"));
    check_message(deltafs_columns_open(d, "v,w,n", &c), DELTAFS_ERR_INVALID,
                  "fields: offset 2: no column or attribute is named 'w'");
    check_message(deltafs_columns_open(d, "v,,n", &c), DELTAFS_ERR_INVALID, "fields: offset 2: ");
    check_message(deltafs_columns_open(d, NULL, NULL), DELTAFS_ERR_INVALID, "out");
    CHECK_IS(deltafs_columns_open(NULL, NULL, &c), DELTAFS_ERR_INVALID);
    CHECK_CALL(d, deltafs_columns_open(d, "v,later", &c), DELTAFS_OK);
    CHECK_IS(deltafs_columns_rows(c, 1, records, &row), DELTAFS_OK);
    check_message(deltafs_columns_rows(c, 2, records, &row), DELTAFS_ERR_INVALID,
                  "epoch 0: fields: offset 2: the attribute 'later' is not set for this epoch");
    check_message(deltafs_columns_rows(c, 1, &short_one, &row), DELTAFS_ERR_SIZE, "a value of 4 bytes");
    check_message(deltafs_columns_rows(c, 1, NULL, &row), DELTAFS_ERR_INVALID, "must be given");
    check_message(deltafs_columns_rows(NULL, 1, records, &row), DELTAFS_ERR_INVALID, "must be given");
    CHECK_IS(deltafs_columns_rows(c, 1, records, &row), DELTAFS_OK);
    CHECK_IS(deltafs_columns_close(c), DELTAFS_OK);
    CHECK_IS(deltafs_columns_close(NULL), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static int setup(void **state)
{
    int rc = unit_setup(state);

    if (rc == 0)
        make();
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_get),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, setup, unit_teardown);
}
