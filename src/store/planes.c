/* Two steps, with byte planes (byte 0 of all values, then byte 1, ...) between them: each padded to 16 bytes, so that
 * the second step takes 16 values at a time by SSE2's movemask, or 8 by the transposition of an 8 x 8 bit matrix in a
 * 64-bit word (Warren, Hacker's Delight, 7-3). */
#include <string.h>
#include "base/coding.h"
#include "store/planes.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

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

/* Values to byte planes of `stride` bytes. */
static void planes_gather(const uint8_t *values, size_t n, size_t size, uint8_t *bytes, size_t stride)
{
    for (size_t k = 0; k < size; k++) {
        uint8_t *plane = bytes + k * stride;
        for (size_t i = 0; i < n; i++)
            plane[i] = values[i * size + k];
        memset(plane + n, 0, stride - n);
    }
}

/* One byte plane to its eight bit planes of `length` bytes each. */
static void planes_split_byte(const uint8_t *plane, uint8_t *out, size_t length)
{
    for (size_t g = 0; g < length; g++) {
        uint64_t x = planes_transpose(get_u64(plane + 8 * g));
        for (unsigned bit = 0; bit < 8; bit++)
            out[(7 - bit) * length + g] = (uint8_t)(x >> 8 * bit);
    }
}

void planes_split_portable(const uint8_t *values, size_t n, size_t size, uint8_t *planes, uint8_t *scratch)
{
    size_t stride = (n + 15) / 16 * 16, length = (n + 7) / 8;

    planes_gather(values, n, size, scratch, stride);
    for (size_t k = 0; k < size; k++)
        planes_split_byte(scratch + k * stride, planes + k * 8 * length, length);
}

#if defined(__SSE2__)
void planes_split(const uint8_t *values, size_t n, size_t size, uint8_t *planes, uint8_t *scratch)
{
    size_t stride = (n + 15) / 16 * 16, length = (n + 7) / 8, pairs = n / 16;

    planes_gather(values, n, size, scratch, stride);
    for (size_t k = 0; k < size; k++) {
        const uint8_t *plane = scratch + k * stride;
        uint8_t *out = planes + k * 8 * length;
        for (size_t g = 0; g < pairs; g++) {
            __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(plane + 16 * g));
            for (unsigned row = 0; row < 8; row++) {
                put_u16(out + row * length + 2 * g, (uint16_t)_mm_movemask_epi8(x));
                x = _mm_add_epi8(x, x);
            }
        }
        /* The last few values, fewer than 16. */
        for (size_t g = 2 * pairs; g < length; g++) {
            uint64_t x = planes_transpose(get_u64(plane + 8 * g));
            for (unsigned bit = 0; bit < 8; bit++)
                out[(7 - bit) * length + g] = (uint8_t)(x >> 8 * bit);
        }
    }
}
#else
void planes_split(const uint8_t *values, size_t n, size_t size, uint8_t *planes, uint8_t *scratch)
{
    planes_split_portable(values, n, size, planes, scratch);
}
#endif

void planes_join(const uint8_t *planes, size_t n, size_t size, uint8_t *values, uint8_t *scratch)
{
    size_t stride = (n + 15) / 16 * 16, length = (n + 7) / 8;

    for (size_t k = 0; k < size; k++) {
        const uint8_t *in = planes + k * 8 * length;
        for (size_t g = 0; g < length; g++) {
            uint64_t x = 0;
            for (unsigned bit = 0; bit < 8; bit++)
                x |= (uint64_t)in[(7 - bit) * length + g] << 8 * bit;
            put_u64(scratch + k * stride + 8 * g, planes_transpose(x));
        }
    }
    for (size_t k = 0; k < size; k++)
        for (size_t i = 0; i < n; i++)
            values[i * size + k] = scratch[k * stride + i];
}
