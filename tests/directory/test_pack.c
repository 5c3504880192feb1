/* What pack.c compresses, libsnappy decompresses to the same bytes, and so does pack.c. It refuses what libsnappy
 * refuses, and stays within its bytes (run this under a sanitizer). */
#include <snappy-c.h>
#include "directory/format/pack.h"
#include "unit_help.h"

#define SIZE_MAX_TRIED (200u << 10)
#define GUARD          64

static uint8_t in[SIZE_MAX_TRIED], back[SIZE_MAX_TRIED];

/* In memory of just that size. */
static int decompress(const uint8_t *bytes, size_t packed, size_t n, uint8_t **out)
{
    uint8_t *alone = malloc(packed + 1);

    *out = malloc(n + GUARD);
    assert_true(alone && *out);
    memcpy(alone + 1, bytes, packed);
    memset(*out + n, 0xa5, GUARD);
    int status = pack_decompress(alone + 1, packed, *out, n);
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal((*out)[n + i], 0xa5);
    free(alone);
    return status;
}

static void check_decompress(const uint8_t *bytes, size_t packed, size_t n)
{
    uint8_t *out;

    assert_int_equal(decompress(bytes, packed, n, &out), 0);
    assert_memory_equal(out, in, n);
    free(out);
    assert_int_equal(decompress(bytes, packed, n + 1, &out), -1);
    free(out);
    assert_int_equal(decompress(bytes, packed - 1, n, &out), -1);
    free(out);
}

static size_t check_skip(size_t n, size_t skip)
{
    size_t max = pack_max(n), length = n;
    uint8_t *out = malloc(max + GUARD);

    assert_non_null(out);
    memset(out, 0xa5, max + GUARD);
    size_t packed = pack_compress(in, n, skip, out);
    assert_true(packed <= max);
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(out[max + i], 0xa5);
    assert_int_equal(snappy_uncompress((char *)out, packed, (char *)back, &length), SNAPPY_OK);
    assert_int_equal(length, n);
    assert_memory_equal(back, in, n);
    check_decompress(out, packed, n);
    free(out);
    return packed;
}

static size_t check(size_t n)
{
    size_t packed = check_skip(n, 0);

    check_skip(n, n / 3);
    assert_true(check_skip(n, n) >= n);
    return packed;
}

/* Random bytes, of few values or of many, with copies of earlier bytes of all lengths and distances among them. */
static void fill(struct rng *r, size_t n, unsigned values, unsigned copies)
{
    for (size_t at = 0; at < n;) {
        size_t length = 1 + rng_below(r, rng_below(r, 8) == 0 ? 70000 : 80);
        if (length > n - at)
            length = n - at;
        size_t back_by = at > 0 ? 1 + rng_below(r, rng_below(r, 2) ? at : at < 300 ? at : 300) : 0;
        int is_copy = at > 0 && rng_below(r, 100) < copies;
        for (size_t i = 0; i < length; i++, at++)
            in[at] = is_copy ? in[at - back_by] : (uint8_t)rng_below(r, values);
    }
}

static void test_round_trip(void **state)
{
    static const size_t edges[] = {0, 1, 4, 14, 15, 16, 17, 59, 60, 61, 256, 257, 4096, 65535, 65536, 65537, 131072};
    struct rng r = rng_init(7);

    (void)state;
    for (unsigned copies = 0; copies <= 100; copies += 25)
        for (unsigned values = 1; values <= 256; values += 51) {
            for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
                fill(&r, edges[i], values, copies);
                check(edges[i]);
            }
            for (int i = 0; i < 100; i++) {
                size_t n = rng_below(&r, i < 95 ? 5000 : SIZE_MAX_TRIED);
                fill(&r, n, values, copies);
                check(n);
            }
        }
}

/* The most that an input can grow: short literals between the shortest matches, which are far apart. */
static void test_worst_case(void **state)
{
    struct rng r = rng_init(9);

    (void)state;
    for (size_t i = 0; i < 4096; i++)
        in[i] = (uint8_t)rng_below(&r, 256);
    for (size_t at = 4096; at + 5 <= 60000; at += 5) {
        memcpy(in + at, in + rng_below(&r, 2000), 4);
        in[at + 4] = (uint8_t)rng_below(&r, 256);
    }
    check(60000);
}

/* Changed bytes: both refuse them, or both decompress them to the same. */
static void test_forged(void **state)
{
    static uint8_t out[8192];
    struct rng r = rng_init(11);
    unsigned taken = 0;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        size_t n = 1 + rng_below(&r, 600), length = sizeof back;
        fill(&r, n, 1 + (unsigned)rng_below(&r, 200), 60);
        size_t packed = pack_compress(in, n, rng_below(&r, 2) ? 0 : n / 2, out);
        for (uint64_t k = rng_below(&r, 4); k > 0; k--)
            out[rng_below(&r, packed)] = (uint8_t)rng_next(&r);
        int is_valid = snappy_uncompressed_length((char *)out, packed, &length) == SNAPPY_OK && length == n &&
                       snappy_uncompress((char *)out, packed, (char *)back, &length) == SNAPPY_OK;
        uint8_t *got;
        assert_int_equal(decompress(out, packed, n, &got), is_valid ? 0 : -1);
        if (is_valid)
            assert_memory_equal(got, back, n);
        taken += is_valid ? 1u : 0u;
        free(got);
    }
    assert_true(taken > 5000 && taken < 19000);
}

static void test_length(void **state)
{
    (void)state;
    memset(in, 0, 4096);
    assert_true(check(4096) < 250); /* copies of 64 bytes in three */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_worst_case),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_forged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
}
