/* An index log from its data log, where keys are bytes: blocks are read one after the other, as they were written; each
 * run's keys are the hashes of what stands before its values. An epoch gets one segment, unless its fence is too long,
 * or its keys take too much memory. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "base/hash.h"
#include "core/part_writer.h"
#include "core/repair.h"
#include "store/store_format.h"

#define INDEX_BUFFER  (256u << 10)
#define FENCE_MAX     (1u << 20)
#define TAIL_MAX      (4u << 20)
#define REBUILD_SHARE 3 /* of memory: the part of which is taken before a segment ends */

struct rebuild {
    const struct manifest *manifest;
    uint32_t partition, seed;
    uint64_t epochs; /* to be had: those that are committed, or one more */
    struct memory memory;
    struct io_file data;
    uint64_t size, at; /* of the data log; of the next block */
    struct buffer bytes;
    struct block block;
    struct block_id id; /* of the block */
    struct index_writer index;
    struct index_scratch scratch;
    struct keys_store keys;
    struct run *runs; /* of the segment */
    uint32_t run_count, run_capacity;
    uint32_t run_number, segment; /* of the next ones, in the epoch */
    uint64_t records, bytes_raw;  /* of the segment */
    uint64_t epoch_records;       /* of those before it */
    uint64_t *all_records;        /* of each epoch */
    uint32_t epoch;
};

static void rebuild_drop_runs(struct rebuild *r)
{
    for (uint32_t i = 0; i < r->run_count; i++)
        run_fini(&r->runs[i]);
    r->run_count = 0;
    r->records = r->bytes_raw = 0;
    keys_clear(&r->keys);
}

/* Write the segment whose blocks have all been read. */
static int rebuild_end_segment(struct rebuild *r, int is_last, struct error *e)
{
    struct footer f = {.epoch = r->epoch,
                       .segment = r->segment,
                       .is_last = is_last,
                       .key_shift = part_key_shift(r->records),
                       .bytes_raw = r->bytes_raw,
                       .data_end = r->at};
    int status = index_write_segment(&r->index, r->runs, r->run_count, &f, e);

    r->segment = f.segment + 1;
    r->epoch_records += r->records;
    rebuild_drop_runs(r);
    return status;
}

/* The same of the epoch's last segment; the next epoch begins. */
static int rebuild_end_epoch(struct rebuild *r, struct error *e)
{
    int status = rebuild_end_segment(r, 1, e);

    r->all_records[r->epoch++] += r->epoch_records;
    r->epoch_records = 0;
    r->run_number = r->segment = 0;
    return status;
}

/* Read the block at r->at. *is_end: there is none of the epochs to be had. */
static int rebuild_read(struct rebuild *r, size_t *length, int *is_end, struct error *e)
{
    uint8_t h[BLOCK_HEADER_SIZE];

    *is_end = r->size - r->at < sizeof h;
    if (*is_end)
        return DELTAFS_OK;
    int status = io_file_read(&r->data, r->at, h, sizeof h, e);
    if (status != DELTAFS_OK)
        return status;
    uint32_t payload = get_u32(h + 8);
    r->id = (struct block_id){get_u32(h + 16), get_u32(h + 20), get_u32(h + 24), get_u32(h + 28)};
    *is_end = h[4] != FORMAT_BLOCK || payload > BLOCK_PAYLOAD_MAX || r->id.partition != r->partition ||
              r->id.epoch >= r->epochs || r->id.epoch < r->epoch;
    if (*is_end)
        return DELTAFS_OK;
    if (payload > r->size - r->at - sizeof h)
        return error_damaged(e, r->data.path, r->at, "the file ends inside a block");
    *length = sizeof h + payload;
    status = buffer_reserve(&r->bytes, *length, "a block", e);
    if (status == DELTAFS_OK)
        status = io_file_read(&r->data, r->at, r->bytes.bytes, *length, e);
    return status == DELTAFS_OK ? block_decode(&r->block, r->bytes.bytes, *length, &r->id, r->seed, -1, get_u16(h + 6),
                                               r->data.path, r->at, e)
                                : status;
}

/* The run of the block that was read: the last one, or a new one. */
static int rebuild_run(struct rebuild *r, struct run **out, struct error *e)
{
    struct run *last = r->run_count > 0 ? &r->runs[r->run_count - 1] : NULL;
    int status = DELTAFS_OK;

    if (last && last->number == r->id.run && last->block_count == r->id.block) {
        *out = last;
        return DELTAFS_OK;
    }
    if (r->id.block != 0 || r->id.run != r->run_number)
        return error_damaged(e, r->data.path, r->at, "the block does not follow the one before it");
    /* The next run may take as much as there is so far, and so does merging. */
    if (last && r->memory.used > r->memory.limit / REBUILD_SHARE)
        status = rebuild_end_segment(r, 0, e);
    if (status == DELTAFS_OK && r->run_count == r->run_capacity) {
        size_t size = sizeof *r->runs;
        uint32_t capacity = 2 * r->run_capacity + 4;
        status = memory_grow(&r->memory, &r->runs, r->run_capacity * size, capacity * size, "runs", e);
        r->run_capacity = status == DELTAFS_OK ? capacity : r->run_capacity;
    }
    if (status != DELTAFS_OK)
        return status;
    r->run_number++;
    *out = &r->runs[r->run_count++];
    return run_init(*out, r->id.run, 0, r->at, &r->keys, e);
}

