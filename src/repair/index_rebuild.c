/* An index log from its data log, where keys are bytes: blocks are read one after the other, as they were written; each
 * run's keys are the hashes of what stands before its values. An epoch gets one segment, unless its fence is too long,
 * or its keys take too much memory, or blocks are damaged.
 *
 * A damaged block is passed over: by its header, where that says that it is the one that comes next and where the next
 * begins; else all that is up to the next block that is right. Which keys it had is not known but for the hashes on
 * both sides of it, since a run is sorted. A segment of its own says that records between these are lost, so that
 * nobody is told that they are not there (index_write_lost); the run goes on in the next segment.
 *
 * What is lost at the end of the log, without a trace, shows only where all partitions' records are counted; and so
 * does whether damage between two epochs had records of both. Then the caller asks once more, with a verdict. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    struct buffer bytes;
    struct block block;
    struct block_id id;  /* of the block */
    uint32_t id_records; /* and its records, as its header says */
    struct index_writer index;
    struct index_scratch scratch;
    struct keys_store keys;
    struct run *runs; /* of the segment */
    uint32_t run_count, run_capacity;
    uint32_t segment;            /* of the next one, in the epoch */
    uint64_t records, bytes_raw; /* of the segment */
    uint64_t epoch_records;      /* of those before it */
    uint64_t last_key;           /* of the run */
    uint32_t epoch;
    /* What comes next in the epoch: a block of the last run, or the first one of this. */
    int has_run;
    uint32_t last_run, next_block, next_run;
    int is_behind_loss; /* then it may be another one */
    int may_lack_end;   /* no block was left: the log may have lost what followed, */
    int is_torn;        /* as what stands there instead says */
    int has_open;       /* records are lost from the last run, up to its next block: */
    struct rebuild_loss open;
    size_t first_loss; /* of the epoch, among the job's */
};

static void rebuild_drop_runs(struct rebuild *r)
{
    for (uint32_t i = 0; i < r->run_count; i++)
        run_fini(&r->runs[i]);
    r->run_count = 0;
    r->records = r->bytes_raw = 0;
    keys_clear(&r->keys);
}

/* ---- What is lost ---- */

static int rebuild_lose(struct rebuild *r, const struct rebuild_loss *loss, struct error *e)
{
    struct rebuild_job *job = r->job;

    if (job->verdict[loss->epoch] == REBUILD_WHOLE)
        return DELTAFS_OK;
    if (job->loss_count == job->loss_capacity) {
        size_t capacity = 2 * job->loss_capacity + 8;
        struct rebuild_loss *grown = realloc(job->loss, capacity * sizeof *grown);
        if (!grown)
            return error_no_memory(e, capacity * sizeof *grown, "what is lost");
        job->loss = grown;
        job->loss_capacity = capacity;
    }
    job->loss[job->loss_count++] = *loss;
    job->has_loss[loss->epoch] = 1;
    return DELTAFS_OK;
}

/* Of all keys of an epoch there may be lost records. */
static int rebuild_lose_any(struct rebuild *r, uint64_t epoch, uint64_t offset, uint64_t length, struct error *e)
{
    struct rebuild_loss loss = {
        .partition = r->partition, .epoch = (uint32_t)epoch, .where = {0, UINT64_MAX, offset, length}};

    r->job->passed[epoch] = REBUILD_UNCOUNTED;
    return rebuild_lose(r, &loss, e);
}

/* The run goes on, or ends, behind what is lost of it: with hashes up to `high`. */
static int rebuild_close_loss(struct rebuild *r, uint64_t high, struct error *e)
{
    if (!r->has_open)
        return DELTAFS_OK;
    r->has_open = 0;
    r->open.where.high = high;
    return rebuild_lose(r, &r->open, e);
}

/* Lost are `length` bytes at r->at, of the last run. */
static void rebuild_open_loss(struct rebuild *r, uint64_t length)
{
    if (!r->has_open)
        r->open =
            (struct rebuild_loss){.partition = r->partition, .epoch = r->epoch, .where = {r->last_key, 0, r->at, 0}};
    r->open.where.length += length;
    r->has_open = r->is_behind_loss = 1;
}

