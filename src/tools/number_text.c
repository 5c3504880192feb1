/* The digits of doubles are found by the algorithm of R. Giulietti, "The Schubfach way to render doubles" (2020).
 *
 * A double is c * 2^q. The numbers that read back as it lie between the midpoints to its neighbours; the midpoints
 * themselves read back as it if c is even. Let 10^k be the largest power of ten that is not larger than the distance
 * between the midpoints. Then there is a multiple of 10^k between them, and at most one of 10^(k+1). That one has fewer
 * digits, and is taken if it is there. Otherwise, the multiple of 10^k is taken that is nearest to the double.
 *
 * To compare them with multiples of 10^k, the double and the midpoints are multiplied by 4 * 10^-k. Of each product the
 * integer is kept, with its last bit set if there is a fraction. So it is even only if it is exact, and comparisons
 * with even integers are as those of the exact product. The paper proves that 128 bits of 10^-k are enough for that.
 *
 * Powers of ten are computed when they are first used. A table of all would be larger than the code that makes them. */
#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tools/number_text.h"

#define DIGITS_FIXED  15 /* a number with more digits before the point gets an exponent, unless they are all digits */
#define ZEROS_FIXED   4  /* the same for zeros after the point, counting the one before it */
#define EIGHT_DIGITS  100000000
#define ZEROS         UINT64_C(0x3030303030303030) /* the character in eight bytes */
#define FRACTION_BITS 52
#define EXPONENT_MIN  (-1074) /* of 2, with an integer before it */
#define POWER_MIN     (-292)
#define POWER_MAX     324
#define WORDS         40 /* of 32 bits: more than 10^324 has, and 128 bits more than 10^292 */

/* The 128 bits of a power of ten from its highest one on, rounded up. */
struct power {
    uint64_t high, low;
};

/* A number without its sign: digits * 10^exponent. */
struct decimal {
    uint64_t digits;
    int exponent;
};

/* ---- Powers of ten ---- */