/* Add the block's keys to its run, in which `*previous` came last. */
static int rebuild_add(struct rebuild *r, size_t length, uint64_t *previous, struct error *e)
{
    struct run *run = NULL;
    int status = rebuild_run(r, &run, e);

    if (status == DELTAFS_OK)
        status = run_note_block(run, &(struct run_block){(uint32_t)length, r->block.count}, e);
    if (status == DELTAFS_OK && run->count == 0)
        *previous = 0;
    for (uint32_t i = 0; i < r->block.count && status == DELTAFS_OK; i++) {
        size_t size;
        const uint8_t *stored = block_value(&r->block, i, &size);
        uint64_t key = size >= 2 && stored[0] <= size - 1 ? hash_bytes(stored + 1, stored[0]) : 0;
        if (size < 2 || stored[0] == 0 || stored[0] > size - 1 || key < *previous)
            return error_damaged(e, r->data.path, r->at, "a record has no key, or one below that before it");
        status = keys_put(&r->keys, key - *previous, e);
        *previous = key;
        run->count++;
        run->keys.left++;
        r->records++;
        r->bytes_raw += size - 1;
    }
    return status;
}

static int rebuild_blocks(struct rebuild *r, struct error *e)
{
    uint64_t previous = 0;
    size_t length = 0;
    int is_end, status = rebuild_read(r, &length, &is_end, e);

    while (status == DELTAFS_OK && !is_end) {
        while (r->epoch < r->id.epoch && status == DELTAFS_OK)
            status = rebuild_end_epoch(r, e);
        if (status == DELTAFS_OK)
            status = rebuild_add(r, length, &previous, e);
        r->at += length;
        if (status == DELTAFS_OK)
            status = rebuild_read(r, &length, &is_end, e);
    }
    uint64_t epochs = r->epochs;
    if (status == DELTAFS_ERR_DAMAGED && r->id.epoch >= r->manifest->epoch_count) {
        /* That epoch is not whole. */
        epochs = r->manifest->epoch_count;
        status = DELTAFS_OK;
    }
    while (r->epoch < epochs && status == DELTAFS_OK)
        status = rebuild_end_epoch(r, e);
    return status;
}

/* Read the log `data` and write `index`, durably. */
static int rebuild_write(struct rebuild *r, struct io *io, const char *data, const char *index, struct error *e)
{
    struct error second;
    int status = io_file_open(io, data, O_RDONLY, &r->data, e);

    if (status == DELTAFS_OK)
        status = log_check_header(&r->data, LOG_KIND_DATA, r->partition, r->manifest->uuid, e);
    if (status == DELTAFS_OK)
        status = io_file_size(&r->data, &r->size, e);
    if (status == DELTAFS_OK)
        status = index_writer_create(&r->index, io, index, r->partition, r->manifest->uuid, 0, INDEX_BUFFER, TAIL_MAX,
                                     &r->scratch, &r->memory, e);
    if (status == DELTAFS_OK)
        status = rebuild_blocks(r, e);
    if (status == DELTAFS_OK)
        status = log_flush(&r->index.log, e);
    if (status == DELTAFS_OK)
        status = io_file_sync(&r->index.log.file, e);
    int closed = index_writer_close(&r->index, status == DELTAFS_OK ? e : &second);
    io_file_close(&r->data, &second); /* opened for reading: nothing can be lost */
    rebuild_drop_runs(r);
    memory_give(&r->memory, r->runs, r->run_capacity * sizeof *r->runs);
    block_fini(&r->block);
    buffer_fini(&r->bytes);
    buffer_fini(&r->scratch.leaf);
    buffer_fini(&r->scratch.fence);
    return status != DELTAFS_OK ? status : closed;
}

#define INDEX_NEW     LOG_NAME_INDEX ".new"
#define INDEX_DAMAGED LOG_NAME_INDEX ".damaged"

int rebuild_adopt(struct io *io, const char *folder, uint32_t partition, struct error *e)
{
    uint32_t bucket = partition % BUCKET_COUNT;
    char *made = io_path(folder, INDEX_NEW, bucket, partition),
         *index = io_path(folder, LOG_NAME_INDEX, bucket, partition);
    char *kept = io_path(folder, INDEX_DAMAGED, bucket, partition), *path = io_path(folder, BUCKET_NAME, bucket);
    int status = made && index && kept && path ? DELTAFS_OK : error_no_memory(e, strlen(folder), "a path");

    if (status == DELTAFS_OK)
        status = io_rename(io, index, kept, e);
    if (status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND)
        status = io_rename(io, made, index, e);
    if (status == DELTAFS_OK)
        status = io_sync_folder(io, path, e);
    free(made);
    free(index);
    free(kept);
    free(path);
    return status;
}

void rebuild_discard(struct io *io, const char *folder, uint32_t partition)
{
    char *made = io_path(folder, INDEX_NEW, partition % BUCKET_COUNT, partition);

    if (made)
        io->ops->unlink(io->ctx, made);
    free(made);
}

int rebuild_index(struct io *io, const char *folder, const struct manifest *m, uint64_t epochs, uint32_t partition,
                  uint64_t memory, uint64_t *records, struct error *e)
{
    struct rebuild r = {.manifest = m,
                        .epochs = epochs,
                        .memory.limit = memory,
                        .partition = partition,
                        .seed = log_seed(m->uuid),
                        .at = LOG_HEADER_SIZE,
                        .data.fd = -1,
                        .index.log.file.fd = -1,
                        .scratch.fence_max = FENCE_MAX,
                        .all_records = records};
    uint32_t bucket = partition % BUCKET_COUNT;
    char *data = io_path(folder, LOG_NAME_DATA, bucket, partition),
         *index = io_path(folder, INDEX_NEW, bucket, partition);
    r.keys.memory = &r.memory;
    int status = data && index ? rebuild_write(&r, io, data, index, e) : error_no_memory(e, strlen(folder), "a path");

    free(data);
    free(index);
    return status;
}
