/* The processor's instructions for planes.c. A step takes 16 values (32 with AVX2, 64 with AVX-512) and 16 of their
 * bytes into registers, transposes them by interleaving, so that each register has one byte of all values, and takes
 * their bits by movemask. */
#include <string.h>
#include "base/coding.h"
#include "directory/format/planes.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* `n` rows and the room for as many, `next`: rows i and i + n/2 interleaved become rows 2i and 2i + 1. Four times with
 * 16 rows, that makes row i's byte k row k's byte i (in each half of 32 bytes); three times with 8 rows, bytes from the
 * same place of all rows stand together. */
#define PLANES_INTERLEAVE(low, high, row, next, n)                                                                     \
    _Pragma("GCC unroll 8") for (int i = 0; i < (n) / 2; i++)                                                          \
    {                                                                                                                  \
        next[2 * i] = low(row[i], row[i + (n) / 2]);                                                                   \
        next[2 * i + 1] = high(row[i], row[i + (n) / 2]);                                                              \
    }
#define PLANES_TRANSPOSE(vector, low, high)                                                                            \
    do {                                                                                                               \
        vector next[16];                                                                                               \
        PLANES_INTERLEAVE(low, high, row, next, 16)                                                                    \
        PLANES_INTERLEAVE(low, high, next, row, 16)                                                                    \
        PLANES_INTERLEAVE(low, high, row, next, 16)                                                                    \
        PLANES_INTERLEAVE(low, high, next, row, 16)                                                                    \
    } while (0)

static __m128i planes_load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* 16 values from `first` on. */
static inline __attribute__((always_inline)) void planes_split_16(const uint8_t *values, size_t first, size_t size,
                                                                  uint8_t *planes, size_t length)
{
    for (size_t k = 0; k < size; k += 16) {
        __m128i row[16];
        size_t columns = size - k < 16 ? size - k : 16;
        for (size_t i = 0; i < 16; i++)
            row[i] = planes_load(values + (first + i) * size + k);
        PLANES_TRANSPOSE(__m128i, _mm_unpacklo_epi8, _mm_unpackhi_epi8);
        uint8_t *out = planes + 8 * k * length + first / 8;
        for (size_t c = 0; c < columns; c++) {
            __m128i x = row[c];
            for (int bit = 0; bit < 8; bit++, out += length) {
                put_u16(out, (uint16_t)_mm_movemask_epi8(x));
                x = _mm_add_epi8(x, x);
            }
        }
    }
}

static void planes_split_sse2(const uint8_t *values, size_t n, size_t size, uint8_t *planes)
{
    size_t first = 0;

    for (; first + 16 <= n; first += 16)
        planes_split_16(values, first, size, planes, (n + 7) / 8);
    planes_split_from(values, first, n, size, planes);
}

__attribute__((target("avx2"))) static void planes_split_32(const uint8_t *values, size_t first, size_t size,
                                                            uint8_t *planes, size_t length)
{
    for (size_t k = 0; k < size; k += 16) {
        __m256i row[16];
        size_t columns = size - k < 16 ? size - k : 16;
        for (size_t i = 0; i < 16; i++)
            row[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(planes_load(values + (first + i) * size + k)),
                                             planes_load(values + (first + 16 + i) * size + k), 1);
        PLANES_TRANSPOSE(__m256i, _mm256_unpacklo_epi8, _mm256_unpackhi_epi8);
        uint8_t *out = planes + 8 * k * length + first / 8;
        for (size_t c = 0; c < columns; c++) {
            __m256i x = row[c];
            for (int bit = 0; bit < 8; bit++, out += length) {
                put_u32(out, (uint32_t)_mm256_movemask_epi8(x));
                x = _mm256_add_epi8(x, x);
            }
        }
    }
}

