/* The rows with the largest values: a heap, the last of them on top. NaN comes last. Rows of the same value are in the
 * order of keys, then epochs, then as they are stored. */
#ifndef DELTAFS_QUERY_SELECT_TOP_H
#define DELTAFS_QUERY_SELECT_TOP_H

#include "base/buffer.h"

struct top_row {
    double by;
    uint64_t order; /* of its record in its partition */
    struct deltafs_record record;
    struct buffer bytes; /* of the record */
};

struct top {
    uint64_t most; /* rows */
    struct top_row *row;
    size_t count, capacity;
};

void top_fini(struct top *t);
/* Whether only rows with a value of *least or more can be among the first; if not, all can. */
int top_has_least(const struct top *t, double *least);
/* Take a copy of the row if it is among the first. */
int top_offer(struct top *t, double by, uint64_t order, const struct deltafs_record *record, struct error *e);
/* Sort the rows, the largest first; no more can be offered. */
void top_sort(struct top *t);

#endif
