/* An index log from its data log, where keys are bytes: blocks are read one after the other, as they were written; each
 * run's keys are the hashes of what is stored before its values. An epoch gets one segment, unless its fence is too
 * long, its keys take too much memory, or blocks are damaged.
 *
 * Damage is skipped up to the next sound block. Which epochs it was of, and whether the log has lost its end, shows
 * only when the records of all partitions have been counted. So the caller has each log counted first, and then
 * written: an epoch that is short of records gets a segment that says that any of its records may be lost, so that no
 * query takes a lost record for one that never was (index_write_lost). */
#include <fcntl.h>
#include <stdlib.h>
#include "base/coding.h"
#include "base/hash.h"
#include "directory/format/directory_format.h"
#include "directory/write/partition_writer.h"
#include "repair/repair_parts.h"

#define INDEX_BUFFER  (256u << 10)
#define FENCE_MAX     (1u << 20)
#define TAIL_MAX      (4u << 20)
#define REBUILD_SHARE 3           /* of memory: the part of which is taken before a segment ends */
#define SEARCH_CHUNK  (64u << 10) /* bytes read at a time when looking for a block */

struct rebuild {
    struct rebuild_job *job;
    uint32_t partition, seed;
    uint64_t epochs; /* to be had: those that are committed, or one more */
    struct memory memory;
    struct io_file data;
    uint64_t size, at; /* of the data log; of the next block */
    uint64_t bad_at;   /* the first damage; the log's end if there is none */
    struct buffer bytes;
    struct block block;
    struct block_id id, last; /* of the block, and of the one before it */
    int has_last;             /* in the epoch */
    struct index_writer index;
    struct index_scratch scratch;
    struct keys_store keys;
    struct run *runs; /* of the segment */
    uint32_t run_count;
    size_t run_capacity;
    uint32_t epoch, segment;     /* of the next segment */
    uint64_t records, bytes_raw; /* of the segment */
    uint64_t last_key;           /* of the run */
};

/* ---- Segments ---- */

static void rebuild_drop_runs(struct rebuild *r)
{
    for (uint32_t i = 0; i < r->run_count; i++)
        run_fini(&r->runs[i]);
    r->run_count = 0;
    r->records = r->bytes_raw = 0;
    keys_clear(&r->keys);
}

/* Write the segment whose blocks have all been read. */
static int rebuild_end_segment(struct rebuild *r, int is_last, uint64_t data_end, struct error *e)
{
    struct footer f = {.epoch = r->epoch,
                       .segment = r->segment,
                       .is_last = is_last,
                       .key_shift = part_key_shift(r->records),
                       .bytes_raw = r->bytes_raw,
                       .data_end = data_end};
    int status = index_write_segment(&r->index, r->runs, r->run_count, &f, e);

    r->segment = f.segment + 1;
    rebuild_drop_runs(r);
    return status;
}

/* The epoch's last segments; the next epoch begins. */
static int rebuild_end_epoch(struct rebuild *r, struct error *e)
{
    uint64_t committed = r->job->manifest->epoch_count;
    int is_short = r->job->is_short && r->epoch < committed && r->job->is_short[r->epoch];
    /* What no block is found in may be what is missing: it stays. */
    uint64_t data_end = is_short && r->epoch + 1 == committed ? r->size : r->at;
    int status = r->job->is_short ? rebuild_end_segment(r, !is_short, data_end, e) : DELTAFS_OK;

    if (status == DELTAFS_OK && is_short) {
        struct index_lost lost = {0, UINT64_MAX, r->bad_at, r->size - r->bad_at};
        struct footer f = {.epoch = r->epoch, .segment = r->segment, .is_last = 1, .data_end = data_end};
        status = index_write_lost(&r->index, &lost, &f, e);
    }
    r->epoch++;
    r->segment = 0;
    r->has_last = 0;
    return status;
}

/* ---- Blocks ---- */

/* The length of a block of this partition by its header, and its identity; 0 if it is none. */
static uint64_t rebuild_parse(const struct rebuild *r, const uint8_t *h, struct block_id *id)
{
    uint32_t payload = get_u32(h + 8);

    *id = (struct block_id){get_u32(h + 16), get_u32(h + 20), get_u32(h + 24), get_u32(h + 28), 0};
    return h[4] == FORMAT_BLOCK && payload <= BLOCK_PAYLOAD_MAX && id->partition == r->partition &&
                   id->epoch >= r->epoch
               ? BLOCK_HEADER_SIZE + (uint64_t)payload
               : 0;
}