/* ---- Segments ---- */

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
    r->epoch_records += r->records;
    rebuild_drop_runs(r);
    return status;
}

/* The segments that say what is lost of the epoch, which is all there is of it. */
static int rebuild_write_losses(struct rebuild *r, uint64_t data_end, struct error *e)
{
    const struct rebuild_job *job = r->job;
    int status = DELTAFS_OK;

    for (size_t i = r->first_loss; i < job->loss_count && status == DELTAFS_OK; i++) {
        int is_last = 1;
        if (job->loss[i].epoch != r->epoch)
            continue;
        for (size_t k = i + 1; k < job->loss_count; k++)
            is_last &= job->loss[k].epoch != r->epoch;
        struct footer f = {.epoch = r->epoch, .segment = r->segment++, .is_last = is_last, .data_end = data_end};
        status = index_write_lost(&r->index, &job->loss[i].where, &f, e);
    }
    return status;
}

/* Whether records of the epoch are missing that this log may have had at its end. */
static int rebuild_is_short(const struct rebuild *r)
{
    const struct rebuild_job *job = r->job;

    if (r->epoch >= job->manifest->epoch_count)
        return 0;
    return job->verdict[r->epoch] == REBUILD_SHORT ||
           (job->verdict[r->epoch] == REBUILD_AT_END && r->may_lack_end && (r->is_torn || !r->has_run));
}

/* The epoch's last segment, or segments; the next epoch begins. */
static int rebuild_end_epoch(struct rebuild *r, struct error *e)
{
    struct rebuild_job *job = r->job;
    int is_short = rebuild_is_short(r);
    /* What no block is found in may be what is missing: it stays. */
    uint64_t data_end = is_short && r->epoch + 1 == job->manifest->epoch_count ? r->size : r->at;
    int status = rebuild_close_loss(r, UINT64_MAX, e), has_loss = 0;

    if (status == DELTAFS_OK && is_short)
        status = rebuild_lose_any(r, r->epoch, r->at, r->size - r->at, e);
    for (size_t i = r->first_loss; i < job->loss_count; i++)
        has_loss |= job->loss[i].epoch == r->epoch;
    if (status == DELTAFS_OK)
        status = rebuild_end_segment(r, !has_loss, data_end, e);
    if (status == DELTAFS_OK)
        status = rebuild_write_losses(r, data_end, e);
    job->records[r->epoch++] += r->epoch_records;
    r->epoch_records = r->last_key = 0;
    r->segment = r->last_run = r->next_block = r->next_run = 0;
    r->has_run = 0;
    while (r->first_loss < job->loss_count && job->loss[r->first_loss].epoch < r->epoch)
        r->first_loss++;
    return status;
}

static int rebuild_begin_epoch(struct rebuild *r, uint32_t epoch, struct error *e)
{
    int status = DELTAFS_OK;

    while (r->epoch < epoch && status == DELTAFS_OK)
        status = rebuild_end_epoch(r, e);
    return status;
}

/* ---- Blocks ---- */

/* What stands in the data log at some place. */
enum rebuild_what { REBUILD_BLOCK, REBUILD_DAMAGE, REBUILD_END };

/* The identity that a block's header has; returns whether it can be one, of this partition. */
static int rebuild_parse(const struct rebuild *r, const uint8_t *h, struct block_id *id, uint64_t *length)
{
    uint32_t payload = get_u32(h + 8);

    *id = (struct block_id){get_u32(h + 16), get_u32(h + 20), get_u32(h + 24), get_u32(h + 28), 0};
    *length = BLOCK_HEADER_SIZE + (uint64_t)payload;
    return h[4] == FORMAT_BLOCK && payload <= BLOCK_PAYLOAD_MAX && id->partition == r->partition;
}

/* Read what is at `at`. Of damage, `why` says what it is; r->id is what a header says that can be one, and *length its
 * bytes, or 0. */
static int rebuild_look(struct rebuild *r, uint64_t at, enum rebuild_what *what, uint64_t *length, struct error *why,
                        struct error *e)
{
    uint8_t h[BLOCK_HEADER_SIZE];

