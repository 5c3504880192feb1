#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "base/hash.h"
#include "directory/format/directory_format.h"
#include "directory/write/value_log_write.h"
#include "io/io_format.h"

uint64_t values_writer_memory(const struct writer_config *c, size_t buffer)
{
    if (c->place != LAYOUT_LOCAL)
        return 0;
    return block_writer_memory(values_stored_size(c->keys, c->caller_size), c->block) + buffer +
           VALUES_BATCH * sizeof(uint64_t) + strlen(c->path) + 64;
}

int values_writer_open(struct values_writer *v, struct io *io, const struct writer_config *c, size_t buffer,
                       struct flusher *flusher, struct memory *memory, struct error *e)
{
    if (c->place != LAYOUT_LOCAL)
        return DELTAFS_OK;
    *v = (struct values_writer){.is_on = 1,
                                .io = io,
                                .c = c,
                                .writer = c->job.first + c->writer,
                                .stored_size = values_stored_size(c->keys, c->caller_size),
                                .buffer = buffer,
                                .flusher = flusher,
                                .memory = memory,
                                .log.file.fd = -1,
                                .start = {c->epochs, LOG_HEADER_SIZE},
                                .kept = {c->epochs, LOG_HEADER_SIZE}};
    int status = block_writer_init(&v->block, v->stored_size, NULL, c->codec, c->block, memory, e);
    return status == DELTAFS_OK ? memory_take(memory, VALUES_BATCH * sizeof *v->places, "places", &v->places, e)
                                : status;
}

int values_writer_close(struct values_writer *v, struct error *e)
{
    if (!v->is_on)
        return DELTAFS_OK;
    block_writer_fini(&v->block);
    memory_give(v->memory, v->places, VALUES_BATCH * sizeof *v->places);
    return log_close(&v->log, e);
}

/* ---- The log ---- */

/* Whatever an interrupted job has left under this name is begun again. */
static int values_make(struct values_writer *v, const char *path, struct error *e)
{
    uint32_t buckets = v->c->partitions < BUCKET_COUNT ? v->c->partitions : BUCKET_COUNT;
    int status = log_create(&v->log, v->io, path, LOG_KIND_VALUES, v->writer, v->c->uuid, 0, v->buffer, v->flusher,
                            v->memory, e);

    if (status == DELTAFS_OK)
        status = log_truncate(&v->log, 0, e);
    if (status == DELTAFS_OK && v->c->sync != SYNC_NONE) {
        char folder[PATH_ROOM];
        status = io_sync_folder(v->io, io_path_in(folder, v->c->path, BUCKET_NAME, v->writer % buckets), e);
    }
    if (status == DELTAFS_OK && v->may_direct)
        io_file_use_direct(&v->log.file);
    return status;
}

/* Have the log; one whose making failed is made again by the next epoch. */
static int values_have_log(struct values_writer *v, struct error *e)
{
    char path[PATH_ROOM];

    if (v->is_open)
        return DELTAFS_OK;
    int status = values_make(v, values_path(path, v->c->path, v->c->partitions, v->writer), e);
    if (status == DELTAFS_OK)
        v->is_open = 1;
    else
        log_close(&v->log, error_ignored());
    return status;
}

/* Where the next block goes. */
static uint64_t values_end(const struct values_writer *v)
{
    return v->is_open ? log_end(&v->log) : LOG_HEADER_SIZE;
}

/* Write the block that fills. */
static int values_end_block(struct values_writer *v, struct error *e)
{
    struct block_id id = values_block_id(v->writer, v->start.epoch, values_end(v));
    size_t length;
    int status = values_have_log(v, e);

    if (status == DELTAFS_OK)
        status = block_writer_close(&v->block, &id, v->log.seed, 0, &length, e);
    return status == DELTAFS_OK ? log_append(&v->log, v->block.out.bytes, length, e) : status;
}

static int values_is_full(const struct values_writer *v, struct error *e)
{
    if (values_end(v) < position_offset_end(&v->c->job))
        return DELTAFS_OK;
    return error_set(e, DELTAFS_ERR_SIZE,
                     "%s: the value log of writer %" PRIu32 " is full at %" PRIu64
                     " bytes: close the directory and reopen it, which begins another",
                     v->c->path, v->writer, values_end(v));
}

