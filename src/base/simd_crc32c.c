/* The processor's instruction for CRC-32C takes three cycles for eight bytes and can begin one each cycle. So three
 * parts are done at a time; their checksums are joined with a table of what LANE zero bytes do to a checksum, which is
 * linear (Gopal et al., 2011).
 *
 * Processors that multiply 512 bits without carries do that twice as fast. 256 bytes are kept as a polynomial and moved
 * on over the next 256: each 64 bits of it are multiplied by the remainder of a power of x ("folding", Gopal et al.,
 * 2009). The instruction makes the checksum of the last 16 bytes that are left.
 *
 * Those that multiply 256 bits do both at once: in each step 64 bytes are folded while the instruction takes 24 of each
 * of three parts. One multiplication moves a checksum on over a part, and the instruction reduces the product. */
#include "base/simd_crc32c.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <pthread.h>
#include "base/coding.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned ways; /* a bit for each that this processor has */
static enum simd_crc32c_way fastest;

#define LANE 256 /* bytes of each of the three parts */

#define WIDE 256 /* bytes of the polynomial: four times 64 */

#define FOLDED     64 /* bytes that a step folds */
#define TAKEN      24 /* bytes of each part that it takes by the instruction */
#define STEP_BYTES (FOLDED + 3 * TAKEN)
#define STEPS_MAX  30 /* at once: nearly all of 4096 bytes */

/* Factors that move 16 bytes on over so many: the remainders of x to the powers 8 * bytes + 32 and - 32, their bits in
 * reverse. */
static const uint64_t over_wide[2] = {UINT64_C(0x0dcb17aa4), UINT64_C(0x0b9e02b86)};
static const uint64_t over_64[2] = {UINT64_C(0x0740eef02), UINT64_C(0x09e4addf8)};
static const uint64_t over_32[2] = {UINT64_C(0x1384aa63a), UINT64_C(0x0ba4fc28e)};
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

/* Factors that move a checksum on over a part of so many steps: x to the power 8 * bytes - 33, as the product and the
 * instruction add that much. */
static struct {
    uint64_t taken, folded;
} parts[STEPS_MAX + 1];

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

#define SMALL_TARGET __attribute__((target("pclmul,sse4.2")))
#define BOTH_TARGET  __attribute__((target("avx2,vpclmulqdq,pclmul,sse4.2")))
#define WIDE_TARGET  __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))

SMALL_TARGET static inline __m128i crc32c_factor_16(void)
{
    return _mm_set_epi64x((long long)over_16[1], (long long)over_16[0]);
}

/* 16 bytes, moved on over 16, and added to what is there. */
SMALL_TARGET static inline __m128i crc32c_fold_16(__m128i x, __m128i factor, __m128i there)
{
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, factor, 0x00), _mm_clmulepi64_si128(x, factor, 0x11)),
                         there);
}

/* The CRC of 16 bytes. */
SMALL_TARGET static inline uint32_t crc32c_reduce(__m128i x)
{
    uint64_t c = __builtin_ia32_crc32di(0, (uint64_t)_mm_cvtsi128_si64(x));

    return (uint32_t)__builtin_ia32_crc32di(c, (uint64_t)_mm_extract_epi64(x, 1));
}

SMALL_TARGET static inline uint64_t crc32c_move(uint64_t crc, uint64_t factor)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc), _mm_cvtsi64_si128((long long)factor), 0);

    return __builtin_ia32_crc32di(0, (uint64_t)_mm_cvtsi128_si64(product));
}

SMALL_TARGET static void crc32c_prepare_parts(void)
{
    uint64_t taken = crc32c_zeros(UINT32_C(1) << 24, TAKEN - 5), folded = crc32c_zeros(UINT32_C(1) << 24, FOLDED - 5);

    parts[1].taken = taken;
    parts[1].folded = folded;
    for (uint32_t steps = 2; steps <= STEPS_MAX; steps++) {
        parts[steps].taken = crc32c_move(parts[steps - 1].taken, taken);
        parts[steps].folded = crc32c_move(parts[steps - 1].folded, folded);
    }
}

