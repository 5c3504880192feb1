/* Random values are taken for noise, and are stored as they are; values that pack are not. Random bytes of others are
 * not looked at. */
#include "directory/format/noise.h"
#include "directory/format/planes.h"
#include "unit_help.h"

#define COUNT     128
#define VALUE_MAX 40

static uint8_t values[COUNT * VALUE_MAX + PLANES_SLACK];

static void test_noise(void **state)
{
    struct rng r = rng_init(36);
    unsigned noise = 0;
    struct noise s;

    (void)state;
    for (int round = 0; round < 200; round++) {
        size_t size = NOISE_BYTES + rng_below(&r, VALUE_MAX - NOISE_BYTES + 1);
        rng_fill(&r, values, sizeof values);
        noise_choose(&s, values, COUNT, size);
        noise += (unsigned)noise_is_all(&s);
        noise_choose(&s, values, NOISE_VALUES - 1, size);
        CHECK(!noise_is_all(&s) && noise_front(&s, 0, size) == 0);
        noise_choose(&s, values, COUNT, NOISE_BYTES - 1);
        CHECK(!noise_is_all(&s));
        for (size_t i = 0; i < COUNT; i++)
            values[i * size + size - 1] = 7;
        noise_choose(&s, values, COUNT, size);
        CHECK(!noise_is_all(&s) && noise_front(&s, 0, size) < size);
    }
    CHECK(noise > 190);
}

/* The random bytes in front of others, in columns of all sizes. */
static void test_front(void **state)
{
    struct rng r = rng_init(38);
    unsigned right = 0;
    struct noise s;

    (void)state;
    for (int round = 0; round < 200; round++) {
        size_t at = rng_below(&r, 5), size = 1 + rng_below(&r, 20), front = rng_below(&r, size + 1);
        rng_fill(&r, values, sizeof values);
        for (size_t i = 0; i < COUNT && front < size; i++)
            values[i * VALUE_MAX + at + front] = (uint8_t)(i / 32);
        noise_choose(&s, values, COUNT, VALUE_MAX);
        right += noise_front(&s, at, size) == front;
    }
    CHECK(right > 190);
}

/* Every bit of their exponents varies, but planes of these pack. */
static void test_numbers_around_two(void **state)
{
    double numbers[COUNT + PLANES_SLACK / sizeof(double)] = {0};
    struct rng r = rng_init(37);
    struct noise s;

    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        numbers[i] = (rng_below(&r, 2) ? 1 : -1) * 8.0 * (double)(rng_next(&r) >> 11) / (double)(UINT64_C(1) << 53);
    noise_choose(&s, (const uint8_t *)numbers, COUNT, sizeof numbers[0]);
    CHECK(!noise_is_all(&s));
    CHECK(noise_front(&s, 0, sizeof numbers[0]) == 6);
}

/* Planes of counters pack: each bit changes seldom, or each time. */
static void test_counters(void **state)
{
    uint64_t numbers[COUNT + PLANES_SLACK / sizeof(uint64_t)] = {0};
    struct noise s;

    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        numbers[i] = 1000 + i;
    noise_choose(&s, (const uint8_t *)numbers, COUNT, sizeof numbers[0]);
    CHECK(!noise_is_all(&s));
    CHECK(noise_front(&s, 0, sizeof numbers[0]) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_front),
        cmocka_unit_test(test_numbers_around_two),
        cmocka_unit_test(test_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
}
