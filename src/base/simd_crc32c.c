/* The processor's instruction for CRC-32C takes three cycles for eight bytes and can begin one each cycle. So three
 * parts are done at a time; their checksums are joined with a table of what LANE zero bytes do to a checksum, which is
 * linear (Gopal et al., 2011).
 *
 * Processors that multiply 512 bits without carries do that twice as fast. 256 bytes are kept as a polynomial and moved
 * on over the next 256: each 64 bits of it are multiplied by the remainder of a power of x ("folding", Gopal et al.,
 * 2009). The instruction makes the checksum of the last 16 bytes that are left. */
#include "base/simd_crc32c.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <pthread.h>
#include "base/coding.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int has_instruction;

#define LANE 256 /* bytes of each of the three parts */

#define WIDE 256 /* bytes of the polynomial: four times 64 */

static int has_wide;
/* Factors that move 16 bytes on over so many: the remainders of x to the powers 8 * bytes + 32 and - 32, their bits in
 * reverse. */
static const uint64_t over_wide[2] = {UINT64_C(0x0dcb17aa4), UINT64_C(0x0b9e02b86)};
static const uint64_t over_64[2] = {UINT64_C(0x0740eef02), UINT64_C(0x09e4addf8)};
static const uint64_t over_16[2] = {UINT64_C(0x0f20c0dfe), UINT64_C(0x14cd00bd6)};

static uint32_t behind_lane[4][256]; /* what a checksum's byte k of value v becomes behind LANE zero bytes */

static void crc32c_prepare_lanes(void)
{
    uint32_t bit[32];

    /* Each is the one above it times x. */
    bit[31] = crc32c_zeros(UINT32_C(1) << 31, LANE);
    for (int i = 31; i > 0; i--)
        bit[i - 1] = (bit[i] >> 1) ^ (CRC32C_POLYNOMIAL & (0u - (bit[i] & 1)));
    for (int k = 0; k < 4; k++)
        for (uint32_t v = 1; v < 256; v++)
            behind_lane[k][v] = behind_lane[k][v & (v - 1)] ^ bit[8 * k + __builtin_ctz(v)];
}

static uint64_t crc32c_behind_lane(uint64_t c)
{
    return behind_lane[0][c & 0xff] ^ behind_lane[1][c >> 8 & 0xff] ^ behind_lane[2][c >> 16 & 0xff] ^
           behind_lane[3][c >> 24 & 0xff];
}

static void crc32c_prepare(void)
{
    has_instruction = __builtin_cpu_supports("sse4.2");
    has_wide = has_instruction && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
    if (!has_wide)
        crc32c_prepare_lanes();
}

__attribute__((target("sse4.2"))) static uint32_t crc32c_instruction(uint32_t crc, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    uint64_t c = ~crc;

    for (; n >= 3 * LANE; n -= 3 * LANE, p += 3 * LANE) {
        uint64_t second = 0, third = 0;
        for (size_t i = 0; i < LANE; i += 8) {
            c = __builtin_ia32_crc32di(c, get_u64(p + i));
            second = __builtin_ia32_crc32di(second, get_u64(p + LANE + i));
            third = __builtin_ia32_crc32di(third, get_u64(p + 2 * LANE + i));
        }
        c = crc32c_behind_lane(crc32c_behind_lane(c) ^ second) ^ third;
    }
    for (; n >= 8; n -= 8, p += 8)
        c = __builtin_ia32_crc32di(c, get_u64(p));
    for (; n > 0; n--)
        c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
    return ~(uint32_t)c;
}

#define WIDE_TARGET __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))

/* `x`, moved on over the bytes of `factor`, and added to what is there. */
WIDE_TARGET static inline __m512i crc32c_fold(__m512i x, __m512i factor, __m512i there)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, factor, 0x00),
                                     _mm512_clmulepi64_epi128(x, factor, 0x11), there, 0x96);
}

WIDE_TARGET static inline __m512i crc32c_factor(const uint64_t factor[2])
{
    return _mm512_broadcast_i32x4(_mm_set_epi64x((long long)factor[1], (long long)factor[0]));
}

/* The same of 16 bytes, over 16. */
WIDE_TARGET static inline __m128i crc32c_fold_16(__m128i x, __m128i factor, __m128i there)
{
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, factor, 0x00), _mm_clmulepi64_si128(x, factor, 0x11)),
                         there);
}

/* The CRC of the polynomial and the `n` bytes behind it, a multiple of 16. */
WIDE_TARGET static inline uint32_t crc32c_join(const __m512i polynomial[WIDE / 64], const uint8_t *p, size_t n)
{
    __m512i over = crc32c_factor(over_64), all = crc32c_fold(polynomial[0], over, polynomial[1]);

    all = crc32c_fold(crc32c_fold(all, over, polynomial[2]), over, polynomial[3]);
    for (; n >= 64; p += 64, n -= 64)
        all = crc32c_fold(all, over, _mm512_loadu_si512(p));
    __m128i k = _mm_set_epi64x((long long)over_16[1], (long long)over_16[0]), x = _mm512_castsi512_si128(all);
    __m128i part[3] = {_mm512_extracti32x4_epi32(all, 1), _mm512_extracti32x4_epi32(all, 2),
                       _mm512_extracti32x4_epi32(all, 3)};

    for (int i = 0; i < 3; i++)
        x = crc32c_fold_16(x, k, part[i]);
    for (; n > 0; p += 16, n -= 16)
        x = crc32c_fold_16(x, k, _mm_loadu_si128((const __m128i *)(const void *)p));
    uint64_t c = __builtin_ia32_crc32di(0, (uint64_t)_mm_cvtsi128_si64(x));
    return (uint32_t)__builtin_ia32_crc32di(c, (uint64_t)_mm_extract_epi64(x, 1));
}

/* n is a multiple of 16, and at least WIDE. */
WIDE_TARGET static uint32_t crc32c_wide(uint32_t crc, const uint8_t *p, size_t n)
{
    __m512i k = crc32c_factor(over_wide), x[WIDE / 64];

    for (int i = 0; i < WIDE / 64; i++)
        x[i] = _mm512_loadu_si512(p + 64 * i);
    x[0] = _mm512_xor_si512(x[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc)));
    for (p += WIDE, n -= WIDE; n >= WIDE; p += WIDE, n -= WIDE)
#pragma GCC unroll 4
        for (int i = 0; i < WIDE / 64; i++)
            x[i] = crc32c_fold(x[i], k, _mm512_loadu_si512(p + 64 * i));
    return ~crc32c_join(x, p, n);
}

int simd_crc32c(uint32_t *crc, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;

    pthread_once(&once, crc32c_prepare);
    if (!has_instruction)
        return 0;
    if (has_wide && n >= WIDE) {
        size_t whole = n - n % 16;
        *crc = crc32c_wide(*crc, p, whole);
        p += whole;
        n -= whole;
    }
    *crc = crc32c_instruction(*crc, p, n);
    return 1;
}
#else
int simd_crc32c(uint32_t *crc, const void *bytes, size_t n)
{
    (void)crc;
    (void)bytes;
    (void)n;
    return 0;
}
#endif