__attribute__((target("avx512bw"))) static void planes_split_64(const uint8_t *values, size_t first, size_t size,
                                                                uint8_t *planes, size_t length)
{
    for (size_t k = 0; k < size; k += 16) {
        __m512i row[16];
        size_t columns = size - k < 16 ? size - k : 16;
        const uint8_t *p = values + first * size + k;
        for (size_t i = 0; i < 16; i++, p += size) {
            row[i] = _mm512_inserti32x4(_mm512_castsi128_si512(planes_load(p)), planes_load(p + 16 * size), 1);
            row[i] = _mm512_inserti32x4(row[i], planes_load(p + 32 * size), 2);
            row[i] = _mm512_inserti32x4(row[i], planes_load(p + 48 * size), 3);
        }
        PLANES_TRANSPOSE(__m512i, _mm512_unpacklo_epi8, _mm512_unpackhi_epi8);
        uint8_t *out = planes + 8 * k * length + first / 8;
        for (size_t c = 0; c < columns; c++) {
            __m512i x = row[c];
            for (int bit = 0; bit < 8; bit++, out += length) {
                put_u64(out, _mm512_movepi8_mask(x));
                x = _mm512_add_epi8(x, x);
            }
        }
    }
}

__attribute__((target("avx2"))) static void planes_split_avx2(const uint8_t *values, size_t first, size_t n,
                                                              size_t size, uint8_t *planes)
{
    for (; first + 32 <= n; first += 32)
        planes_split_32(values, first, size, planes, (n + 7) / 8);
    for (; first + 16 <= n; first += 16)
        planes_split_16(values, first, size, planes, (n + 7) / 8);
    planes_split_from(values, first, n, size, planes);
}

void planes_split(const uint8_t *values, size_t n, size_t size, uint8_t *planes)
{
    size_t first = 0;

    if (!__builtin_cpu_supports("avx2")) {
        planes_split_sse2(values, n, size, planes);
        return;
    }
    for (; first + 64 <= n && __builtin_cpu_supports("avx512bw"); first += 64)
        planes_split_64(values, first, size, planes, (n + 7) / 8);
    planes_split_avx2(values, first, n, size, planes);
}

/* planes_transpose of both halves. */
static inline __m128i planes_transpose_two(__m128i x)
{
    __m128i t = _mm_and_si128(_mm_xor_si128(x, _mm_srli_epi64(x, 7)), _mm_set1_epi64x(0x00aa00aa00aa00aa));

    x = _mm_xor_si128(x, _mm_xor_si128(t, _mm_slli_epi64(t, 7)));
    t = _mm_and_si128(_mm_xor_si128(x, _mm_srli_epi64(x, 14)), _mm_set1_epi64x(0x0000cccc0000cccc));
    x = _mm_xor_si128(x, _mm_xor_si128(t, _mm_slli_epi64(t, 14)));
    t = _mm_and_si128(_mm_xor_si128(x, _mm_srli_epi64(x, 28)), _mm_set1_epi64x(0x00000000f0f0f0f0));
    return _mm_xor_si128(x, _mm_xor_si128(t, _mm_slli_epi64(t, 28)));
}

#define PLANES_TILE 128 /* values joined at a time: what 16 bytes of a plane hold */

/* One byte of a tile's values from its eight planes. */
static void planes_join_byte(const uint8_t *planes, size_t length, uint8_t *bytes)
{
    __m128i next[8], row[8] = {planes_load(planes + 7 * length), planes_load(planes + 6 * length),
                               planes_load(planes + 5 * length), planes_load(planes + 4 * length),
                               planes_load(planes + 3 * length), planes_load(planes + 2 * length),
                               planes_load(planes + length),     planes_load(planes)};

    PLANES_INTERLEAVE(_mm_unpacklo_epi8, _mm_unpackhi_epi8, row, next, 8)
    PLANES_INTERLEAVE(_mm_unpacklo_epi8, _mm_unpackhi_epi8, next, row, 8)
    PLANES_INTERLEAVE(_mm_unpacklo_epi8, _mm_unpackhi_epi8, row, next, 8)
    for (int i = 0; i < 8; i++)
        _mm_storeu_si128((__m128i *)(void *)(bytes + 16 * i), planes_transpose_two(next[i]));
}

