/* Error bounds of fields: every float is rounded to the nearest multiple that the bound allows, in directories of all
 * kinds; other fields stay. Indexes by value have what is stored, and a directory keeps its bounds. */
#include <float.h>
#include <math.h>
#include <deltafs/deltafs_query.h>
#include "directory/write/error_bounds.h"
#include "unit_help.h"

#define COUNT 5000

struct __attribute__((packed)) record {
    float u;
    uint16_t tag;
    double v, w;
};

#define SCHEMA "u:f4~1e-3,tag:u2,v:f8~0.25,w:f8"

/* What rounding makes of x. The remainder is exact, and so is its difference to x. */
static void check_value(double x, double got, double bound, double most)
{
    double step = 1;

    if (!isfinite(x))
        return;
    while (step <= bound)
        step *= 2;
    while (step > 2 * bound)
        step /= 2;
    CHECK(fabs(got - x) <= bound);
    CHECK(signbit(got) == signbit(x));
    double off = fabs(remainder(x, step));
    if (got != x)
        CHECK(fabs(got - x) == off && remainder(got, step) == 0);
    else
        CHECK(off == 0 || fabs(x) > most - step / 2);
    /* Of two that are as near, the one farther from 0. */
    CHECK(got == x || off < step / 2 || fabs(got) > fabs(x));
}

/* A value of any size, or one near the bound; some are the first and last of their kind. */
static uint64_t random_float(struct rng *r, int exponents, int fraction, int near)
{
    uint64_t x = rng_next(r) >> (63 - exponents - fraction), bits = (UINT64_C(1) << fraction) - 1;

    if (rng_below(r, 2))
        x = (x & (bits | UINT64_C(1) << (exponents + fraction))) |
            ((uint64_t)(near + (int)rng_below(r, 60) - 30) & ((1u << exponents) - 1)) << fraction;
    return rng_below(r, 8) ? x : rng_below(r, 2) ? x | bits : x & ~bits;
}

static void test_floats(void **state)
{
    struct rng r = rng_init(41);
    struct bounds b;
    struct error e;

    (void)state;
    for (int round = 0; round < 400; round++) {
        char schema[64];
        double bound = ldexp(1 + (double)rng_below(&r, 1000) / 1000, (int)rng_below(&r, round % 2 ? 40 : 290) - 150);
        snprintf(schema, sizeof schema, "u:f4~%.17g,v:f8~%.17g", bound, bound);
        CHECK_IS(bounds_init(&b, schema, &e), DELTAFS_OK);
        CHECK_IS(b.count, 2);
        for (int i = 0; i < 200; i++) {
            uint8_t before[12], after[12], again[12];
            float u, u2;
            double v, v2;
            uint32_t u_bits = (uint32_t)random_float(&r, 8, 23, ilogb(bound) + 127);
            uint64_t v_bits = random_float(&r, 11, 52, ilogb(bound) + 1023);
            memcpy(before, &u_bits, 4);
            memcpy(before + 4, &v_bits, 8);
            memcpy(after, before, 12);
            bounds_round(&b, after, 1, 12);
            memcpy(&u, before, 4);
            memcpy(&u2, after, 4);
            memcpy(&v, before + 4, 8);
            memcpy(&v2, after + 4, 8);
            check_value((double)u, (double)u2, bound, (double)FLT_MAX);
            check_value(v, v2, bound, DBL_MAX);
            CHECK(isfinite(u) || memcmp(before, after, 4) == 0);
            CHECK(isfinite(v) || memcmp(before + 4, after + 4, 8) == 0);
            memcpy(again, after, 12);
            bounds_round(&b, again, 1, 12);
            CHECK(memcmp(after, again, 12) == 0);
        }
        bounds_fini(&b);
    }
}

static struct record record_of(uint64_t key)
{
    struct rng r = rng_of(key);
    double x = (double)(int64_t)rng_next(&r) * 0x1p-63;

    return (struct record){.u = (float)x, .tag = (uint16_t)key, .v = 1000 * x, .w = x / 3};
}

static void check_record(uint64_t key, const void *value)
{
    struct record want = record_of(key), got;

    memcpy(&got, value, sizeof got);
    check_value((double)want.u, (double)got.u, 1e-3, (double)FLT_MAX);
    check_value(want.v, got.v, 0.25, DBL_MAX);
    CHECK(got.tag == want.tag && got.w == want.w);
}

/* In arrays, with other things between the records, or one by one. */
static void append_all(deltafs_dir *d, int is_bytes)
{
    struct {
        uint64_t key;
        struct record value;
        uint8_t other[5];
    } row[700];

    for (uint64_t key = 0; key < COUNT;) {
        size_t n = 0;
        for (; n < 700 && key < COUNT; n++, key++) {
            row[n].key = key;
            row[n].value = record_of(key);
        }
        if (!is_bytes)
            CHECK_CALL(d,
                       deltafs_append_many(d, n, &row[0].key, sizeof row[0], &row[0].value, sizeof row[0],
                                           sizeof(struct record)),
                       DELTAFS_OK);
        for (size_t i = 0; i < n; i++) {
            struct record before = record_of(row[i].key);
            if (is_bytes)
                CHECK_CALL(d, deltafs_append_bytes(d, &row[i].key, 8, &row[i].value, sizeof(struct record)),
                           DELTAFS_OK);
            CHECK(memcmp(&before, &row[i].value, sizeof before) == 0); /* the caller's stay as they are */
        }
    }
}