    *length = 0;
    *what = at == r->size ? REBUILD_END : REBUILD_DAMAGE;
    error_damaged(why, r->data.path, at, "the file ends inside a block");
    if (r->size - at < sizeof h)
        return DELTAFS_OK;
    int status = io_file_read(&r->data, at, h, sizeof h, e);
    if (status != DELTAFS_OK)
        return status;
    if (!rebuild_parse(r, h, &r->id, length)) {
        *length = 0;
        error_damaged(why, r->data.path, at, "there is no block of this partition");
        return DELTAFS_OK;
    }
    r->id_records = get_u16(h + 6);
    if (*length > r->size - at)
        return DELTAFS_OK;
    status = buffer_reserve(&r->bytes, (size_t)*length, "a block", e);
    if (status == DELTAFS_OK)
        status = io_file_read(&r->data, at, r->bytes.bytes, (size_t)*length, e);
    if (status != DELTAFS_OK)
        return status;
    status = block_decode(&r->block, r->bytes.bytes, (size_t)*length, &r->id, r->seed, -1, get_u16(h + 6), r->data.path,
                          at, why);
    if (status == DELTAFS_ERR_DAMAGED)
        return DELTAFS_OK;
    if (status != DELTAFS_OK) {
        *e = *why;
        return status;
    }
    *what = r->id.epoch >= r->epochs || r->id.epoch < r->epoch ? REBUILD_END : REBUILD_BLOCK;
    return DELTAFS_OK;
}

/* The next block that is right, behind r->at; *at is the log's end if there is none. */
static int rebuild_search(struct rebuild *r, uint64_t *at, struct error *e)
{
    uint8_t *chunk = malloc(SEARCH_CHUNK + BLOCK_HEADER_SIZE);
    enum rebuild_what what = REBUILD_DAMAGE;
    struct error why;
    int status = chunk ? DELTAFS_OK : error_no_memory(e, SEARCH_CHUNK, "looking for blocks");

    *at = r->at + 1;
    while (status == DELTAFS_OK && what == REBUILD_DAMAGE && *at < r->size && r->size - *at >= BLOCK_HEADER_SIZE) {
        uint64_t left = r->size - *at, length;
        size_t n = left < SEARCH_CHUNK + BLOCK_HEADER_SIZE ? (size_t)left : SEARCH_CHUNK + BLOCK_HEADER_SIZE;
        struct block_id id;
        size_t k = 0;
        status = io_file_read(&r->data, *at, chunk, n, e);
        for (; status == DELTAFS_OK && what == REBUILD_DAMAGE && k + BLOCK_HEADER_SIZE <= n; k++)
            if (rebuild_parse(r, chunk + k, &id, &length) && length <= left - k)
                status = rebuild_look(r, *at + k, &what, &length, &why, e);
        *at += what == REBUILD_DAMAGE ? k : k - 1;
    }
    free(chunk);
    if (what != REBUILD_BLOCK)
        *at = r->size;
    return status;
}

/* Whether `next` is the block behind `id`. */
static int rebuild_follows(const struct block_id *id, const struct block_id *next)
{
    if (next->epoch != id->epoch)
        return next->epoch > id->epoch && next->run == 0 && next->block == 0;
    return next->run == id->run ? next->block == id->block + 1 : next->run == id->run + 1 && next->block == 0;
}

/* Whether a damaged block's header says that it is the one that comes next, and the one behind it is where it says. */
static int rebuild_knows(struct rebuild *r, uint64_t length)
{
    const struct block_id *id = &r->id;
    uint8_t h[BLOCK_HEADER_SIZE];
    struct block_id next;
    struct error ignored;
    uint64_t end = r->at + length, ignored_length;

    if (length == 0 || length > r->size - r->at || id->epoch < r->epoch || id->epoch > r->epochs)
        return 0;
    int is_same = id->epoch == r->epoch && r->has_run && id->run == r->last_run && id->block == r->next_block;
    int is_first = id->block == 0 && id->run == (id->epoch == r->epoch ? r->next_run : 0);
    if (!is_same && !is_first)
        return 0;
    return end == r->size ||
           (r->size - end >= sizeof h && io_file_read(&r->data, end, h, sizeof h, &ignored) == DELTAFS_OK &&
            rebuild_parse(r, h, &next, &ignored_length) && rebuild_follows(id, &next));
}

