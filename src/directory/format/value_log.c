#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "directory/format/directory_format.h"
#include "directory/format/value_log.h"

static unsigned bits_of(uint64_t n)
{
    return n > 0 ? 64 - (unsigned)__builtin_clzll(n) : 0;
}

unsigned position_writer_bits(uint32_t writers)
{
    return bits_of(writers - 1);
}

uint64_t position_pack(const struct manifest_job *job, const struct position *place)
{
    uint64_t unit = place->offset / VALUES_ALIGN;

    return (unit << position_writer_bits(job->writers) | (place->writer - job->first)) << job->bits | place->index;
}

int position_unpack(const struct manifest_job *job, uint64_t number, struct position *place)
{
    unsigned bits = position_writer_bits(job->writers);
    uint64_t above = number >> job->bits, writer = above & ((UINT64_C(1) << bits) - 1);

    *place = (struct position){.writer = job->first + (uint32_t)writer,
                               .offset = (above >> bits) * VALUES_ALIGN,
                               .index = (uint32_t)(number & ((UINT64_C(1) << job->bits) - 1))};
    return writer < job->writers && above >> bits <= UINT64_MAX / VALUES_ALIGN ? 0 : -1;
}

uint64_t position_offset_end(const struct manifest_job *job)
{
    unsigned bits = 64 - job->bits - position_writer_bits(job->writers), most = bits_of(INT64_MAX / VALUES_ALIGN);

    return (UINT64_C(1) << (bits < most ? bits : most)) * VALUES_ALIGN;
}

int64_t values_stored_size(enum option_keys keys, int64_t size)
{
    return keys == KEYS_BYTES || size < 0 ? -1 : size + VALUES_TAG_SIZE;
}

void values_describe(struct manifest_job *job, int64_t stored_size, size_t target)
{
    uint32_t records = block_records(stored_size, target);
    uint64_t bytes = stored_size < 0 ? target : records * (uint64_t)stored_size;

    job->bits = bits_of(records - 1);
    job->read = (BLOCK_HEADER_SIZE + bytes + VALUES_ALIGN - 1) / VALUES_ALIGN * VALUES_ALIGN;
}

struct block_id values_block_id(uint32_t writer, uint32_t epoch, uint64_t offset)
{
    return (struct block_id){writer, epoch, (uint32_t)offset, (uint32_t)(offset >> 32), 1};
}

static uint32_t values_buckets(uint32_t partitions)
{
    return partitions < BUCKET_COUNT ? partitions : BUCKET_COUNT;
}

char *values_path(char path[PATH_ROOM], const char *folder, uint32_t partitions, uint32_t writer)
{
    return io_path_in(path, folder, LOG_NAME_VALUES, writer % values_buckets(partitions), writer);
}

struct listing {
    uint32_t bucket, buckets;
    struct buffer *out;
    size_t count;
};

/* Note the log that has this name, if it is one of this folder. */
static int listing_take(void *arg, const char *name, struct error *e)
{
    struct listing *l = arg;
    char again[32];
    uint32_t writer;

    if (sscanf(name, "v%8" SCNx32 ".values", &writer) != 1 || writer % l->buckets != l->bucket)
        return DELTAFS_OK;
    snprintf(again, sizeof again, "v%08" PRIx32 ".values", writer);
    if (strcmp(again, name) != 0)
        return DELTAFS_OK;
    int status = buffer_reserve(l->out, (l->count + 1) * sizeof writer, "a list of logs", e);
    if (status == DELTAFS_OK)
        memcpy(l->out->bytes + l->count++ * sizeof writer, &writer, sizeof writer);
    return status;
}

int values_list(struct io *io, const char *folder, uint32_t partitions, struct buffer *out, size_t *count,
                struct error *e)
{
    char path[PATH_ROOM];
    struct listing l = {.buckets = values_buckets(partitions), .out = out};
    int status = DELTAFS_OK;

    for (; l.bucket < l.buckets && status == DELTAFS_OK; l.bucket++) {
        status = io_list(io, io_path_in(path, folder, BUCKET_NAME, l.bucket), listing_take, &l, e);
        if (status == DELTAFS_ERR_NOT_FOUND)
            status = DELTAFS_OK;
    }
    if (l.count > 0)
        qsort(out->bytes, l.count, sizeof(uint32_t), compare_u32);
    *count = l.count;
    return status;
}