/* Read the block at `at` into r->block; *length is 0 if there is no sound one. */
static int rebuild_read(struct rebuild *r, uint64_t at, uint64_t *length, struct error *e)
{
    static const struct block_of any = {.value_size = -1};
    uint8_t h[BLOCK_HEADER_SIZE];
    uint64_t left = r->size - at, n;

    *length = 0;
    if (left < sizeof h)
        return DELTAFS_OK;
    int status = io_file_read(&r->data, at, h, sizeof h, e);
    if (status != DELTAFS_OK || (n = rebuild_parse(r, h, &r->id)) == 0 || n > left)
        return status;
    status = buffer_reserve(&r->bytes, (size_t)n, "a block", e);
    if (status == DELTAFS_OK)
        status = io_file_read(&r->data, at, r->bytes.bytes, (size_t)n, e);
    if (status != DELTAFS_OK)
        return status;
    status =
        block_decode(&r->block, r->bytes.bytes, (size_t)n, &r->id, r->seed, &any, get_u16(h + 6), r->data.path, at, e);
    *length = status == DELTAFS_OK ? n : 0;
    return status == DELTAFS_ERR_DAMAGED ? DELTAFS_OK : status;
}

/* Move r->at to the next sound block behind it; *length is 0 if there is none. */
static int rebuild_search(struct rebuild *r, uint64_t *length, struct error *e)
{
    uint8_t *chunk = malloc(SEARCH_CHUNK);
    uint64_t at = r->at + 1;
    struct block_id id;
    int status = chunk ? DELTAFS_OK : error_no_memory(e, SEARCH_CHUNK, "looking for blocks");

    *length = 0;
    while (status == DELTAFS_OK && *length == 0 && at < r->size && r->size - at >= BLOCK_HEADER_SIZE) {
        size_t n = r->size - at < SEARCH_CHUNK ? (size_t)(r->size - at) : SEARCH_CHUNK, k = 0;
        status = io_file_read(&r->data, at, chunk, n, e);
        for (; status == DELTAFS_OK && *length == 0 && k + BLOCK_HEADER_SIZE <= n; k++)
            if (rebuild_parse(r, chunk + k, &id) > 0)
                status = rebuild_read(r, at + k, length, e);
        at += *length > 0 ? k - 1 : k;
    }
    free(chunk);
    if (*length > 0)
        r->at = at;
    return status;
}

/* The run of the block that was read: the last one, or a new one. */
static int rebuild_run(struct rebuild *r, struct run **out, struct error *e)
{
    int is_next_run = r->has_last && r->id.run == r->last.run + 1 && r->id.block == 0, status = DELTAFS_OK;

    if (r->run_count > 0 && r->has_last && r->id.run == r->last.run && r->id.block == r->last.block + 1) {
        *out = &r->runs[r->run_count - 1];
        return DELTAFS_OK;
    }
    /* Behind a gap a run may go on, which it can in another segment only. The next run may take as much memory as there
     * is so far, and so does merging. */
    if (r->run_count > 0 && (!is_next_run || r->memory.used > r->memory.limit / REBUILD_SHARE))
        status = rebuild_end_segment(r, 0, r->at, e);
    if (status == DELTAFS_OK)
        status = memory_extend(&r->memory, &r->runs, r->run_count, &r->run_capacity, sizeof *r->runs, "runs", e);
    if (status != DELTAFS_OK)
        return status;
    *out = &r->runs[r->run_count++];
    r->last_key = 0;
    status = run_init(*out, r->id.run, 0, r->at, &r->keys, e);
    (*out)->first_block = r->id.block;
    return status;
}

/* Add the block's keys to its run. */
static int rebuild_add(struct rebuild *r, uint64_t length, struct error *e)
{
    struct run *run = NULL;
    int status = rebuild_run(r, &run, e);

    if (status == DELTAFS_OK)
        status = run_note_block(run, &(struct run_block){(uint32_t)length, r->block.count}, e);
    for (uint32_t i = 0; i < r->block.count && status == DELTAFS_OK; i++) {
        size_t size;
        const uint8_t *stored = block_value(&r->block, i, &size);
        if (size < 2 || stored[0] == 0 || stored[0] > size - 1)
            return error_damaged(e, r->data.path, r->at, "a record has no key");
        uint64_t key = hash_bytes(stored + 1, stored[0]);
        if (key < r->last_key)
            return error_damaged(e, r->data.path, r->at, "a record has a key below that before it");
        status = keys_put(&r->keys, key - r->last_key, e);
        r->last_key = key;
        run->count++;
        run->keys.left++;
        r->records++;
        r->bytes_raw += size - 1;
    }
    r->last = r->id;
    r->has_last = 1;
    return status;
}