static void rebuild_is_at(struct rebuild *r, const struct block_id *id)
{
    if (!r->has_run || r->last_run != id->run)
        r->last_key = 0;
    r->has_run = 1;
    r->last_run = id->run;
    r->next_block = id->block + 1;
    r->next_run = id->run + 1;
}

/* A damaged block that is known to be r->id, of `length` bytes. */
static int rebuild_pass_block(struct rebuild *r, uint64_t length, struct error *e)
{
    struct block_id id = r->id;
    int status = rebuild_begin_epoch(r, id.epoch, e);

    if (status == DELTAFS_OK && r->has_run && r->last_run != id.run)
        status = rebuild_close_loss(r, UINT64_MAX, e);
    if (status != DELTAFS_OK)
        return status;
    rebuild_is_at(r, &id);
    rebuild_open_loss(r, length);
    if (r->job->passed[r->epoch] != REBUILD_UNCOUNTED)
        r->job->passed[r->epoch] += r->id_records;
    r->at += length;
    return DELTAFS_OK;
}

/* Damage of which it is not known what it was: up to the next block that is right. *is_end: there is none. */
static int rebuild_pass(struct rebuild *r, int *is_end, struct error *e)
{
    uint64_t end, length;
    int status = rebuild_search(r, &end, e);

    *is_end = r->may_lack_end = r->is_torn = end == r->size;
    if (status != DELTAFS_OK || *is_end)
        return status;
    length = end - r->at;
    struct block_id id = r->id;
    int is_first = id.run == 0 && id.block == 0, is_here = id.epoch == r->epoch && r->has_run;
    if (is_here && ((id.run == r->last_run && id.block > r->next_block) || (id.run == r->next_run && id.block == 0))) {
        rebuild_open_loss(r, length);
        r->job->passed[r->epoch] = REBUILD_UNCOUNTED;
    } else {
        uint64_t behind = (uint64_t)id.epoch + !is_first, committed = r->job->manifest->epoch_count;
        for (uint64_t epoch = r->epoch; epoch < behind && epoch < committed && status == DELTAFS_OK; epoch++)
            status = rebuild_lose_any(r, epoch, r->at, length, e);
        r->is_behind_loss = 1;
        /* Of what is not committed nothing may be missing. */
        if (id.epoch >= committed && !is_first)
            r->epochs = committed;
        *is_end = id.epoch >= r->epochs;
    }
    if (!*is_end)
        r->at = end;
    return status;
}

/* The run of the block that was read: the last one, or a new one. */
static int rebuild_run(struct rebuild *r, struct run **out, struct error *e)
{
    struct run *last = r->run_count > 0 ? &r->runs[r->run_count - 1] : NULL;
    int is_same = r->has_run && r->id.run == r->last_run, status = DELTAFS_OK;

    if (last && is_same && r->id.block == r->next_block && !r->is_behind_loss) {
        *out = last;
        return DELTAFS_OK;
    }
    if (r->is_behind_loss ? is_same ? r->id.block < r->next_block : r->has_run && r->id.run < r->next_run
                          : r->id.block != 0 || r->id.run != r->next_run)
        return error_damaged(e, r->data.path, r->at, "the block does not follow the one before it");
    status = rebuild_close_loss(r, is_same ? r->open.where.high : UINT64_MAX, e);
    /* A run that has lost blocks goes on in another segment. The next run may take as much as there is so far, and so
     * does merging. */
    if (status == DELTAFS_OK && last && (is_same || r->memory.used > r->memory.limit / REBUILD_SHARE))
        status = rebuild_end_segment(r, 0, r->at, e);
    if (status == DELTAFS_OK && r->run_count == r->run_capacity) {
        size_t size = sizeof *r->runs;
        uint32_t capacity = 2 * r->run_capacity + 4;
        status = memory_grow(&r->memory, &r->runs, r->run_capacity * size, capacity * size, "runs", e);
        r->run_capacity = status == DELTAFS_OK ? capacity : r->run_capacity;
    }
    if (status != DELTAFS_OK)
        return status;
    *out = &r->runs[r->run_count++];
    status = run_init(*out, r->id.run, 0, r->at, &r->keys, e);
    (*out)->first_block = r->id.block;
    return status;
}

