/* The hash that places keys: XXH3, 64 bits, seed 0, over the key's 8 bytes in little-endian order. It decides which
 * partition holds a key, so it is part of the format. */
#ifndef DELTAFS_BASE_HASH_H
#define DELTAFS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_key(uint64_t key);
/* The hashes of `n` keys, `stride` bytes apart. */
void hash_keys(const uint8_t *keys, size_t stride, size_t n, uint64_t *out);
/* The sum of the hashes of rows `first` to first + n - 1, each that of the row's number plus the hash of its key. So
 * rows may be added in any order. */
uint64_t hash_rows(uint64_t first, const uint64_t *keys, size_t n);

/* The number of a key that is bytes: the same hash over them. */
uint64_t hash_bytes(const void *bytes, size_t n);

/* 128 bits (XXH3), by which things are distinguished without looking at them: in 10^12 of them two have the same hash
 * with a probability of 10^-15. Not part of any format on disk. */
void hash_bytes_twice(const void *bytes, size_t n, uint64_t out[2]);

#endif
