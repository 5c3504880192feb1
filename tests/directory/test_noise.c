/* Random values are taken for noise, and are stored as they are; values that pack are not. */
#include "directory/format/noise.h"
#include "directory/format/planes.h"
#include "unit_help.h"

#define VALUE_MAX 40

static void test_noise(void **state)
{
    uint8_t values[128 * VALUE_MAX + PLANES_SLACK];
    uint32_t order[64];
    struct rng r = rng_init(36);
    unsigned noise = 0;

    (void)state;
    for (size_t i = 0; i < 64; i++)
        order[i] = (uint32_t)(2 * i);
    for (int round = 0; round < 200; round++) {
        size_t size = NOISE_BYTES + rng_below(&r, VALUE_MAX - NOISE_BYTES + 1);
        rng_fill(&r, values, sizeof values);
        noise += (unsigned)values_are_noise(values, NULL, 128, size);
        CHECK(!values_are_noise(values, NULL, NOISE_SAMPLE - 1, size));
        CHECK(!values_are_noise(values, NULL, 128, NOISE_BYTES - 1));
        /* One byte is the same in every second value. */
        for (size_t i = 0; i < 128; i += 2)
            values[i * size + size - 1] = 7;
        CHECK(!values_are_noise(values, order, 64, size));
    }
    CHECK(noise > 190);
}

/* No bit of their exponents is the same in all of them, but planes of these pack. */
static void test_numbers_around_two(void **state)
{
    double values[128 + PLANES_SLACK / sizeof(double)] = {0};
    struct rng r = rng_init(37);

    (void)state;
    for (size_t i = 0; i < 128; i++)
        values[i] = (rng_below(&r, 2) ? 1 : -1) * 8.0 * (double)(rng_next(&r) >> 11) / (double)(UINT64_C(1) << 53);
    CHECK(!values_are_noise((const uint8_t *)values, NULL, 128, sizeof values[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_numbers_around_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
}
