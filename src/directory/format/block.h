/* A block: some records of one run, packed, with a checksum and the identity of its place. */
#ifndef DELTAFS_DIRECTORY_BLOCK_H
#define DELTAFS_DIRECTORY_BLOCK_H

#include "base/buffer.h"
#include "base/options.h"
#include "directory/format/strips.h"
#include "io/log.h"

/* Where a block belongs; it is stored in the block and compared when it is read. */
struct block_id {
    uint32_t partition;
    uint32_t epoch;
    uint32_t run;
    uint32_t block;
    int is_values; /* of a value log: `partition` is the writer, run and block the halves of the block's offset */
};

#define BLOCK_VALUE_MAX   (1u << 20)             /* bytes of a value */
#define KEY_BYTES_MAX     255                    /* of a key of bytes, which is before its value, behind its size */
#define BLOCK_PAYLOAD_MAX (4u * BLOCK_VALUE_MAX) /* bytes of a payload that a reader accepts */

/* Encoder: values are added one after the other, or named all at once; then the block is closed. Made for one value
 * size, or for any. */
struct block_writer {
    int64_t value_size; /* -1: any */
    struct strips strips;
    enum option_codec codec;
    size_t target; /* bytes of values after which a block of values of any size is full */
    uint32_t most; /* values after which a block is full */
    uint32_t count;
    size_t used;           /* bytes of the values */
    const uint8_t *source; /* the values, where they are not in `values`; else NULL */
    struct buffer values;  /* as added */
    struct buffer sizes;   /* uint32_t: of each value */
    struct buffer layout;  /* the values in planes, or the sizes and values */
    struct buffer out;     /* the finished block */
};

/* Takes all that any block needs from `memory` at once. `strips` NULL: none. */
int block_writer_init(struct block_writer *w, int64_t value_size, const struct strips *strips, enum option_codec codec,
                      size_t target, struct memory *memory, struct error *e);
void block_writer_fini(struct block_writer *w);
/* What it takes. */
size_t block_writer_memory(int64_t value_size, size_t target);
/* The longest block that it makes of values of one size. */
size_t block_writer_out_max(int64_t value_size, size_t target);
/* How many values of one size fill a block. */
uint32_t block_records(int64_t value_size, size_t target);
/* Empty it without closing. */
void block_writer_clear(struct block_writer *w);
/* Add a value, with a byte before it if `tag` is not NULL. */
int block_writer_add(struct block_writer *w, const uint8_t *tag, const void *value, size_t size, struct error *e);
int block_writer_is_full(const struct block_writer *w);
/* Let an empty block have `n` values, all of its one size: number order[0], order[1], ... of `source`, which are
 * copied; `order` has so many more, `following`, that are wanted next. If it is NULL: the first of `source`, which are
 * looked at when the block is closed; behind them PLANES_SLACK bytes can be read. */
void block_writer_set(struct block_writer *w, const uint8_t *source, const uint32_t *order, uint32_t n,
                      uint64_t following);
/* Write the finished block, of *length bytes, into w->out from `at` on, and empty the writer. A block of a value log is
 * filled up to a multiple of VALUES_ALIGN. */
int block_writer_close(struct block_writer *w, const struct block_id *id, uint32_t seed, size_t at, size_t *length,
                       struct error *e);

/* A strip as it is stored. */
struct block_strip {
    const uint8_t *bytes;
    const uint8_t *planes; /* NULL: they have not been wanted */
    uint32_t entry;        /* in the table: its bytes and flags */
    uint32_t checksum;
};

/* A decoded block. Grows its memory as needed and can be used for one block after the other. */
struct block {
    uint32_t count;
    int64_t value_size;   /* -1: see ends */
    const uint8_t *plain; /* the values, one after the other; NULL: they are in planes */
    const uint8_t *planes;
    /* Of a block in strips; NULL otherwise. */
    const struct strips *strips;
    struct block_strip strip[STRIPS_COUNT_MAX];
    const uint8_t *end; /* of what is stored of them */
    uint32_t seed;      /* of their checksums */
    const char *path;   /* for messages */
    uint64_t offset;
    struct buffer values;  /* in record order, one after the other */
    struct buffer ends;    /* uint32_t: where each value ends, if sizes differ */
    struct buffer payload; /* unpacked */
};

void block_fini(struct block *b);
/* Decode the `n` bytes that were read at `offset` of `path`; they must stay as long as the block is used. `value_size`,
 * `strips` and `wanted` are those of the directory's values (`strips` may be NULL), `count` is what the index says. For
 * a block of a value log `count` is not used, and more may have been read. `wanted`: as for planes_join. */
struct block_of {
    int64_t value_size;
    const struct strips *strips;
    const uint8_t *wanted;
};
int block_decode(struct block *b, const uint8_t *bytes, size_t n, const struct block_id *id, uint32_t seed,
                 const struct block_of *of, uint32_t count, const char *path, uint64_t offset, struct error *e);
/* Which parts of a block of `length` bytes are read to decode it, if its first block_head bytes have been read. The
 * others may have any contents. Returns their number. */
struct block_part {
    size_t at, length;
};
size_t block_head(const struct block_of *of);
uint32_t block_parts(const uint8_t *head, size_t length, const struct block_of *of,
                     struct block_part parts[STRIPS_COUNT_MAX]);
/* Let more bytes of the values be wanted. */
int block_want(struct block *b, const uint8_t *wanted, struct error *e);
/* The length of a value log's block by its header, filled up; 0 if it is no such block. */
size_t block_values_length(const uint8_t *header);
/* Take the values out of their planes, all at once: for who wants most of them. `wanted`: as for planes_join. */
int block_join(struct block *b, const uint8_t *wanted, struct error *e);
/* One column, of `size` bytes from `at` on in each value, all of them wanted: its values one after the other in `to`,
 * or where they are already. Returns the first; *stride is from one to the next. */
const uint8_t *block_column(struct block *b, size_t at, size_t size, uint8_t *to, size_t *stride);
/* Value `i` (below count), valid until the next call for this block. */
const uint8_t *block_value(struct block *b, uint32_t i, size_t *size);

#endif