/* The key of record `i`, which is not below `least`, and its bytes, its value's with them. Returns 0, or -1. */
static int rebuild_key(struct rebuild *r, uint32_t i, uint64_t least, uint64_t *key, size_t *bytes)
{
    size_t size;
    const uint8_t *stored = block_value(&r->block, i, &size);

    if (size < 2 || stored[0] == 0 || stored[0] > size - 1)
        return -1;
    *key = hash_bytes(stored + 1, stored[0]);
    *bytes = size - 1;
    return *key < least ? -1 : 0;
}

/* Add the block's keys to its run. */
static int rebuild_add(struct rebuild *r, uint64_t length, struct error *e)
{
    struct run *run = NULL;
    uint64_t key = 0, previous;
    size_t bytes;
    int is_same = r->has_run && r->id.run == r->last_run;

    if (rebuild_key(r, 0, 0, &key, &bytes) != 0)
        return error_damaged(e, r->data.path, r->at, "a record has no key");
    r->open.where.high = key;
    int status = rebuild_run(r, &run, e);
    if (status == DELTAFS_OK)
        status = run_note_block(run, &(struct run_block){(uint32_t)length, r->block.count}, e);
    uint64_t least = is_same ? r->last_key : 0;
    previous = run && run->count > 0 ? r->last_key : 0;
    rebuild_is_at(r, &r->id);
    r->is_behind_loss = 0;
    for (uint32_t i = 0; i < r->block.count && status == DELTAFS_OK; i++) {
        if (rebuild_key(r, i, least, &key, &bytes) != 0)
            return error_damaged(e, r->data.path, r->at, "a record has no key, or one below that before it");
        status = keys_put(&r->keys, key - previous, e);
        r->last_key = previous = least = key;
        run->count++;
        run->keys.left++;
        r->records++;
        r->bytes_raw += bytes;
    }
    return status;
}

/* The next thing in the log. */
static int rebuild_step(struct rebuild *r, int *is_end, struct error *e)
{
    uint64_t committed = r->job->manifest->epoch_count, length;
    enum rebuild_what what;
    struct error why;
    int status = rebuild_look(r, r->at, &what, &length, &why, e);

    if (status != DELTAFS_OK)
        return status;
    *is_end = what == REBUILD_END;
    if (what == REBUILD_END) {
        r->is_torn = r->at < r->size && r->id.epoch < r->epoch;
        r->may_lack_end = r->is_torn || r->at == r->size;
    } else if (what == REBUILD_BLOCK) {
        status = rebuild_begin_epoch(r, r->id.epoch, e);
        if (status == DELTAFS_OK)
            status = rebuild_add(r, length, e);
        r->at += length;
    } else {
        int is_known = rebuild_knows(r, length);
        /* An epoch that is not committed, and not whole, is none. */
        *is_end = r->epoch >= committed || (is_known && r->id.epoch >= committed);
        r->may_lack_end = r->is_torn = *is_end;
        if (!*is_end)
            status = is_known ? rebuild_pass_block(r, length, e) : rebuild_pass(r, is_end, e);
        if (*is_end && r->epochs > committed)
            r->epochs = committed;
    }
    return status;
}

static int rebuild_blocks(struct rebuild *r, struct error *e)
{
    int is_end = 0, status = DELTAFS_OK;

    while (status == DELTAFS_OK && !is_end)
        status = rebuild_step(r, &is_end, e);
    while (r->epoch < r->epochs && status == DELTAFS_OK)
        status = rebuild_end_epoch(r, e);
    return status;
}

/* ---- All of it ---- */

/* Where nothing is to be written, it goes nowhere. */
static int nowhere_open(void *ctx, const char *path, int flags, mode_t mode)
{
    (void)ctx, (void)path, (void)flags, (void)mode;
    return 0;
}

static ssize_t nowhere_pwrite(void *ctx, int fd, const void *bytes, size_t n, uint64_t offset)
{
    (void)ctx, (void)fd, (void)bytes, (void)offset;
    return (ssize_t)n;
}

