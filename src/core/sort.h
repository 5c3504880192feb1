/* Stable sort of records by partition, then key. */
#ifndef DELTAFS_CORE_SORT_H
#define DELTAFS_CORE_SORT_H

#include <stdint.h>

struct sort_entry {
    uint64_t key;
    uint32_t index; /* of the record */
    uint32_t partition;
};

/* Sort `n` entries, equal ones in the order in which they stand. `a` and `b` have room for n each; returns the one of
 * them that holds the result. */
struct sort_entry *sort_entries(struct sort_entry *a, struct sort_entry *b, uint32_t n);

#endif
