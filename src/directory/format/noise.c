/* Pairs of neighbours are a sample of the values. A bit of them is regular if it differs in all pairs or in none, or if
 * that follows from the next bit: of random values one bit in 2^14 is. What planes make smaller has far more such bits:
 * signs, exponents and upper digits, and what changes slowly from one value to the next. Where numbers lie on both
 * sides of 2.0 all bits of their exponents vary, but most are the next one's opposite or equal. */
#include "base/coding.h"
#include "directory/format/noise.h"

#define NOISE_SHARE 64 /* with one bit of so many, trying may pay: a block must become shorter by a 32nd */

void noise_choose(struct noise *s, const uint8_t *values, size_t n, size_t size)
{
    s->size = n < NOISE_VALUES ? 0 : size;
    for (size_t i = 0; i < NOISE_PAIRS && s->size > 0; i++) {
        s->value[i] = values + i * n / NOISE_PAIRS * size;
        s->next[i] = s->value[i] + size;
    }
}

/* The regular bits of `n` bytes, no more than eight, from `at` on. */
static uint64_t noise_regular(const struct noise *s, size_t at, size_t n)
{
    uint64_t first = get_u64(s->value[0] + at) ^ get_u64(s->next[0] + at), vary = 0, vary_alone = 0;

    for (size_t i = 1; i < NOISE_PAIRS; i++) {
        uint64_t x = get_u64(s->value[i] + at) ^ get_u64(s->next[i] + at) ^ first;
        vary |= x;
        vary_alone |= x ^ x >> 1;
    }
    return ~(vary & vary_alone) & UINT64_MAX >> 8 * (8 - n);
}

int noise_is_all(const struct noise *s)
{
    size_t count = 0, enough = s->size < NOISE_BYTES ? 0 : (8 * s->size + NOISE_SHARE - 1) / NOISE_SHARE;

    for (size_t at = 0; at < s->size && count < enough; at += 8)
        count += count_bits(noise_regular(s, at, s->size - at < 8 ? s->size - at : 8));
    return count < enough;
}

size_t noise_front(const struct noise *s, size_t at, size_t size)
{
    for (size_t i = 0; i < size && s->size > 0; i += 8) {
        uint64_t regular = noise_regular(s, at + i, size - i < 8 ? size - i : 8);
        if (regular != 0)
            return i + (size_t)__builtin_ctzll(regular) / 8;
    }
    return s->size > 0 ? size : 0;
}
