/* Which partition a key belongs to, and which rank owns a partition while writing. Part of the format: a reader finds a
 * key's partition the same way. */
#ifndef DELTAFS_DIRECTORY_PARTITION_H
#define DELTAFS_DIRECTORY_PARTITION_H

#include <deltafs/deltafs.h>
#include "base/hash.h"

#define PARTITIONS_RANGE_MAX                                                                                           \
    (1u << 16) /* partitions by ranges of keys, at most: a line of the manifest has all pivots */

/* How the records of an epoch are placed. */
struct partitioner {
    uint32_t partitions;
    const uint64_t *pivots;  /* the first keys of partitions 1, 2, ..., ascending; NULL: there are none, */
    deltafs_partition_fn fn; /* but the caller's function, if that is not NULL either; else keys are placed by hash */
    void *arg;
    int is_unknown; /* by a function that is not given: a key may be in any partition */
};

/* The key's hash mapped to 0 .. partitions - 1 by multiply-shift (Lemire, 2019). */
static inline uint32_t partition_of_hash(uint64_t hash, uint32_t partitions)
{
    return (uint32_t)((unsigned __int128)hash * partitions >> 64);
}

static inline uint32_t partition_by_hash(uint64_t key, uint32_t partitions)
{
    return partition_of_hash(hash_key(key), partitions);
}

/* How many of `n` pivots are at most `key`. */
static inline uint32_t partition_of_pivots(const uint64_t *pivots, uint32_t n, uint64_t key)
{
    const uint64_t *at = pivots;

    for (; n > 1; n -= n / 2)
        at += at[n / 2 - 1] <= key ? n / 2 : 0;
    return (uint32_t)(at - pivots) + (n == 1 && *at <= key);
}

/* A number that there is, whatever the caller's function returns. */
static inline uint32_t partition_of(const struct partitioner *by, uint64_t key)
{
    if (by->pivots)
        return partition_of_pivots(by->pivots, by->partitions - 1, key);
    if (!by->fn)
        return partition_by_hash(key, by->partitions);
    uint32_t partition = by->fn(key, by->partitions, by->arg);
    return partition < by->partitions ? partition : 0;
}

/* The partitions that can have keys from `low` to `high`: *first <= i <= *last. */
static inline void partition_range(const struct partitioner *by, uint64_t low, uint64_t high, uint32_t *first,
                                   uint32_t *last)
{
    *first = by->pivots ? partition_of(by, low) : 0;
    *last = by->pivots ? partition_of(by, high) : by->partitions - 1;
}

/* The keys that a partition can have; returns whether there are any. */
static inline int partition_keys(const struct partitioner *by, uint32_t partition, uint64_t *low, uint64_t *high)
{
    int has_end = by->pivots && partition + 1 < by->partitions;

    *low = by->pivots && partition > 0 ? by->pivots[partition - 1] : 0;
    *high = has_end ? by->pivots[partition] - 1 : UINT64_MAX;
    return !has_end || by->pivots[partition] > *low;
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