static void words_multiply(uint32_t word[WORDS], uint32_t by)
{
    uint64_t carry = 0;

    for (int i = 0; i < WORDS; i++) {
        carry += (uint64_t)word[i] * by;
        word[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static void words_divide(uint32_t word[WORDS], uint32_t by)
{
    uint64_t rest = 0;

    for (int i = WORDS - 1; i >= 0; i--) {
        rest = rest << 32 | word[i];
        word[i] = (uint32_t)(rest / by);
        rest %= by;
    }
}

/* The highest bits of a number; `is_more`: it has a fraction, too. */
static struct power words_power(const uint32_t word[WORDS], int is_more)
{
    int top = WORDS - 1, shift;
    uint64_t part[3] = {0};

    while (word[top] == 0)
        top--;
    shift = __builtin_clz(word[top]);
    for (int i = 0; i < 6; i++)
        part[i / 2] = part[i / 2] << 32 | (i <= top ? word[top - i] : 0);
    is_more |= part[2] << shift != 0;
    for (int i = 6; i <= top; i++)
        is_more |= word[top - i] != 0;
    unsigned __int128 all = (unsigned __int128)part[0] << 64 | part[1];
    all = all << shift | (shift > 0 ? part[2] >> (64 - shift) : 0);
    all += is_more != 0;
    return (struct power){(uint64_t)(all >> 64), (uint64_t)all};
}

static struct power power_make(int exponent)
{
    static const uint32_t small[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    uint32_t word[WORDS] = {0};

    word[exponent < 0 ? WORDS - 1 : 0] = 1;
    for (int left = abs(exponent); left > 0; left -= 9)
        (exponent < 0 ? words_divide : words_multiply)(word, left < 9 ? small[left] : 1000000000);
    return words_power(word, exponent < 0);
}

static struct power power_of_ten(int exponent)
{
    static struct power known[POWER_MAX - POWER_MIN + 1];
    struct power *p = &known[exponent - POWER_MIN];

    if (p->high == 0)
        *p = power_make(exponent);
    return *p;
}

/* ---- Digits ---- */

/* log10(2^e) and log2(10^e), rounded down, for exponents of doubles; 3/4 of 2^e. */
static int log10_of_power(int e, int is_three_quarters)
{
    return (e * 1262611 - (is_three_quarters ? 524031 : 0)) >> 22;
}

static int log2_of_power(int e)
{
    return (e * 1741647) >> 19;
}

/* x * p / 2^128: an integer, with its last bit set if there is a fraction. */
static uint64_t scale(struct power p, uint64_t x)
{
    unsigned __int128 low = (unsigned __int128)x * p.low, high = (unsigned __int128)x * p.high + (uint64_t)(low >> 64);

    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* c * 2^q, which is not 0. */
static struct decimal decimal_of(uint64_t c, int q)
{
    /* The neighbour below a power of two is nearer. */
    const int is_narrow = c == (uint64_t)1 << FRACTION_BITS && q > EXPONENT_MIN;
    const int k = log10_of_power(q, is_narrow), shift = q + log2_of_power(-k) + 1;
    const struct power p = power_of_ten(-k);
    const uint64_t first = scale(p, (4 * c - 2 + (uint64_t)is_narrow) << shift) + (c & 1);
    const uint64_t last = scale(p, (4 * c + 2) << shift) - (c & 1), exact = scale(p, 4 * c << shift);
    const uint64_t n = exact / 4, tens = n / 10;
    int has_lower = first <= 40 * tens, has_upper = 40 * (tens + 1) <= last;

    if (has_lower || has_upper)
        return (struct decimal){tens + (uint64_t)has_upper, k + 1};
    has_lower = first <= 4 * n;
    has_upper = 4 * (n + 1) <= last;
    if (has_lower && has_upper)
        has_upper = exact > 4 * n + 2 || (exact == 4 * n + 2 && n % 2 != 0);
    return (struct decimal){n + (uint64_t)has_upper, k};
}

/* ---- Text ---- */

static size_t digits_of(uint64_t v)
{
    size_t n = 1;

    for (; v >= 10000; v /= 10000)
        n += 4;
    return n + (v >= 10) + (v >= 100) + (v >= 1000);
}

/* The eight digits of a number below EIGHT_DIGITS, each in a byte, the first in the lowest one: of numbers that lie
 * side by side the quotients go to the lower halves, and the remainders to the upper ones. The factors are exact for
 * numbers this small. */
static uint64_t eight_digits(uint32_t v)
{
    uint64_t two = v / 10000 | (uint64_t)(v % 10000) << 32;
    uint64_t hundreds = two * 10486 >> 20 & UINT64_C(0x7f0000007f);
    uint64_t four = hundreds | (two - 100 * hundreds) << 16;
    uint64_t tens = four * 103 >> 10 & UINT64_C(0xf000f000f000f);

    return tens | (four - 10 * tens) << 8;
}

static void put_eight(uint64_t digits, char *out)
{
    digits = htole64(digits);
    memcpy(out, &digits, sizeof digits);
}

size_t number_text_unsigned(uint64_t v, char *out)
{
    if (v >= EIGHT_DIGITS) {
        size_t n = number_text_unsigned(v / EIGHT_DIGITS, out);
        put_eight(eight_digits((uint32_t)(v % EIGHT_DIGITS)) | ZEROS, out + n);
        out[n + 8] = '\0';
        return n + 8;
    }
    const uint64_t digits = eight_digits((uint32_t)v);
    const unsigned blanks = v > 0 ? (unsigned)__builtin_ctzll(digits) / 8 : 7;
    put_eight((digits | ZEROS) >> 8 * blanks, out);
    out[8 - blanks] = '\0';
    return 8 - blanks;
}

size_t number_text_signed(int64_t v, char *out)
{
    out[0] = '-';
    return v < 0 ? 1 + number_text_unsigned(-(uint64_t)v, out + 1) : number_text_unsigned((uint64_t)v, out);
}

/* The `n` digits with a point among them, or zeros before or behind them; `point` of them are before it. */
static size_t put_fixed(uint64_t digits, int n, int point, char *out)
{
    if (point <= 0) {
        char *to = out + 2 - point;
        memcpy(out, "0.00000", 8);
        return (size_t)(to - out) + number_text_unsigned(digits, to);
    }
    number_text_unsigned(digits, out);
    if (n > point) {
        memmove(out + point + 1, out + point, (size_t)(n - point) + 1);
        out[point] = '.';
        return (size_t)n + 1;
    }
    memset(out + n, '0', (size_t)(point - n));
    memcpy(out + point, ".0", 3);
    return (size_t)point + 2;
}

static size_t put_scientific(uint64_t digits, int n, int exponent, char *out)
{
    char *to = out + n;

    number_text_unsigned(digits, out);
    if (n > 1) {
        memmove(out + 2, out + 1, (size_t)n - 1);
        out[1] = '.';
        to++;
    }
    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    exponent = exponent < 0 ? -exponent : exponent;
    if (exponent < 10)
        *to++ = '0';
    return (size_t)(to - out) + number_text_unsigned((uint64_t)exponent, to);
}

static size_t put_decimal(struct decimal d, char *out)
{
    while (d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }
    int n = (int)digits_of(d.digits), first = d.exponent + n - 1;
    int is_fixed = first >= -ZEROS_FIXED && first < (n > DIGITS_FIXED ? n : DIGITS_FIXED);
    return is_fixed ? put_fixed(d.digits, n, first + 1, out) : put_scientific(d.digits, n, first, out);
}

size_t number_text_float(double v, char *out)
{
    uint64_t bits, fraction;
    size_t sign = signbit(v) && !isnan(v);

    out[0] = '-';
    if (isnan(v) || isinf(v)) {
        strcpy(out + sign, isnan(v) ? "nan" : "inf");
        return sign + 3;
    }
    memcpy(&bits, &v, sizeof bits);
    fraction = bits & (((uint64_t)1 << FRACTION_BITS) - 1);
    int exponent = (int)(bits >> FRACTION_BITS & 0x7ff);
    if (exponent > 0)
        fraction |= (uint64_t)1 << FRACTION_BITS;
    if (fraction == 0) {
        strcpy(out + sign, "0.0");
        return sign + 3;
    }
    return sign + put_decimal(decimal_of(fraction, EXPONENT_MIN + (exponent > 0 ? exponent - 1 : 0)), out + sign);
}
