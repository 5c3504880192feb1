/* Leaves that a reader has read and checked, kept for the next questions within a bound of memory. */
#ifndef DELTAFS_DIRECTORY_LEAF_CACHE_H
#define DELTAFS_DIRECTORY_LEAF_CACHE_H

#include "directory/format/leaf.h"

struct leaf_cache;

/* A cache of at most `bytes`, all that it takes counted. */
int leaf_cache_create(uint64_t bytes, struct leaf_cache **out, struct error *e);
/* NULL is fine. */
void leaf_cache_destroy(struct leaf_cache *c);

/* The leaf at `offset` of a partition's index log, in the segment whose footer has the checksum `segment`: an index log
 * that was rebuilt has others there. Valid until the next leaf_cache_add; NULL if it is not there. */
const struct leaf *leaf_cache_find(struct leaf_cache *c, uint32_t partition, uint32_t segment, uint64_t offset);
/* Keep a copy of a leaf, of its bytes too; others may go for it. Where memory is short it is not kept. */
void leaf_cache_add(struct leaf_cache *c, uint32_t partition, uint32_t segment, uint64_t offset,
                    const struct leaf *leaf);

#endif
