#include <string.h>
#include "base/coding.h"
#include "base/hash.h"
#include "base/simd_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash_key(uint64_t key)
{
    uint8_t bytes[8];

    put_u64(bytes, key);
    return XXH3_64bits(bytes, sizeof bytes);
}

/* Flat, so that the hashes of several keys overlap. */
__attribute__((flatten)) void hash_keys(const uint8_t *keys, size_t stride, size_t n, uint64_t *out)
{
    uint64_t key;

    for (size_t i = simd_hash_keys(keys, stride, n, out); i < n; i++) {
        memcpy(&key, keys + i * stride, sizeof key);
        out[i] = hash_key(key);
    }
}

__attribute__((flatten)) uint64_t hash_rows(uint64_t first, const uint64_t *keys, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = simd_hash_rows(first, keys, n, &sum); i < n; i++)
        sum += hash_key(hash_key(keys[i]) + first + i);
    return sum;
}

uint64_t hash_bytes(const void *bytes, size_t n)
{
    return XXH3_64bits(bytes, n);
}

void hash_bytes_twice(const void *bytes, size_t n, uint64_t out[2])
{
    XXH128_hash_t hash = XXH3_128bits(bytes, n);

    out[0] = hash.high64;
    out[1] = hash.low64;
}
