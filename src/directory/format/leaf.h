/* A leaf: about 2,048 consecutive keys of a segment in the index log, Elias-Fano coded, with for each the number of its
 * run, and for each of these runs which blocks of the data log hold its records.
 *
 * Keys may repeat. Records stand in the order (key, run, place in the run), which is the order of appending for one
 * key. A record's place: count the records of the same run before it in the leaf, add the records to be skipped in
 * the run's first block, and walk the blocks' counts. */
#ifndef DELTAFS_DIRECTORY_LEAF_H
#define DELTAFS_DIRECTORY_LEAF_H

#include "base/buffer.h"
#include "directory/format/directory_format.h"
#include "directory/format/run.h"

/* Bytes that must be readable behind a leaf's own, so that bits can be loaded eight bytes at a time. */
#define LEAF_SLACK 16

/* Bytes of a run table's row without its blocks, and of a block in it: a varint of 64 bits takes 10, of 32 bits 5, of a
 * block's records 3, and of its length 4. */
#define LEAF_ROW_MAX   (5 + 5 + 3 + 10 + 5)
#define LEAF_BLOCK_MAX (3 + 4)

/* Bytes of an epoch that is not as expected: a record's number and 32 bits. */
#define LEAF_EPOCH_MAX (3 + 5)

/* What a leaf of up to LEAF_RECORDS records takes at most while it is encoded. A record has a row and a block of its
 * own at worst, 63 lower bits and 3 upper ones, less than 16 bits of its run's number, and an epoch. */
#define LEAF_ENCODED_MAX                                                                                               \
    (LEAF_RECORDS * (LEAF_ROW_MAX + LEAF_BLOCK_MAX + LEAF_EPOCH_MAX + 8 + 1 + 2) + LEAF_HEADER_SIZE + LEAF_SLACK)

struct leaf_id {
    uint32_t partition;
    uint32_t epoch;
    uint32_t segment;
    uint32_t leaf;
};

/* Where a run's next record is; a segment's merge keeps one for each run. */
struct run_cursor {
    const struct run *run;
    uint32_t block;  /* its block */
    uint32_t skip;   /* records of the block before it */
    uint64_t offset; /* of the block in the data log */
};

/* Encode records given by key and cursor number, ordered, into `out`, and advance the cursors over them. */
struct leaf_input {
    const uint64_t *keys;
    const uint32_t *cursors; /* of each record: index into `cursor`; not looked at if there is one */
    uint32_t count;
    struct run_cursor *cursor;
    uint32_t cursor_count;
    uint32_t *scratch; /* cursor_count of them */
    uint8_t flags;
    const uint32_t *epochs; /* of each record, where epochs are compacted; else NULL */
};
int leaf_encode(const struct leaf_input *in, const struct leaf_id *id, uint32_t seed, struct buffer *out,
                size_t *length, struct error *e);

/* A block as a leaf names it. */
struct leaf_block {
    uint64_t offset;
    uint32_t length;
    uint32_t count;
};

struct leaf_run {
    uint32_t run;    /* number in the epoch */
    uint32_t block;  /* number of its first block here */
    uint32_t skip;   /* records of that block that are before this leaf */
    uint32_t first;  /* index of that block in the leaf's blocks */
    uint32_t blocks; /* how many */
};

/* A leaf taken apart; points into the bytes given to leaf_parse. Usable again; leaf_fini frees. */
struct leaf {
    uint32_t count;
    uint64_t first_key, last_key;
    unsigned low_bits, run_bits;
    uint64_t upper_bits;
    const uint8_t *bytes; /* all of it, and parts: */
    const uint8_t *table, *upper, *lower, *runs_of;
    const uint8_t *epochs; /* NULL: epochs are not compacted */
    size_t size, table_size;
    uint32_t run_count, block_count;
    struct buffer runs;   /* struct leaf_run */
    struct buffer blocks; /* struct leaf_block */
};

void leaf_fini(struct leaf *leaf);
/* `bytes` were read at `offset` of `path`, with LEAF_SLACK more readable ones behind. */
int leaf_parse(struct leaf *leaf, const uint8_t *bytes, size_t n, const struct leaf_id *id, uint32_t seed,
               const char *path, uint64_t offset, struct error *e);

/* Whether the bytes are a leaf that says that the records between its keys are lost: leaf_parse refuses it. */
int leaf_is_lost(const uint8_t *bytes, size_t n, uint32_t seed);

/* A leaf like it, not loaded, that points into `bytes`, to which the leaf's own and LEAF_SLACK behind them are copied.
 */
void leaf_copy(struct leaf *to, const struct leaf *from, uint8_t *bytes);
/* Take its run table apart too, for leaf_place. */
int leaf_load(struct leaf *leaf, const char *path, uint64_t offset, struct error *e);

/* Records of `key`: how many, and the index of the first. */
uint32_t leaf_find(const struct leaf *leaf, uint64_t key, uint32_t *first);
/* The key of record `i`, for a caller that wants a few of them. */
uint64_t leaf_key(const struct leaf *leaf, uint32_t i);
/* All keys, in order. */
void leaf_keys(const struct leaf *leaf, uint64_t *keys);
/* Index into leaf->runs of record `i`'s run; may be beyond run_count in a malformed leaf. */
uint32_t leaf_run_of(const struct leaf *leaf, uint32_t i);
/* The same of all records. */
void leaf_runs_of(const struct leaf *leaf, uint32_t *runs);

/* Where a record is: its block, the block's identity, and its place in it. */
struct leaf_place {
    struct leaf_block at;
    uint32_t run;
    uint32_t block;
    uint32_t record;
};
/* The place of the `k`-th record of runs[r] in this leaf, which was loaded. Returns 0, or -1 in a malformed leaf. */
int leaf_place(const struct leaf *leaf, uint32_t r, uint32_t k, struct leaf_place *out);
/* The same for a leaf that was not: goes through the table up to this run, for who wants a record or two. */
int leaf_seek(const struct leaf *leaf, uint32_t r, uint32_t k, struct leaf_place *out);
/* How many of the records before `i` are of runs[r]. */
uint32_t leaf_rank(const struct leaf *leaf, uint32_t r, uint32_t i);

/* Goes through the epochs of a leaf's records where epochs are compacted. */
struct leaf_epochs {
    const uint8_t *at, *end;
    uint64_t next;   /* the next record whose epoch is stored */
    uint32_t stored; /* that epoch */
    uint32_t epoch;  /* expected of the next record */
};
struct leaf_epochs leaf_epochs_begin(const struct leaf *leaf);
/* The epoch of record `i`. The calls are in the order of records; what is left out is whole keys. UINT32_MAX in a
 * malformed leaf, and of the records behind what is malformed. */
uint32_t leaf_epochs_next(struct leaf_epochs *s, uint32_t i, int is_first_of_key);

#endif