/* ---- Values ---- */

static int values_put_one(struct values_writer *v, uint64_t hash, const uint8_t *value, size_t size, uint64_t *place,
                          struct error *e)
{
    int status = v->block.count == 0 ? values_is_full(v, e) : DELTAFS_OK;

    if (status != DELTAFS_OK)
        return status;
    *place = position_pack(&v->c->job, &(struct position){v->writer, values_end(v), v->block.count});
    const uint8_t tag = (uint8_t)hash;
    status = block_writer_add(&v->block, v->c->keys == KEYS_BYTES ? NULL : &tag, value, size, e);
    return status == DELTAFS_OK && block_writer_is_full(&v->block) ? values_end_block(v, e) : status;
}

/* Bytes of the block that fills, at most, with values of `size` that are put next. If values have one size, it is no
 * longer than readers take it for; else it has the values, their sizes, and what is before and fills it up. */
static size_t values_block_most(const struct values_writer *v, size_t size)
{
    return v->stored_size >= 0
               ? v->c->job.read
               : v->block.target + size + (v->block.count + VALUES_BATCH) * sizeof(uint32_t) + MEMORY_PAGE;
}

int values_can_put(struct values_writer *v, size_t size)
{
    return !v->is_open || log_reserve(&v->log, values_block_most(v, size));
}

int values_put(struct values_writer *v, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
               size_t value_stride, size_t size, size_t *count, struct error *e)
{
    uint64_t hashes[VALUES_BATCH];
    int status = DELTAFS_OK, is_full = 0;
    size_t i;

    n = n < VALUES_BATCH ? n : VALUES_BATCH;
    if (v->c->keys == KEYS_U64)
        hash_keys(keys, key_stride, n, hashes);
    for (i = 0; i < n && status == DELTAFS_OK && !is_full; i++) {
        status = values_put_one(v, v->c->keys == KEYS_U64 ? hashes[i] : 0, size > 0 ? values + i * value_stride : NULL,
                                size, &v->places[i], e);
        is_full = v->block.count == 0;
    }
    *count = i;
    /* A key of bytes has its own size and itself in the value already. */
    v->bytes_raw += *count * (v->c->keys == KEYS_BYTES ? size - 1 : 8 + (uint64_t)size);
    return status;
}

/* ---- Epochs ---- */

static void values_begin_epoch(struct values_writer *v, uint32_t epoch)
{
    v->start = (struct values_start){epoch, values_end(v)};
    v->bytes_raw = 0;
    block_writer_clear(&v->block);
}

int values_seal_ahead(struct values_writer *v)
{
    struct error e;

    if (!v->is_open || !v->flusher)
        return 1;
    if (v->block.count > 0 && !log_reserve(&v->log, values_block_most(v, 0)))
        return 0;
    if (v->block.count > 0 && values_end_block(v, &e) != DELTAFS_OK)
        return 1; /* values_seal tries again, and says so */
    return log_hand_over(&v->log);
}

int values_seal(struct values_writer *v, struct writer_totals *totals, struct error *e)
{
    int status = v->block.count > 0 ? values_end_block(v, e) : DELTAFS_OK;

    if (status == DELTAFS_OK && v->is_open)
        status = log_flush(&v->log, e);
    totals->bytes_raw += v->bytes_raw;
    totals->bytes_stored += values_end(v) - v->start.end;
    values_begin_epoch(v, v->start.epoch + 1);
    return status;
}

int values_sync(struct values_writer *v, struct error *e)
{
    return v->is_open ? io_file_sync(&v->log.file, e) : DELTAFS_OK;
}

void values_keep(struct values_writer *v)
{
    v->kept = v->start;
}

int values_discard(struct values_writer *v, struct error *e)
{
    int status = v->is_open ? log_rewind(&v->log, v->kept.end, e) : DELTAFS_OK;

    values_begin_epoch(v, v->kept.epoch);
    return status;
}

int values_finish(struct values_writer *v, struct error *e)
{
    int status = values_discard(v, e); /* records that no epoch end followed */

    if (status == DELTAFS_OK && v->is_open)
        status = log_flush(&v->log, e);
    return status == DELTAFS_OK && v->is_open && v->c->sync != SYNC_NONE ? values_sync(v, e) : status;
}
