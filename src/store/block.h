/* A block: some records of one run, packed, with a checksum and the identity of its place. */
#ifndef DELTAFS_STORE_BLOCK_H
#define DELTAFS_STORE_BLOCK_H

#include "base/buffer.h"
#include "base/options.h"
#include "store/log.h"

/* Where a block belongs; it is stored in the block and compared when it is read. */
struct block_id {
    uint32_t partition;
    uint32_t epoch;
    uint32_t run;
    uint32_t block;
};

#define BLOCK_VALUE_MAX   (1u << 20)             /* bytes of a value */
#define BLOCK_PAYLOAD_MAX (4u * BLOCK_VALUE_MAX) /* bytes of a payload that a reader accepts */

/* Encoder: values are added one after the other, then the block is closed. Made for one value size, or for any. */
struct block_writer {
    int64_t value_size; /* -1: any */
    enum option_codec codec;
    size_t target; /* bytes of values after which the block is full */
    uint32_t count;
    size_t used;           /* bytes in `values` */
    struct buffer values;  /* as appended */
    struct buffer sizes;   /* uint32_t: of each value */
    struct buffer layout;  /* the values in planes, or the sizes and values */
    struct buffer scratch; /* of making the planes */
    struct buffer out;     /* the finished block */
};

/* Takes all that any block needs from `memory` at once. */
int block_writer_init(struct block_writer *w, int64_t value_size, enum option_codec codec, size_t target,
                      struct memory *memory, struct error *e);
void block_writer_fini(struct block_writer *w);
/* What it takes. */
size_t block_writer_memory(int64_t value_size, size_t target);
/* How many values of one size fill a block. */
uint32_t block_records(int64_t value_size, size_t target);
int block_writer_add(struct block_writer *w, const void *value, size_t size, struct error *e);
int block_writer_is_full(const struct block_writer *w);
/* The finished block in w->out, of *length bytes; empties the writer. */
int block_writer_close(struct block_writer *w, const struct block_id *id, uint32_t seed, size_t *length,
                       struct error *e);

/* A decoded block. Grows its memory as needed and can be used for one block after the other. */
struct block {
    uint32_t count;
    int64_t value_size;    /* -1: see ends */
    struct buffer values;  /* in record order, one after the other */
    struct buffer ends;    /* uint32_t: where each value ends, if sizes differ */
    struct buffer scratch; /* the payload, unpacked */
    struct buffer planes;  /* of joining them */
};

void block_fini(struct block *b);
/* Decode the `n` bytes that were read at `offset` of `path`. `value_size` and `count` are what the index says. */
int block_decode(struct block *b, uint8_t *bytes, size_t n, const struct block_id *id, uint32_t seed,
                 int64_t value_size, uint32_t count, const char *path, uint64_t offset, struct error *e);

static inline const uint8_t *block_value(const struct block *b, uint32_t i, size_t *size)
{
    if (b->value_size >= 0) {
        *size = (size_t)b->value_size;
        return b->values.bytes + (size_t)i * (size_t)b->value_size;
    }
    const uint32_t *ends = (const uint32_t *)(const void *)b->ends.bytes;
    uint32_t start = i > 0 ? ends[i - 1] : 0;
    *size = ends[i] - start;
    return b->values.bytes + start;
}

#endif