static int nowhere_truncate(void *ctx, int fd, uint64_t size)
{
    (void)ctx, (void)fd, (void)size;
    return 0;
}

static int nowhere_do(void *ctx, int fd)
{
    (void)ctx, (void)fd;
    return 0;
}

static const struct io_ops nowhere_ops = {.open = nowhere_open,
                                          .pwrite = nowhere_pwrite,
                                          .sync = nowhere_do,
                                          .truncate = nowhere_truncate,
                                          .close = nowhere_do};

/* Read the log `data` and write `index`, durably. */
static int rebuild_write(struct rebuild *r, const char *data, const char *index, struct error *e)
{
    const uint8_t *uuid = r->job->manifest->uuid;
    struct io nowhere = {.ops = &nowhere_ops}, *out = r->job->dry_run ? &nowhere : r->job->io;
    struct error second;
    int status = io_file_open(r->job->io, data, O_RDONLY, &r->data, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        status = error_damaged(e, data, 0, "the file is missing");
    if (status == DELTAFS_OK)
        status = io_file_size(&r->data, &r->size, e);
    if (status == DELTAFS_OK && r->size < LOG_HEADER_SIZE)
        r->size = r->at;
    if (status == DELTAFS_OK)
        status = index_writer_create(&r->index, out, index, r->partition, uuid, 1, INDEX_BUFFER, TAIL_MAX, &r->scratch,
                                     &r->memory, e);
    if (status == DELTAFS_OK)
        status = rebuild_blocks(r, e);
    if (status == DELTAFS_OK)
        status = log_flush(&r->index.log, e);
    if (status == DELTAFS_OK)
        status = io_file_sync(&r->index.log.file, e);
    int closed = log_close(&r->index.log, status == DELTAFS_OK ? e : &second);
    io_file_close(&r->data, &second); /* opened for reading: nothing can be lost */
    rebuild_drop_runs(r);
    memory_give(&r->memory, r->runs, r->run_capacity * sizeof *r->runs);
    block_fini(&r->block);
    buffer_fini(&r->bytes);
    buffer_fini(&r->scratch.leaf);
    buffer_fini(&r->scratch.fence);
    return status != DELTAFS_OK ? status : closed;
}

#define INDEX_NEW LOG_NAME_INDEX ".new"

int rebuild_adopt(struct io *io, const char *folder, uint32_t partition, const char *kept, struct error *e)
{
    uint32_t bucket = partition % BUCKET_COUNT;
    char *made = io_path(folder, INDEX_NEW, bucket, partition),
         *index = io_path(folder, LOG_NAME_INDEX, bucket, partition), *path = io_path(folder, BUCKET_NAME, bucket);
    int status = made && index && path ? DELTAFS_OK : error_no_memory(e, strlen(folder), "a path");

    if (status == DELTAFS_OK && kept)
        status = io_rename(io, index, kept, e);
    if (status == DELTAFS_OK)
        status = io_rename(io, made, index, e);
    if (status == DELTAFS_OK)
        status = io_sync_folder(io, path, e);
    free(made);
    free(index);
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

int rebuild_index(struct rebuild_job *job, uint32_t partition, struct error *e)
{
    struct rebuild r = {.job = job,
                        .epochs = job->epochs,
                        .memory.limit = job->memory,
                        .partition = partition,
                        .seed = log_seed(job->manifest->uuid),
                        .at = LOG_HEADER_SIZE,
                        .data.fd = -1,
                        .index.log.file.fd = -1,
                        .scratch.fence_max = FENCE_MAX,
                        .first_loss = job->loss_count};
    uint32_t bucket = partition % BUCKET_COUNT;
    char *data = io_path(job->folder, LOG_NAME_DATA, bucket, partition),
         *index = io_path(job->folder, INDEX_NEW, bucket, partition);
    r.keys.memory = &r.memory;
    if (!job->dry_run)
        rebuild_discard(job->io, job->folder, partition); /* of an attempt that was cut short */
    int status = data && index ? rebuild_write(&r, data, index, e) : error_no_memory(e, strlen(job->folder), "a path");

    free(data);
    free(index);
    return status;
}
