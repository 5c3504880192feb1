/* Which partition a key belongs to, and which rank owns a partition while writing. Part of the format: a reader finds a
 * key's partition the same way. */
#ifndef DELTAFS_DIRECTORY_PARTITION_H
#define DELTAFS_DIRECTORY_PARTITION_H

#include "base/hash.h"

/* The key's hash mapped to 0 .. partitions - 1 by multiply-shift (Lemire, 2019). */
static inline uint32_t partition_of_hash(uint64_t hash, uint32_t partitions)
{
    return (uint32_t)((unsigned __int128)hash * partitions >> 64);
}

/* The first hash of a partition; what follows the last hash of all, 0, of the one behind the last. */
static inline uint64_t partition_first_hash(uint32_t partition, uint32_t partitions)
{
    return (uint64_t)((((unsigned __int128)partition << 64) + partitions - 1) / partitions);
}

static inline uint32_t partition_of(uint64_t key, uint32_t partitions)
{
    return partition_of_hash(hash_key(key), partitions);
}

/* Ranks own contiguous shares: several partitions a rank, or none. */
static inline int partition_owner(uint32_t partition, uint32_t partitions, int ranks)
{
    return (int)((uint64_t)partition * (uint64_t)ranks / partitions);
}

/* The first partition whose owner is `rank` or above. */
static inline uint32_t partition_first(int rank, uint32_t partitions, int ranks)
{
    return (uint32_t)(((uint64_t)rank * partitions + (uint64_t)ranks - 1) / (uint64_t)ranks);
}

#endif
