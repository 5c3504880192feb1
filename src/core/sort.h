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

/* The order of the `n` records that have these keys: their indices, by partition, then key, then index. `a` and `b`
 * have room for n each; the result is in one of them. */
const uint32_t *sort_records(const uint64_t *keys, uint32_t n, const struct sort_partitions *partitions, uint64_t *a,
                             uint64_t *b);

#endif