BOTH_TARGET static inline __m256i crc32c_load_32(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

BOTH_TARGET static inline __m256i crc32c_fold_32(__m256i x, __m256i factor, __m256i there)
{
    return _mm256_xor_si256(
        _mm256_xor_si256(_mm256_clmulepi64_epi128(x, factor, 0x00), _mm256_clmulepi64_epi128(x, factor, 0x11)), there);
}

BOTH_TARGET static inline __m256i crc32c_factor_32(const uint64_t factor[2])
{
    return _mm256_broadcastsi128_si256(_mm_set_epi64x((long long)factor[1], (long long)factor[0]));
}

/* 1 to STEPS_MAX steps: the three parts, and what is folded behind them. */
BOTH_TARGET static uint32_t crc32c_both(uint32_t crc, const uint8_t *p, size_t steps)
{
    const uint8_t *second = p + TAKEN * steps, *third = second + TAKEN * steps, *folded = third + TAKEN * steps;
    const __m256i over = crc32c_factor_32(over_64);
    __m256i x = _mm256_setzero_si256(), y = x;
    uint64_t a = ~crc, b = 0, c = 0;

    for (size_t at = 0; at < TAKEN * steps; at += TAKEN, folded += FOLDED) {
        x = crc32c_fold_32(x, over, crc32c_load_32(folded));
        y = crc32c_fold_32(y, over, crc32c_load_32(folded + 32));
#pragma GCC unroll 3
        for (size_t i = at; i < at + TAKEN; i += 8) {
            a = __builtin_ia32_crc32di(a, get_u64(p + i));
            b = __builtin_ia32_crc32di(b, get_u64(second + i));
            c = __builtin_ia32_crc32di(c, get_u64(third + i));
        }
    }
    const uint64_t over_part = parts[steps].taken;
    a = crc32c_move(crc32c_move(a, over_part) ^ b, over_part) ^ c;
    a = crc32c_move(a, parts[steps].folded);
    y = crc32c_fold_32(x, crc32c_factor_32(over_32), y);
    return ~((uint32_t)a ^ crc32c_reduce(crc32c_fold_16(_mm256_castsi256_si128(y), crc32c_factor_16(),
                                                        _mm256_extracti128_si256(y, 1))));
}

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

/* The CRC of the polynomial and the `n` bytes behind it, a multiple of 16. */
WIDE_TARGET static inline uint32_t crc32c_join(const __m512i polynomial[WIDE / 64], const uint8_t *p, size_t n)
{
    __m512i over = crc32c_factor(over_64), all = crc32c_fold(polynomial[0], over, polynomial[1]);

    all = crc32c_fold(crc32c_fold(all, over, polynomial[2]), over, polynomial[3]);
    for (; n >= 64; p += 64, n -= 64)
        all = crc32c_fold(all, over, _mm512_loadu_si512(p));
    __m128i k = crc32c_factor_16(), x = _mm512_castsi512_si128(all);
    __m128i part[3] = {_mm512_extracti32x4_epi32(all, 1), _mm512_extracti32x4_epi32(all, 2),
                       _mm512_extracti32x4_epi32(all, 3)};

    for (int i = 0; i < 3; i++)
        x = crc32c_fold_16(x, k, part[i]);
    for (; n > 0; p += 16, n -= 16)
        x = crc32c_fold_16(x, k, _mm_loadu_si128((const __m128i *)(const void *)p));
    return crc32c_reduce(x);
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

static void crc32c_prepare(void)
{
    int has_product = __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("pclmul");

    if (!__builtin_cpu_supports("sse4.2"))
        return;
    fastest = CRC32C_INSTRUCTION;
    ways = 1u << fastest;
    crc32c_prepare_lanes();
    if (has_product && __builtin_cpu_supports("avx2")) {
        crc32c_prepare_parts();
        fastest = CRC32C_BOTH;
        ways |= 1u << fastest;
    }
    if (has_product && __builtin_cpu_supports("avx512f")) {
        fastest = CRC32C_WIDE;
        ways |= 1u << fastest;
    }
}

static void crc32c_run(enum simd_crc32c_way way, uint32_t *crc, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;

    if (way == CRC32C_WIDE && n >= WIDE) {
        size_t whole = n - n % 16;
        *crc = crc32c_wide(*crc, p, whole);
        p += whole;
        n -= whole;
    }
    while (way == CRC32C_BOTH && n >= STEP_BYTES) {
        size_t steps = n / STEP_BYTES < STEPS_MAX ? n / STEP_BYTES : STEPS_MAX;
        *crc = crc32c_both(*crc, p, steps);
        p += STEP_BYTES * steps;
        n -= STEP_BYTES * steps;
    }
    *crc = crc32c_instruction(*crc, p, n);
}

int simd_crc32c_by(enum simd_crc32c_way way, uint32_t *crc, const void *bytes, size_t n)
{
    pthread_once(&once, crc32c_prepare);
    if (!(ways >> way & 1))
        return 0;
    crc32c_run(way, crc, bytes, n);
    return 1;
}

int simd_crc32c(uint32_t *crc, const void *bytes, size_t n)
{
    pthread_once(&once, crc32c_prepare);
    if (ways == 0)
        return 0;
    crc32c_run(fastest, crc, bytes, n);
    return 1;
}
#else
int simd_crc32c_by(enum simd_crc32c_way way, uint32_t *crc, const void *bytes, size_t n)
{
    (void)way, (void)crc, (void)bytes, (void)n;
    return 0;
}

int simd_crc32c(uint32_t *crc, const void *bytes, size_t n)
{
    (void)crc, (void)bytes, (void)n;
    return 0;
}
#endif
