/* The vector instructions of hash.c. */
#ifndef DELTAFS_BASE_SIMD_HASH_H
#define DELTAFS_BASE_SIMD_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Like hash_keys, for as many of the first keys as the processor's vectors take; returns how many: 0 if it has none. */
size_t simd_hash_keys(const uint8_t *keys, size_t stride, size_t n, uint64_t *out);

#endif
