/* Floats as text: against printf and strtod, which try 15, 16 and 17 digits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "tools/number_text.h"
#include "torture_rng.h"
#include "unit_help.h"

static double from_bits(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static uint64_t bits_of(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static void oracle(double v, char *out)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, NUMBER_TEXT_ROOM, "%.*g", digits, v);
        if (strtod(out, NULL) == v)
            break;
    }
    if (!strpbrk(out, ".e"))
        strcat(out, ".0");
}

/* A finite double reads back the same, and has the oracle's text. Where the neighbours are not at the same distance, or
 * doubles have fewer than 53 bits, there may be a shorter one, which printf does not find. */
static void check(double v)
{
    char text[NUMBER_TEXT_ROOM], wanted[NUMBER_TEXT_ROOM];
    const uint64_t fraction = bits_of(v) << 12;
    size_t n = number_text_float(v, text);

    oracle(v, wanted);
    if (n != strlen(text) || bits_of(strtod(text, NULL)) != bits_of(v))
        fail_msg("%a is printed as %s", v, text);
    if (fabs(v) < 0x1p-1022 || fraction == 0 ? n > strlen(wanted) : strcmp(text, wanted) != 0)
        fail_msg("%a is printed as %s, not as %s", v, text, wanted);
}

static void check_with_neighbours(double v)
{
    for (uint64_t i = 0; i < 7; i++)
        if (isfinite(from_bits(bits_of(v) + i - 3)))
            check(from_bits(bits_of(v) + i - 3));
}

static void test_powers(void **state)
{
    char text[16];

    (void)state;
    for (int e = -1074; e < 1024; e++)
        check_with_neighbours(ldexp(e % 2 ? 1 : -1, e));
    for (int e = -323; e <= 308; e++) {
        snprintf(text, sizeof text, "1e%d", e);
        check_with_neighbours(strtod(text, NULL));
    }
}

static void test_random(void **state)
{
    struct torture_rng r = {25};

    (void)state;
    for (int i = 0; i < 50000; i++) {
        uint64_t bits = torture_next(&r);
        float single;
        memcpy(&single, &bits, sizeof single);
        if (isfinite(from_bits(bits)))
            check(from_bits(bits));
        if (isfinite(single))
            check((double)single);
        check(from_bits(bits >> 12 >> bits % 52)); /* subnormal */
        check((double)(int64_t)bits / 1024);
        check((double)(bits % 100000000) / 1000);
        check((double)(bits >> bits % 64));
    }
}

/* Many more, which are only read back. */
static void test_read_back(void **state)
{
    struct torture_rng r = {26};
    char text[NUMBER_TEXT_ROOM];

    (void)state;
    for (int i = 0; i < 1000000; i++) {
        double v = from_bits(torture_next(&r));
        size_t n = number_text_float(v, text);
        if (isfinite(v) && (n > sizeof "-1.2345678901234567e-308" - 1 || bits_of(strtod(text, NULL)) != bits_of(v)))
            fail_msg("%a is printed as %s", v, text);
    }
}

static void is_text(double v, const char *wanted)
{
    char text[NUMBER_TEXT_ROOM];

    CHECK_IS(number_text_float(v, text), strlen(wanted));
    if (strcmp(text, wanted) != 0)
        fail_msg("%a is printed as %s, not as %s", v, text, wanted);
}

static void test_special(void **state)
{
    char text[NUMBER_TEXT_ROOM];

    (void)state;
    is_text(NAN, "nan");
    is_text(-NAN, "nan");
    is_text(INFINITY, "inf");
    is_text(-INFINITY, "-inf");
    is_text(0.0, "0.0");
    is_text(-0.0, "-0.0");
    is_text(1, "1.0");
    is_text(-0.1, "-0.1");
    is_text(0.0001, "0.0001");
    is_text(0.00001, "1e-05");
    is_text(1e14, "100000000000000.0");
    is_text(1e15, "1e+15");
    is_text(1234567890123456.0, "1234567890123456.0");
    is_text(9007199254740993.0, "9007199254740992.0");
    is_text(5e-324, "5e-324");
    is_text(0x1.fffffffffffffp1023, "1.7976931348623157e+308");
    is_text(0x1p-1022, "2.2250738585072014e-308");
    is_text(0x1p-44, "5.684341886080802e-14");
    is_text((double)0.1f, "0.10000000149011612");
    CHECK_IS(number_text_unsigned(UINT64_MAX, text), 20);
    CHECK(strcmp(text, "18446744073709551615") == 0);
    for (uint64_t ten = 10; ten <= UINT64_C(1000000000000000000); ten *= 10)
        for (uint64_t v = ten - 1; v <= ten + 1; v++) {
            char same[NUMBER_TEXT_ROOM];
            CHECK_IS(number_text_unsigned(v, text), snprintf(same, sizeof same, "%llu", (unsigned long long)v));
            CHECK(strcmp(text, same) == 0);
        }
    CHECK_IS(number_text_unsigned(0, text), 1);
    CHECK(strcmp(text, "0") == 0);
    CHECK_IS(number_text_signed(INT64_MIN, text), 20);
    CHECK(strcmp(text, "-9223372036854775808") == 0);
    CHECK_IS(number_text_signed(17, text), 2);
    CHECK(strcmp(text, "17") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_powers),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
