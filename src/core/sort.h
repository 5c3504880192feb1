/* Stable sort of a memtable's records by partition, then key. */
#ifndef DELTAFS_CORE_SORT_H
#define DELTAFS_CORE_SORT_H

#include <stdint.h>

/* Bytes of scratch memory that sorting takes for each record. */
#define SORT_RECORD_BYTES 16

/* The partitions that the records may be of. */
struct sort_partitions {
    uint32_t all;   /* of the container */
    uint32_t first; /* of the records */
    uint32_t count; /* how many from there on; 1: all records are of it */
};

/* Records by partition, then key, then index: their indices, and their keys. */
struct sorted {
    const uint32_t *order;
    const uint64_t *keys;
};

/* The `n` records that have these keys. `a` and `b` have room for n each; the result is in them. */
struct sorted sort_records(const uint64_t *keys, uint32_t n, const struct sort_partitions *partitions, uint64_t *a,
                           uint64_t *b);

#endif