/* The same of two columns: the second has its planes behind those of the first. */
static void planes_join_two_sse2(const uint8_t *planes, size_t length, uint8_t *bytes)
{
    planes_join_byte(planes, length, bytes);
    planes_join_byte(planes + 8 * length, length, bytes + PLANES_TILE);
}

__attribute__((target("avx2"))) static inline __m256i planes_load_two(const uint8_t *p, size_t length)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(planes_load(p)), planes_load(p + 8 * length), 1);
}

__attribute__((target("avx2"))) static inline __m256i planes_transpose_four(__m256i x)
{
    __m256i t = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi64(x, 7)), _mm256_set1_epi64x(0x00aa00aa00aa00aa));

    x = _mm256_xor_si256(x, _mm256_xor_si256(t, _mm256_slli_epi64(t, 7)));
    t = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi64(x, 14)), _mm256_set1_epi64x(0x0000cccc0000cccc));
    x = _mm256_xor_si256(x, _mm256_xor_si256(t, _mm256_slli_epi64(t, 14)));
    t = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi64(x, 28)), _mm256_set1_epi64x(0x00000000f0f0f0f0));
    return _mm256_xor_si256(x, _mm256_xor_si256(t, _mm256_slli_epi64(t, 28)));
}

__attribute__((target("avx2"))) static void planes_join_two(const uint8_t *planes, size_t length, uint8_t *bytes)
{
    __m256i next[8],
        row[8] = {planes_load_two(planes + 7 * length, length), planes_load_two(planes + 6 * length, length),
                  planes_load_two(planes + 5 * length, length), planes_load_two(planes + 4 * length, length),
                  planes_load_two(planes + 3 * length, length), planes_load_two(planes + 2 * length, length),
                  planes_load_two(planes + length, length),     planes_load_two(planes, length)};

    PLANES_INTERLEAVE(_mm256_unpacklo_epi8, _mm256_unpackhi_epi8, row, next, 8)
    PLANES_INTERLEAVE(_mm256_unpacklo_epi8, _mm256_unpackhi_epi8, next, row, 8)
    PLANES_INTERLEAVE(_mm256_unpacklo_epi8, _mm256_unpackhi_epi8, row, next, 8)
    for (int i = 0; i < 8; i++) {
        __m256i x = planes_transpose_four(next[i]);
        _mm_storeu_si128((__m128i *)(void *)(bytes + 16 * i), _mm256_castsi256_si128(x));
        _mm_storeu_si128((__m128i *)(void *)(bytes + PLANES_TILE + 16 * i), _mm256_extracti128_si256(x, 1));
    }
}

/* 16 values of a tile: the `columns` bytes from `value` on of each. */
static void planes_join_16(const uint8_t *bytes, size_t columns, uint8_t *value, size_t size, size_t n)
{
    __m128i row[16];

    for (size_t c = 0; c < 16; c++)
        row[c] = planes_load(bytes + PLANES_TILE * c);
    PLANES_TRANSPOSE(__m128i, _mm_unpacklo_epi8, _mm_unpackhi_epi8);
    for (size_t i = 0; i < n; i++, value += size) {
        uint8_t whole[16];
        _mm_storeu_si128((__m128i *)(void *)whole, row[i]);
        if (columns == 16)
            memcpy(value, whole, 16);
        else
            memcpy(value, whole, columns);
    }
}

