/* The processor's instructions for hash.c. */
#ifndef DELTAFS_BASE_SIMD_HASH_H
#define DELTAFS_BASE_SIMD_HASH_H

#include <stddef.h>
#include <stdint.h>

/* As hash_keys and hash_rows, of the first keys: eight at a time. Return of how many: 0 if the processor has no such
 * instructions. */
size_t simd_hash_keys(const uint8_t *keys, size_t stride, size_t n, uint64_t *out);
size_t simd_hash_rows(uint64_t first, const uint64_t *keys, size_t n, uint64_t *sum);

#endif
