/* XXH3 of eight bytes, seed 0, of eight keys at once: processors with AVX-512 multiply eight numbers of 64 bits by one
 * instruction. */
#include <string.h>
#include "base/simd_hash.h"

#define EIGHT 8

#if defined(__x86_64__)
#define HASH_TARGET __attribute__((target("avx512f,avx512dq")))

#define HASH_SECRET UINT64_C(0xc73ab174c5ecd5a2) /* bytes 8 to 15 of XXH3's secret, XOR bytes 16 to 23 */
#define HASH_FACTOR UINT64_C(0x9fb21c651e98df25)

typedef uint64_t hash_eight __attribute__((vector_size(EIGHT * sizeof(uint64_t))));

HASH_TARGET static inline __attribute__((always_inline)) hash_eight hash_of(hash_eight h)
{
    h = (h << 32 | h >> 32) ^ HASH_SECRET;
    h ^= (h << 49 | h >> 15) ^ (h << 24 | h >> 40);
    h *= HASH_FACTOR;
    h ^= (h >> 35) + sizeof(uint64_t);
    h *= HASH_FACTOR;
    return h ^ h >> 28;
}

HASH_TARGET static size_t hash_keys_wide(const uint8_t *keys, size_t stride, size_t n, uint64_t *out)
{
    hash_eight key;
    size_t at = 0;

    for (; at + EIGHT <= n; at += EIGHT, keys += EIGHT * stride) {
        for (size_t i = 0; i < EIGHT; i++)
            memcpy(out + at + i, keys + i * stride, sizeof *out);
        memcpy(&key, out + at, sizeof key);
        key = hash_of(key);
        memcpy(out + at, &key, sizeof key);
    }
    return at;
}

HASH_TARGET static size_t hash_rows_wide(uint64_t first, const uint64_t *keys, size_t n, uint64_t *sum)
{
    hash_eight key, row = {0, 1, 2, 3, 4, 5, 6, 7}, all = {0};
    size_t at = 0;

    for (row += first; at + EIGHT <= n; at += EIGHT, row += EIGHT) {
        memcpy(&key, keys + at, sizeof key);
        all += hash_of(hash_of(key) + row);
    }
    for (size_t i = 0; i < EIGHT; i++)
        *sum += all[i];
    return at;
}

static int has_wide(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
}

size_t simd_hash_keys(const uint8_t *keys, size_t stride, size_t n, uint64_t *out)
{
    return n >= EIGHT && has_wide() ? hash_keys_wide(keys, stride, n, out) : 0;
}

size_t simd_hash_rows(uint64_t first, const uint64_t *keys, size_t n, uint64_t *sum)
{
    return n >= EIGHT && has_wide() ? hash_rows_wide(first, keys, n, sum) : 0;
}
#else
size_t simd_hash_keys(const uint8_t *keys, size_t stride, size_t n, uint64_t *out)
{
    (void)keys, (void)stride, (void)n, (void)out;
    return 0;
}

size_t simd_hash_rows(uint64_t first, const uint64_t *keys, size_t n, uint64_t *sum)
{
    (void)first, (void)keys, (void)n, (void)sum;
    return 0;
}
#endif
