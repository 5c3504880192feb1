/* Of random values one bit in 2^15 is the same in a sample of 16. What planes make smaller has far more such bits:
 * signs, exponents and upper digits. Where numbers lie on both sides of 2.0 no bit of their exponents is the same in
 * all, but most are the next one's opposite or equal, and Snappy finds these planes' repetitions. */
#include "base/coding.h"
#include "directory/format/noise.h"
#include "directory/format/planes.h"

#define NOISE_SHARE 64 /* with one bit of so many, trying may pay: a block must become shorter by a 32nd */

/* The bits of eight bytes, at `at` of each value, that are the same in all of the sample, or follow from the next bit.
 */
static uint64_t noise_same(const uint8_t *const *sample, size_t at)
{
    uint64_t first = get_u64(sample[0] + at), differ = 0, unlike = 0;

    for (size_t i = 1; i < NOISE_SAMPLE; i++) {
        uint64_t x = get_u64(sample[i] + at) ^ first;
        differ |= x;
        unlike |= x ^ x >> 1;
    }
    return ~differ | ~unlike;
}

int values_are_noise(const uint8_t *values, const uint32_t *order, size_t n, size_t size)
{
    const uint8_t *sample[NOISE_SAMPLE];
    size_t count = 0;

    if (n < NOISE_SAMPLE || size < NOISE_BYTES)
        return 0;
    for (size_t i = 0; i < NOISE_SAMPLE; i++)
        sample[i] = planes_value(values, order, size, i * n / NOISE_SAMPLE);
    for (size_t at = 0; at < size; at += 8) {
        uint64_t same = noise_same(sample, at);
        if (size - at < 8)
            same &= (UINT64_C(1) << 8 * (size - at)) - 1;
        count += count_bits(same);
    }
    return count * NOISE_SHARE < 8 * size;
}
