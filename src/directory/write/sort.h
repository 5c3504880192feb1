/* Stable sort of a memtable's records by partition, then key. */
#ifndef DELTAFS_DIRECTORY_SORT_H
#define DELTAFS_DIRECTORY_SORT_H

#include <stddef.h>
#include <stdint.h>
#include "base/team.h"
#include "directory/format/partition.h"

/* Bytes of scratch memory that sorting takes for each record. */
#define SORT_RECORD_BYTES 16

/* The partitions that the records may be of. */
struct sort_partitions {
    const struct partitioner *by;
    uint32_t first; /* of the records */
    uint32_t count; /* how many from there on; 1: all records are of it, or partitions follow the order of keys */
};

struct sort_input {
    uint32_t count;
    uint64_t *keys;        /* overwritten; PLANES_SLACK bytes behind them can be read */
    const uint8_t *values; /* of one size, behind which PLANES_SLACK bytes can be read; NULL: they differ in size */
    size_t value_size;
    struct team *team; /* that helps; NULL: none */
};

/* Records by partition, then key, then index. Values of up to eight bytes may have been moved with their keys: then
 * they stand in that order, and `order` is NULL. Otherwise they are where they were, record i's is number order[i]. */
struct sorted {
    const uint64_t *keys;
    const uint32_t *order;
    const uint8_t *values; /* PLANES_SLACK bytes behind them can be read */
};

/* `a` and `b` have room for a number of each record, and behind that PLANES_SLACK bytes that can be read; the result is
 * in them and in the place of the keys, but for values that stay. */
struct sorted sort_records(const struct sort_input *in, const struct sort_partitions *partitions, uint64_t *a,
                           uint64_t *b);

/* The records from number `i` on. */
static inline struct sorted sorted_from(const struct sorted *s, uint64_t i, size_t value_size)
{
    return s->order ? (struct sorted){s->keys + i, s->order + i, s->values}
                    : (struct sorted){s->keys + i, NULL, s->values + i * value_size};
}

#endif
