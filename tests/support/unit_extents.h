/* Writes to a logical file one by one, and the lists and batches of extents that they become. */
#ifndef DELTAFS_UNIT_EXTENTS_H
#define DELTAFS_UNIT_EXTENTS_H

#include "io/io_format.h"
#include "logical/format/extents.h"
#include "unit_help.h"

struct write {
    uint64_t offset, size, position;
};

struct history {
    struct extent_list list;
    struct write *write;
    size_t count, capacity;
    uint64_t position;
};

extern const uint8_t uuid[FORMAT_UUID_SIZE]; /* of the container */

void write_some(struct history *h, uint64_t offset, uint64_t size);
void history_fini(struct history *h);
/* Two batches of a few entries of all kinds; returns the first one's length. */
size_t make_batches(struct rng *r, struct buffer *out, size_t *n);

#endif
