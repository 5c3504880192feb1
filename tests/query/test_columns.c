/* Columns of records that a get or a scan returned: stored and computed ones, of records in any order of epochs, and
 * within a scan; what cannot be computed names the epoch. */
#include <math.h>
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

static void set_text(const char *name, uint64_t from)
{
    const struct deltafs_attribute a = {
        .struct_size = sizeof a, .name = name, .from = from, .type = DELTAFS_ATTRIBUTE_TEXT, .value = "text"};

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
    set_text("word", 10);
    set_number("word", 20, 1);
    deltafs_dir *d = unit_open(unit_path("d"));
    check_message(deltafs_columns_open(d, "v,w,n", &c), DELTAFS_ERR_INVALID,
                  "fields: offset 2: no column or attribute is named 'w'");
    check_message(deltafs_columns_open(d, "v,,n", &c), DELTAFS_ERR_INVALID, "fields: offset 2: ");
    check_message(deltafs_columns_open(d, NULL, NULL), DELTAFS_ERR_INVALID, "out");
    CHECK_IS(deltafs_columns_open(NULL, NULL, &c), DELTAFS_ERR_INVALID);
    CHECK_CALL(d, deltafs_columns_open(d, "v,word", &c), DELTAFS_OK);
    CHECK_IS(deltafs_columns_rows(c, 1, records + 1, &row), DELTAFS_OK);
    check_message(deltafs_columns_rows(c, 2, records, &row), DELTAFS_ERR_INVALID,
                  "epoch 10: fields: offset 2: expected a number, but the attribute 'word' is a text");
    check_message(deltafs_columns_rows(c, 1, &short_one, &row), DELTAFS_ERR_SIZE, "a value of 4 bytes");
    check_message(deltafs_columns_rows(c, 1, NULL, &row), DELTAFS_ERR_INVALID, "must be given");
    check_message(deltafs_columns_rows(NULL, 1, records, &row), DELTAFS_ERR_INVALID, "must be given");
    CHECK_IS(deltafs_columns_rows(c, 1, records + 1, &row), DELTAFS_OK);
    CHECK_IS(deltafs_columns_close(c), DELTAFS_OK);
    CHECK_IS(deltafs_columns_close(NULL), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static double value_at(const struct deltafs_record *row, size_t i)
{
    double v;

    memcpy(&v, (const char *)row->value + 8 * i, sizeof v);
    return v;
}

static int is_missing(const struct deltafs_record *row, size_t i)
{
    const uint64_t missing = DELTAFS_MISSING_BITS;

    return memcmp((const char *)row->value + 8 * i, &missing, sizeof missing) == 0;
}

/* What is not set for an epoch, or names what is not, is missing there, and is there in others, in any order; a NaN
 * that is computed is another. */
static void test_missing(void **state)
{
    const struct stored s = stored_of(1, 0);
    static const uint64_t labels[] = {20, 0, 10, 20, 10, 0};
    struct deltafs_record records[6];
    const struct deltafs_record *row;
    deltafs_columns *c;

    (void)state;
    set_number("later", 10, 1);
    set_computed("sum", 0, "later + epoch");
    set_computed("last", 20, "sum * 2");
    set_computed("nan", 0, "0 / 0 * epoch");
    deltafs_dir *d = unit_open(unit_path("d"));
    CHECK_CALL(d, deltafs_columns_open(d, "later,sum,last,nan,factor", &c), DELTAFS_OK);
    for (size_t i = 0; i < 6; i++)
        records[i] = (struct deltafs_record){.key = 1, .label = labels[i], .value = &s, .size = 8};
    CHECK_IS(deltafs_columns_rows(c, 6, records, &row), DELTAFS_OK);
    for (size_t i = 0; i < 6; i++) {
        double label = (double)labels[i];
        CHECK(labels[i] < 10 ? is_missing(&row[i], 0) : value_at(&row[i], 0) == 1);
        CHECK(labels[i] < 10 ? is_missing(&row[i], 1) : value_at(&row[i], 1) == 1 + label);
        CHECK(labels[i] < 20 ? is_missing(&row[i], 2) : value_at(&row[i], 2) == 2 + 2 * label);
        CHECK(isnan(value_at(&row[i], 3)) && !is_missing(&row[i], 3));
        CHECK(value_at(&row[i], 4) == label / 10 + 2);
    }
    CHECK_IS(deltafs_columns_close(c), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* A select of all epochs: its rows have missing values, but its condition and its order must not be missing. */
static void test_missing_in_select(void **state)
{
    struct deltafs_select_options o = {.struct_size = sizeof o, .fields = "later,sum", .where = "n > 0"};
    const struct deltafs_range late = {10, 20};
    const struct deltafs_record *row;
    deltafs_select *s;
    size_t n, missing = 0, present = 0;

    (void)state;
    deltafs_dir *d = unit_open(unit_path("d"));
    CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
    do {
        CHECK_CALL(d, deltafs_select_next(s, &row, &n), DELTAFS_OK);
        for (size_t i = 0; i < n; i++) {
            CHECK(is_missing(&row[i], 0) == (row[i].label < 10));
            CHECK(is_missing(&row[i], 1) || value_at(&row[i], 1) == 1 + (double)row[i].label);
            missing += (size_t)is_missing(&row[i], 1);
            present += (size_t)!is_missing(&row[i], 1);
        }
    } while (n > 0);
    CHECK(missing > 0 && present > missing);
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    o.where = "n > 0 and sum > 0";
    check_message(deltafs_select_open(d, &o, &s), DELTAFS_ERR_INVALID,
                  "epoch 0: where: computed column 'sum': offset 0: the attribute 'later' is not set");
    o.range = &late;
    CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    o = (struct deltafs_select_options){.struct_size = sizeof o, .by = "0 - last", .top = 3, .range = &late};
    check_message(deltafs_select_open(d, &o, &s), DELTAFS_ERR_INVALID,
                  "epoch 10: by: offset 4: the attribute 'last' is not set for this epoch");
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
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_missing_in_select),
    };

    return cmocka_run_group_tests(tests, setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
