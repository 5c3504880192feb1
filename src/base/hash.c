/* XXH3 is the library's; simd_hash.c computes it for several keys at a time. */
#include <string.h>
#include "base/coding.h"
#include "base/hash.h"
#include "base/simd_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static inline uint64_t key_at(const uint8_t *p)
{
    uint64_t key;

    memcpy(&key, p, sizeof key);
    return key;
}

static inline uint64_t hash_one(uint64_t key)
{
    uint8_t bytes[8];

    put_u64(bytes, key);
    return XXH3_64bits(bytes, sizeof bytes);
}

uint64_t hash_key(uint64_t key)
{
    return hash_one(key);
}

/* Flat, so that the hashes of several keys overlap. */
__attribute__((flatten)) void hash_keys(const uint8_t *keys, size_t stride, size_t n, uint64_t *out)
{
    for (size_t i = simd_hash_keys(keys, stride, n, out); i < n; i++)
        out[i] = hash_one(key_at(keys + i * stride));
}

uint64_t hash_bytes(const void *bytes, size_t n)
{
    return XXH3_64bits(bytes, n);
}
