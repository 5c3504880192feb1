/* What may be in a logical file, block by block, when some calls have failed, or the power: of each block the versions
 * that it can have. Version 0 is zeros. */
#ifndef DELTAFS_UNIT_BLOCKS_H
#define DELTAFS_UNIT_BLOCKS_H

#include <deltafs/deltafs_logical.h>

#define BLOCK_SIZE   700 /* bytes; no block begins where a frame does */
#define BLOCKS       24
#define VERSIONS_MAX 24

struct unit_block {
    uint32_t version[VERSIONS_MAX]; /* the last is what was written last */
    size_t count;
};

struct unit_blocks {
    struct unit_block block[BLOCKS];
};

/* All are zeros. */
void unit_blocks_init(struct unit_blocks *b);
/* Block `i` may be `version` from now on, or what it was. */
void unit_blocks_note(struct unit_blocks *b, size_t i, uint32_t version);
/* It is what was noted last, and nothing else. */
void unit_blocks_settle(struct unit_blocks *b, size_t i);
/* Whether that is so of all. */
int unit_blocks_is_settled(const struct unit_blocks *b, size_t i);
/* Whether it may have these bytes. */
int unit_blocks_match(const struct unit_blocks *b, size_t i, const uint8_t *bytes);

void unit_block_fill(uint8_t *bytes, size_t i, uint32_t version);
/* Write a block to the file, and note it. */
int unit_blocks_write(struct unit_blocks *b, deltafs_logical *f, size_t i, uint32_t version);

#endif
