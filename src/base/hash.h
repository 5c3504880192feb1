/* The hash that places keys: XXH3, 64 bits, seed 0, over the key's 8 bytes in little-endian order. It decides which
 * partition holds a key, so it is part of the format. */
#ifndef DELTAFS_BASE_HASH_H
#define DELTAFS_BASE_HASH_H

#include <stdint.h>

uint64_t hash_key(uint64_t key);

#endif
