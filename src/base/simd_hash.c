/* XXH3 of several keys of 8 bytes at a time: a dozen instructions, none of which uses another key. Processors with
 * vectors of 512 bits, and a multiplication of 64 bits in them, compute eight hashes in half the time. */
#include <pthread.h>
#include <string.h>
#include "base/simd_hash.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AT_ONCE     8
#define WIDE_TARGET __attribute__((target("avx512f,avx512dq")))

#define XXH3_FLIP   0xc73ab174c5ecd5a2 /* of 4 to 8 bytes without a seed: bytes 8 to 15 of its secret, xor 16 to 23 */
#define XXH3_FACTOR 0x9fb21c651e98df25

static inline long long key_lane(const uint8_t *keys, size_t stride, size_t lane)
{
    long long key;

    memcpy(&key, keys + lane * stride, sizeof key);
    return key;
}

/* n is a multiple of AT_ONCE. */
WIDE_TARGET static void hash_keys_wide(const uint8_t *k, size_t stride, size_t n, uint64_t *out)
{
    const __m512i flip = _mm512_set1_epi64((long long)XXH3_FLIP), factor = _mm512_set1_epi64((long long)XXH3_FACTOR);

    for (size_t i = 0; i < n; i += AT_ONCE, k += AT_ONCE * stride) {
        __m512i h = _mm512_set_epi64(key_lane(k, stride, 7), key_lane(k, stride, 6), key_lane(k, stride, 5),
                                     key_lane(k, stride, 4), key_lane(k, stride, 3), key_lane(k, stride, 2),
                                     key_lane(k, stride, 1), key_lane(k, stride, 0));
        h = _mm512_xor_si512(_mm512_rol_epi64(h, 32), flip);
        h = _mm512_ternarylogic_epi64(h, _mm512_rol_epi64(h, 49), _mm512_rol_epi64(h, 24), 0x96);
        h = _mm512_mullo_epi64(h, factor);
        h = _mm512_xor_si512(h, _mm512_add_epi64(_mm512_srli_epi64(h, 35), _mm512_set1_epi64(8)));
        h = _mm512_mullo_epi64(h, factor);
        _mm512_storeu_si512(out + i, _mm512_xor_si512(h, _mm512_srli_epi64(h, 28)));
    }
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int has_wide;

static void hash_prepare(void)
{
    has_wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
}

size_t simd_hash_keys(const uint8_t *keys, size_t stride, size_t n, uint64_t *out)
{
    pthread_once(&once, hash_prepare);
    if (!has_wide)
        return 0;
    n -= n % AT_ONCE;
    hash_keys_wide(keys, stride, n, out);
    return n;
}
#else
size_t simd_hash_keys(const uint8_t *keys, size_t stride, size_t n, uint64_t *out)
{
    (void)keys, (void)stride, (void)n, (void)out;
    return 0;
}
#endif