static int rebuild_blocks(struct rebuild *r, struct error *e)
{
    uint64_t committed = r->job->manifest->epoch_count, length = 0;
    int status = DELTAFS_OK;

    while (status == DELTAFS_OK) {
        status = rebuild_read(r, r->at, &length, e);
        if (status == DELTAFS_OK && length == 0 && r->at < r->size) {
            r->bad_at = r->bad_at < r->at ? r->bad_at : r->at;
            status = rebuild_search(r, &length, e);
            /* An epoch that is not committed, and not whole, is none. */
            if (length == 0 || r->id.epoch >= committed)
                r->epochs = committed;
        }
        if (status != DELTAFS_OK || length == 0 || r->id.epoch >= r->epochs)
            break;
        while (r->epoch < r->id.epoch && status == DELTAFS_OK)
            status = rebuild_end_epoch(r, e);
        if (!r->job->is_short)
            r->job->records[r->epoch] += r->block.count;
        else if (status == DELTAFS_OK)
            status = rebuild_add(r, length, e);
        r->at += length;
    }
    while (r->epoch < r->epochs && status == DELTAFS_OK)
        status = rebuild_end_epoch(r, e);
    return status;
}

/* ---- All of it ---- */

#define INDEX_NEW LOG_NAME_INDEX ".new"

/* Read the log `data`, and write `index`, durably, unless this is only to count. */
static int rebuild_write(struct rebuild *r, const char *data, const char *index, struct error *e)
{
    int is_writing = r->job->is_short != NULL, status = io_file_open(r->job->io, data, O_RDONLY, &r->data, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        status = error_damaged(e, data, 0, "the file is missing");
    if (status == DELTAFS_OK)
        status = io_file_size(&r->data, &r->size, e);
    if (status == DELTAFS_OK && r->size < LOG_HEADER_SIZE)
        r->size = r->at;
    r->bad_at = r->size;
    if (status == DELTAFS_OK && is_writing)
        status = index_writer_open(&r->index, r->job->io, index, r->partition, r->job->manifest->uuid, NULL, 1,
                                   INDEX_BUFFER, TAIL_MAX, &r->scratch, &r->memory, e);
    if (status == DELTAFS_OK)
        status = rebuild_blocks(r, e);
    if (status == DELTAFS_OK && is_writing)
        status = log_flush(&r->index.log, e);
    if (status == DELTAFS_OK && is_writing)
        status = io_file_sync(&r->index.log.file, e);
    status = error_first(status, log_close(&r->index.log, error_after(status, e)));
    io_file_close(&r->data, error_ignored()); /* opened for reading: nothing can be lost */
    rebuild_drop_runs(r);
    memory_give(&r->memory, r->runs, r->run_capacity * sizeof *r->runs);
    block_fini(&r->block);
    buffer_fini(&r->bytes);
    buffer_fini(&r->scratch.leaf);
    buffer_fini(&r->scratch.fence);
    return status;
}

int rebuild_adopt(struct io *io, const char *folder, uint32_t partition, const char *kept, struct error *e)
{
    uint32_t bucket = partition % BUCKET_COUNT;
    char made[PATH_ROOM], index[PATH_ROOM], path[PATH_ROOM];
    int status = DELTAFS_OK;

    io_path_in(index, folder, LOG_NAME_INDEX, bucket, partition);
    if (kept)
        status = io_rename(io, index, kept, e);
    if (status == DELTAFS_OK)
        status = io_rename(io, io_path_in(made, folder, INDEX_NEW, bucket, partition), index, e);
    return status == DELTAFS_OK ? io_sync_folder(io, io_path_in(path, folder, BUCKET_NAME, bucket), e) : status;
}

void rebuild_discard(struct io *io, const char *folder, uint32_t partition)
{
    char made[PATH_ROOM];

    io_unlink(io, io_path_in(made, folder, INDEX_NEW, partition % BUCKET_COUNT, partition), error_ignored());
}

int rebuild_index(struct rebuild_job *job, uint32_t partition, uint64_t *bad_at, struct error *e)
{
    struct rebuild r = {.job = job,
                        .epochs = job->epochs,
                        .memory.limit = job->memory,
                        .partition = partition,
                        .seed = log_seed(job->manifest->uuid),
                        .at = LOG_HEADER_SIZE,
                        .data.fd = -1,
                        .index.log.file.fd = -1,
                        .scratch.fence_max = FENCE_MAX};
    uint32_t bucket = partition % BUCKET_COUNT;
    char data[PATH_ROOM], index[PATH_ROOM];

    r.keys.memory = &r.memory;
    if (job->is_short)
        rebuild_discard(job->io, job->folder, partition); /* of an attempt that was interrupted */
    int status = rebuild_write(&r, io_path_in(data, job->folder, LOG_NAME_DATA, bucket, partition),
                               io_path_in(index, job->folder, INDEX_NEW, bucket, partition), e);
    *bad_at = r.bad_at;
    return status;
}
