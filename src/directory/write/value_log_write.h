/* The value log of one writer, where records stay with the rank that appends them (layout=local): values go into blocks
 * as they come, and for each comes out the place that the partition of its key gets instead of it. Used by the
 * writer alone.
 *
 * The log is made when its first block is full: who appends nothing has none. Blocks are encoded and appended by the
 * caller's thread; values_sync may be called by another while values of the next epoch come in. */
#ifndef DELTAFS_DIRECTORY_VALUE_LOG_WRITE_H
#define DELTAFS_DIRECTORY_VALUE_LOG_WRITE_H

#include "directory/write/writer_config.h"
#include "directory/format/value_log.h"

#define VALUES_BATCH 1024 /* values taken at a time */

struct values_writer {
    int is_on;
    struct io *io;
    const struct writer_config *c;
    uint32_t writer; /* among those of all jobs */
    int64_t stored_size;
    int may_direct;
    size_t buffer;
    struct flusher *flusher;
    struct memory *memory;
    _Atomic int is_open;
    struct log log;
    struct block_writer block;
    uint64_t *places; /* of the values that were put last */
    struct values_start {
        uint32_t epoch;
        uint64_t end;
    } start, kept;      /* as a partition's */
    uint64_t bytes_raw; /* of the epoch */
};

/* Bytes of memory that it takes, with a log's buffer of `buffer` bytes; 0 where records go to their partitions. */
uint64_t values_writer_memory(const struct writer_config *c, size_t buffer);
/* `buffer` is the size of the flusher's, if there is one; all pointers must outlive the writer. */
int values_writer_open(struct values_writer *v, struct io *io, const struct writer_config *c, size_t buffer,
                       struct flusher *flusher, struct memory *memory, struct error *e);
int values_writer_close(struct values_writer *v, struct error *e);

/* Whether values_put of values of `size` would not wait for storage, but for making the log, or for a block that is
 * longer than its buffer. */
int values_can_put(struct values_writer *v, size_t size);
/* Take at most VALUES_BATCH of `n` values, and no more than end one block; returns how many, with their places in
 * v->places. */
int values_put(struct values_writer *v, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
               size_t value_stride, size_t size, size_t *count, struct error *e);
/* No values of this epoch follow: do what values_seal is to do, as far as that goes without waiting; returns whether
 * the rest would not wait either, but as in values_can_put. Without a flusher values_seal does all. */
int values_seal_ahead(struct values_writer *v);
/* The epoch's last block, and all to the system or the flusher; adds to the totals. The next epoch begins. */
int values_seal(struct values_writer *v, struct writer_totals *totals, struct error *e);
/* Force all that was sealed to storage; the flusher has been drained. */
int values_sync(struct values_writer *v, struct error *e);
/* As the partitions'. */
void values_keep(struct values_writer *v);
int values_discard(struct values_writer *v, struct error *e);
int values_finish(struct values_writer *v, struct error *e);

#endif
