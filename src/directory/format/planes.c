/* The portable way: 8 values and one byte at a time, by the transposition of an 8 x 8 bit matrix in a 64-bit word
 * (Warren, Hacker's Delight, 7-3). */
#include "base/coding.h"
#include "directory/format/planes.h"

/* Bit j of byte i changes places with bit i of byte j. */
static uint64_t planes_transpose(uint64_t x)
{
    uint64_t t = (x ^ x >> 7) & UINT64_C(0x00aa00aa00aa00aa);

    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & UINT64_C(0x0000cccc0000cccc);
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & UINT64_C(0x00000000f0f0f0f0);
    return x ^ t ^ t << 28;
}

void planes_split_from(const uint8_t *values, size_t first, size_t n, size_t size, uint8_t *planes)
{
    size_t length = (n + 7) / 8;

    for (size_t i = first; i < n; i += 8) {
        const uint8_t *value[8];
        size_t here = n - i < 8 ? n - i : 8;
        for (size_t j = 0; j < here; j++)
            value[j] = values + (i + j) * size;
        for (size_t k = 0; k < size; k++) {
            uint64_t x = 0;
            for (size_t j = 0; j < here; j++)
                x |= (uint64_t)value[j][k] << 8 * j;
            x = planes_transpose(x);
            for (unsigned bit = 0; bit < 8; bit++)
                planes[(8 * k + 7 - bit) * length + i / 8] = (uint8_t)(x >> 8 * bit);
        }
    }
}

void planes_join_portable(const uint8_t *planes, size_t n, size_t size, const uint8_t *wanted, uint8_t *values)
{
    size_t length = (n + 7) / 8;

    for (size_t i = 0; i < n; i += 8) {
        size_t here = n - i < 8 ? n - i : 8;
        for (size_t k = 0; k < size; k++) {
            if (wanted && !wanted[k])
                continue;
            uint64_t x = 0;
            for (unsigned bit = 0; bit < 8; bit++)
                x |= (uint64_t)planes[(8 * k + 7 - bit) * length + i / 8] << 8 * bit;
            x = planes_transpose(x);
            for (size_t j = 0; j < here; j++)
                values[(i + j) * size + k] = (uint8_t)(x >> 8 * j);
        }
    }
}

void planes_get(const uint8_t *planes, size_t n, size_t size, size_t i, uint8_t *value)
{
    size_t length = (n + 7) / 8;
    const uint8_t *p = planes + i / 8;
    unsigned shift = (unsigned)(i % 8), mask = 1u << shift;

    for (size_t k = 0; k < size; k++) {
        unsigned byte = 0;
#pragma GCC unroll 8
        for (unsigned bit = 0; bit < 8; bit++, p += length)
            byte = byte << 1 | (*p & mask); /* each where it is, and then all at once */
        value[k] = (uint8_t)(byte >> shift);
    }
}