static void planes_join_wide(const uint8_t *planes, size_t n, size_t size, const uint8_t *wanted, uint8_t *values)
{
    uint8_t bytes[16 * PLANES_TILE] = {0}; /* of 16 columns: that byte of all the tile's values */
    size_t length = (n + 7) / 8;

    for (size_t first = 0; first < n; first += PLANES_TILE) {
        size_t tile = n - first < PLANES_TILE ? n - first : PLANES_TILE;
        for (size_t k = 0; k < size; k += 16) {
            size_t columns = size - k < 16 ? size - k : 16;
            int is_wanted = 0;
            for (size_t c = 0; c < columns; c++) {
                if (wanted && !wanted[k + c])
                    continue;
                planes_join_byte(planes + 8 * (k + c) * length + first / 8, length, bytes + PLANES_TILE * c);
                is_wanted = 1;
            }
            for (size_t i = 0; is_wanted && i < tile; i += 16)
                planes_join_16(bytes + i, columns, values + (first + i) * size + k, size,
                               tile - i < 16 ? tile - i : 16);
        }
    }
}

/* All bytes of values of 2, 4 or 8: what a reader of columns needs most. Interleaved as often as that, the bytes of a
 * value stand together. */
typedef void join_two_fn(const uint8_t *planes, size_t length, uint8_t *bytes);

/* 16 values of 2, 4 or 8 bytes, from those bytes of a tile. */
static inline __attribute__((always_inline)) void planes_weave(const uint8_t *bytes, size_t size, uint8_t *to)
{
    __m128i row[8], next[8];
    const __m128i *woven = size == 4 ? row : next;

    _Pragma("GCC unroll 8") for (size_t c = 0; c < size; c++) row[c] = planes_load(bytes + PLANES_TILE * c);
    PLANES_INTERLEAVE(_mm_unpacklo_epi8, _mm_unpackhi_epi8, row, next, (int)size)
    if (size >= 4) {
        PLANES_INTERLEAVE(_mm_unpacklo_epi8, _mm_unpackhi_epi8, next, row, (int)size)
    }
    if (size == 8) {
        PLANES_INTERLEAVE(_mm_unpacklo_epi8, _mm_unpackhi_epi8, row, next, (int)size)
    }
    _Pragma("GCC unroll 8") for (size_t c = 0; c < size; c++)
        _mm_storeu_si128((__m128i *)(void *)(to + 16 * c), woven[c]);
}

static inline __attribute__((always_inline)) void planes_join_narrow(const uint8_t *planes, size_t n, size_t size,
                                                                     uint8_t *values, join_two_fn *two)
{
    uint8_t bytes[8 * PLANES_TILE], rest[8 * 16];
    size_t length = (n + 7) / 8;

    for (size_t first = 0; first < n; first += PLANES_TILE) {
        size_t tile = n - first < PLANES_TILE ? n - first : PLANES_TILE;
        for (size_t c = 0; c < size; c += 2)
            two(planes + 8 * c * length + first / 8, length, bytes + PLANES_TILE * c);
        for (size_t at = 0; at < tile; at += 16) {
            uint8_t *to = tile - at < 16 ? rest : values + (first + at) * size;
            planes_weave(bytes + at, size, to);
            if (to == rest)
                memcpy(values + (first + at) * size, rest, (tile - at) * size);
        }
    }
}

void planes_join(const uint8_t *planes, size_t n, size_t size, const uint8_t *wanted, uint8_t *values)
{
    join_two_fn *two = __builtin_cpu_supports("avx2") ? planes_join_two : planes_join_two_sse2;

    if (wanted || (size != 2 && size != 4 && size != 8))
        planes_join_wide(planes, n, size, wanted, values);
    else if (size == 4)
        planes_join_narrow(planes, n, 4, values, two);
    else if (size == 8)
        planes_join_narrow(planes, n, 8, values, two);
    else
        planes_join_narrow(planes, n, 2, values, two);
}
#else
void planes_split(const uint8_t *values, size_t n, size_t size, uint8_t *planes)
{
    planes_split_from(values, 0, n, size, planes);
}

void planes_join(const uint8_t *planes, size_t n, size_t size, const uint8_t *wanted, uint8_t *values)
{
    planes_join_portable(planes, n, size, wanted, values);
}
#endif
