/* Value logs, of directories whose records stay with the rank that appends them: each writer has one of its own, in
 * which its values stand in blocks in the order they came in. With the partition of its key a record has its place
 * there in place of its value. */
#ifndef DELTAFS_DIRECTORY_VALUE_LOG_H
#define DELTAFS_DIRECTORY_VALUE_LOG_H

#include "directory/format/block.h"
#include "directory/format/manifest.h"

/* Where a value is. */
struct position {
    uint32_t writer; /* among those of all jobs */
    uint64_t offset; /* of its block */
    uint32_t index;  /* in the block */
};

/* Bits that tell a job's writers apart. */
unsigned position_writer_bits(uint32_t writers);
/* The number that stands for a place in a log of this job. */
uint64_t position_pack(const struct manifest_job *job, const struct position *place);
/* Returns 0, or -1 if the job has no such writer. */
int position_unpack(const struct manifest_job *job, uint64_t number, struct position *place);
/* The first offset that has no number any more. */
uint64_t position_offset_end(const struct manifest_job *job);

/* Bytes of what is stored in a value log for values of `size` bytes (-1: any) and keys of a kind. */
int64_t values_stored_size(enum option_keys keys, int64_t size);
/* Fill in how the job's line describes blocks of such bytes: bits, and bytes that hold most of them. */
void values_describe(struct manifest_job *job, int64_t stored_size, size_t target);

/* What a block at `offset` of a writer's log says it is. */
struct block_id values_block_id(uint32_t writer, uint32_t epoch, uint64_t offset);

/* The logs that there are: numbers of their writers, in rising order, uint32_t in `out`. */
int values_list(struct io *io, const char *folder, uint32_t partitions, struct buffer *out, size_t *count,
                struct error *e);

/* The path of a log, put into `path`. */
char *values_path(char path[PATH_ROOM], const char *folder, uint32_t partitions, uint32_t writer);

#endif
