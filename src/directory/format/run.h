/* A sorted run: what one full memtable becomes in the data log. Its keys and the shape of its blocks stay in memory
 * until the segment they belong to is merged into leaves. */
#ifndef DELTAFS_DIRECTORY_RUN_H
#define DELTAFS_DIRECTORY_RUN_H

#include "directory/format/block.h"
#include "directory/format/run_keys.h"

struct run_block {
    uint32_t length; /* bytes in the data log */
    uint32_t count;  /* records */
};

struct run {
    uint32_t number; /* in its epoch */
    uint64_t count;  /* records */
    int is_short;    /* its keys are known to be below 2^32 */
    struct keys_cursor keys;
    uint64_t offset;      /* of its first block; the others follow without a gap */
    uint32_t first_block; /* its number: 0, unless those before it are lost */
    uint32_t block_count;
    struct run_block *blocks;
    size_t block_capacity;
    struct memory *memory;
};

/* Begin run `number` of `count` records at the end of the data log; its keys go to `keys` next, in order. */
int run_init(struct run *run, uint32_t number, uint64_t count, uint64_t offset, struct keys_store *keys,
             struct error *e);
void run_fini(struct run *run);

/* Note the run's next block, which is written next. */
int run_note_block(struct run *run, const struct run_block *block, struct error *e);
/* Write what the block writer holds as the run's next block. */
int run_add_block(struct run *run, struct block_writer *w, uint32_t partition, uint32_t epoch, struct log *data,
                  struct error *e);

#endif