static void check_all(const char *path, int is_bytes, size_t epochs)
{
    deltafs_dir *d = unit_open(path);

    for (uint64_t key = 0; key < COUNT; key += 7) {
        deltafs_records *found;
        if (is_bytes)
            CHECK_CALL(d, deltafs_get_bytes(d, &key, 8, NULL, &found), DELTAFS_OK);
        else
            CHECK_CALL(d, deltafs_get(d, key, NULL, &found), DELTAFS_OK);
        CHECK_IS(found->count, epochs);
        for (size_t i = 0; i < epochs; i++)
            check_record(key, found->record[i].value);
        deltafs_records_destroy(found);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void test_directories(void **state)
{
    static const char *const kinds[][3] = {{"u64", "partitioned", "1"},
                                           {"u64", "partitioned", "3"},
                                           {"u64", "local", "2"},
                                           {"bytes", "partitioned", "2"},
                                           {"bytes", "local", "1"}};
    struct deltafs_stat stat = {.struct_size = sizeof stat};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const char *path = unit_path("d%zu", i);
        int is_bytes = kinds[i][0][0] == 'b';
        deltafs_dir *d = unit_create(path, unit_options("schema", SCHEMA, "keys", kinds[i][0], "layout", kinds[i][1],
                                                        "partitions", kinds[i][2], NULL));
        append_all(d, is_bytes);
        CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        check_all(path, is_bytes, 1);
        /* It keeps its bounds, whether or not they are given. */
        deltafs_options *o = unit_options("schema", i % 2 ? SCHEMA : "u:f4,tag:u2,v:f8,w:f8", NULL);
        CHECK_IS(deltafs_reopen(path, o, &d), DELTAFS_OK);
        deltafs_options_destroy(o);
        append_all(d, is_bytes);
        CHECK_CALL(d, deltafs_epoch_end(d, 2), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        check_all(path, is_bytes, 2);
        d = unit_open(path);
        CHECK_CALL(d, deltafs_stat(d, &stat), DELTAFS_OK);
        assert_string_equal(stat.schema, SCHEMA);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
    deltafs_options *o = unit_options("schema", "u:f4~1e-2,tag:u2,v:f8,w:f8", NULL);
    deltafs_dir *d;
    CHECK_IS(deltafs_reopen(unit_path("d0"), o, &d), DELTAFS_ERR_OPTION);
    CHECK(strstr(deltafs_errmsg(NULL), "was made with '" SCHEMA "'") != NULL);
    deltafs_options_destroy(o);
}

/* Schemas of what is read have no bounds. */
static void check_schemas(deltafs_dir *d, const deltafs_select *s, const char *want)
{
    deltafs_columns *c;

    assert_string_equal(deltafs_select_schema(s), want);
    CHECK_CALL(d, deltafs_columns_open(d, NULL, &c), DELTAFS_OK);
    assert_string_equal(deltafs_columns_schema(c), want);
    CHECK_IS(deltafs_columns_close(c), DELTAFS_OK);
}

/* An index by value finds the same rows as the directory alone: those that were rounded to 256 or 288. */
static void test_index(void **state)
{
    size_t rows[2] = {0};

    (void)state;
    for (int has_index = 0; has_index < 2; has_index++) {
        const char *path = unit_path("index%d", has_index);
        deltafs_options *o = unit_options("schema", "u:f4~1e-3,tag:u2,v:f8~20,w:f8", NULL);
        if (has_index)
            CHECK_IS(deltafs_options_set(o, "index_by", "big:v"), DELTAFS_OK);
        deltafs_dir *d = unit_create(path, o);
        append_all(d, 0);
        CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        d = unit_open(path);
        const struct deltafs_select_options which = {.struct_size = sizeof which, .where = "v >= 256 and v <= 288"};
        const struct deltafs_record *row;
        deltafs_select *s;
        size_t n = 1;
        CHECK_CALL(d, deltafs_select_open(d, &which, &s), DELTAFS_OK);
        CHECK((deltafs_select_index(s) != NULL) == has_index);
        check_schemas(d, s, has_index ? "u:f4,tag:u2,v:f8,w:f8,big:f8" : "u:f4,tag:u2,v:f8,w:f8");
        for (; n > 0; rows[has_index] += n)
            CHECK_CALL(d, deltafs_select_next(s, &row, &n), DELTAFS_OK);
        deltafs_select_close(s);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
    CHECK(rows[0] > 50);
    CHECK_IS(rows[0], rows[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_directories),
        cmocka_unit_test(test_index),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
