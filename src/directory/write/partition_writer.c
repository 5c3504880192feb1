#include <stdlib.h>
#include "directory/format/directory_format.h"
#include "directory/write/partition_writer.h"

static void part_drop_runs(struct partition_writer *p)
{
    for (uint32_t i = 0; i < p->run_count; i++)
        run_fini(&p->runs[i]);
    p->run_count = 0;
    p->held = 0;
    p->segment_raw = 0;
}

static void part_begin_epoch(struct partition_writer *p, uint32_t epoch)
{
    part_drop_runs(p);
    p->run_number = 0;
    p->segment = 0;
    p->start = (struct part_start){epoch, log_end(&p->data), index_mark(&p->index)};
    p->totals = (struct writer_totals){0};
}

int partition_writer_find(struct partition_writer *p, struct io *io, const struct writer_config *c, uint32_t partition,
                          struct memory *memory, struct error *e)
{
    char index[PATH_ROOM];

    io_path_in(index, c->path, LOG_NAME_INDEX, partition % BUCKET_COUNT, partition);
    return index_resume(io, index, partition, c->uuid, c->epochs, c->was_closed, c->may_drop, memory, &p->start.index,
                        &p->start.data, e);
}

/* Open the partition's logs behind the last committed epoch. Where there is none, create them, whatever an earlier job
 * has left of them. */
static int part_open_logs(struct partition_writer *p, struct io *io, const struct writer_config *c, struct error *e)
{
    struct part_shared *s = p->shared;
    char data[PATH_ROOM], index[PATH_ROOM];
    int is_new = !c->is_reopened, has_epochs = c->epochs > 0;

    io_path_in(data, c->path, LOG_NAME_DATA, p->partition % BUCKET_COUNT, p->partition);
    io_path_in(index, c->path, LOG_NAME_INDEX, p->partition % BUCKET_COUNT, p->partition);
    int status = has_epochs ? log_open(&p->data, io, data, LOG_KIND_DATA, p->partition, c->uuid, p->start.data,
                                       s->data_buffer, s->flusher, s->memory, e)
                            : log_create(&p->data, io, data, LOG_KIND_DATA, p->partition, c->uuid, is_new,
                                         s->data_buffer, s->flusher, s->memory, e);

    if (status != DELTAFS_OK)
        return status;
    return index_writer_open(&p->index, io, index, p->partition, c->uuid, has_epochs ? &p->start.index : NULL, is_new,
                             s->index_buffer, s->tail_fences_max, &s->scratch, s->memory, e);
}

int partition_writer_open(struct partition_writer *p, struct io *io, const struct writer_config *c, uint32_t partition,
                          struct part_shared *shared, struct error *e)
{
    *p = (struct partition_writer){.partition = partition, .shared = shared, .start = p->start};
    int status = part_open_logs(p, io, c, e);
    if (status == DELTAFS_OK) {
        part_begin_epoch(p, c->epochs);
        partition_writer_keep(p);
    }
    return status;
}

int partition_writer_release(struct partition_writer *p, struct error *e)
{
    int is_synced = p->shared->config->sync != SYNC_NONE, status = io_file_release(&p->data.file, is_synced, e);

    return error_first(status, io_file_release(&p->index.log.file, is_synced, error_after(status, e)));
}

int partition_writer_cut(struct partition_writer *p, int sync, struct error *e)
{
    int status = log_truncate(&p->data, sync, e);

    return status == DELTAFS_OK ? log_truncate(&p->index.log, sync, e) : status;
}

int partition_writer_close(struct partition_writer *p, struct error *e)
{
    part_drop_runs(p);
    memory_give(p->shared->memory, p->runs, p->run_capacity * sizeof *p->runs);
    int status = log_close(&p->data, e);
    return error_first(status, log_close(&p->index.log, error_after(status, e)));
}

/* A hash that stands for a key of bytes needs no more than the bits that tell a segment's keys apart, and 16 more: what
 * is taken for another after that, the key stored with the value tells. */
unsigned part_key_shift(uint64_t records)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(records + 1) + 16;

    return bits < 64 ? 64 - bits : 0;
}

int partition_writer_segment(struct partition_writer *p, int is_last, struct error *e)
{
    struct footer f = {.epoch = p->start.epoch,
                       .segment = p->segment,
                       .is_last = is_last,
                       .key_shift = p->shared->config->keys == KEYS_BYTES ? part_key_shift(p->held) : 0,
                       .bytes_raw = p->segment_raw,
                       .data_end = log_end(&p->data)};
    int status = index_write_segment(&p->index, p->runs, p->run_count, &f, e);

    if (status != DELTAFS_OK)
        return status;
    p->totals.records += p->held;
    p->totals.bytes_raw += p->segment_raw;
    p->segment = f.segment + 1;
    part_drop_runs(p);
    return DELTAFS_OK;
}

static int part_put_keys(struct partition_writer *p, const struct sorted *records, const uint32_t *epochs, uint64_t n,
                         struct error *e)
{
    uint64_t previous = 0;
    uint32_t before = KEYS_NO_EPOCH;
    int status = DELTAFS_OK;

    if (!epochs)
        return keys_put_all(&p->shared->keys, records->keys, n, e);
    for (uint64_t i = 0; i < n && status == DELTAFS_OK; i++) {
        uint64_t add = records->keys[i] - previous;
        status = keys_put(&p->shared->keys, add, e);
        if (status == DELTAFS_OK) {
            uint32_t epoch = epochs[records->order[i]];
            status = keys_put_epoch(&p->shared->keys, epoch, keys_expected(add, before), e);
            before = epoch;
        }
        previous = records->keys[i];
    }
    return status;
}

/* Values of one size are encoded from where they are. */
static int part_write_fixed(struct partition_writer *p, struct run *run, size_t size, const struct sorted *records,
                            struct error *e)
{
    struct block_writer *block = &p->shared->block;
    uint32_t n = block->most;
    int status = DELTAFS_OK;

    if (p->shared->config->place != LAYOUT_LOCAL) /* or the values' bytes are counted in their logs */
        p->segment_raw += run->count * (8 + size);
    if (p->shared->encoder)
        return encoder_run(p->shared->encoder, records, run, p->partition, p->start.epoch, &p->data, e);
    for (uint64_t i = 0; i < run->count && status == DELTAFS_OK; i += n) {
        uint32_t here = run->count - i < n ? (uint32_t)(run->count - i) : n;
        const struct sorted from = sorted_from(records, i, size);
        block_writer_set(block, from.values, from.order, here, run->count - i - here);
        status = run_add_block(run, block, p->partition, p->start.epoch, &p->data, e);
    }
    return status;
}

/* Values of any size, and their places, lie anywhere: have the processor fetch those that come soon. Some compilers
 * take a function that does nothing but this for one without an effect, and leave it out, unless it is always inlined.
 */
#define VALUES_AHEAD 8
__attribute__((always_inline)) static inline void prefetch_any(const struct memtable *table, const uint32_t *order)
{
    const uint8_t *value = table->arena + table->places[order[VALUES_AHEAD]];

    __builtin_prefetch(&table->places[order[2 * VALUES_AHEAD]]);
    __builtin_prefetch(value);
    __builtin_prefetch(value + CACHE_LINE);
}

static int part_write_any(struct partition_writer *p, struct run *run, const struct memtable *table,
                          const uint32_t *order, struct error *e)
{
    struct block_writer *block = &p->shared->block;
    int status = DELTAFS_OK;

    for (uint64_t i = 0; i < run->count && status == DELTAFS_OK; i++) {
        size_t size;
        if (i + 2 * VALUES_AHEAD < run->count)
            prefetch_any(table, order + i);
        const uint8_t *value = memtable_value(table, order[i], &size);
        /* Of a key of bytes all but the byte that says its size is in the value. */
        p->segment_raw += p->shared->config->keys == KEYS_BYTES ? size - 1 : 8 + size;
        status = block_writer_add(block, NULL, value, size, e);
        if (status == DELTAFS_OK && (block_writer_is_full(block) || i + 1 == run->count))
            status = run_add_block(run, block, p->partition, p->start.epoch, &p->data, e);
    }
    return status;
}

uint64_t partition_writer_growth(const struct partition_writer *p)
{
    size_t runs = p->run_count < p->run_capacity ? 0 : p->run_capacity > 0 ? 2 * p->run_capacity : MEMORY_FIRST;

    return MEMORY_FIRST * sizeof(struct run_block) + runs * sizeof *p->runs;
}

int partition_writer_run(struct partition_writer *p, const struct memtable *table, const struct sorted *records,
                         uint32_t n, struct error *e)
{
    int status = memory_extend(p->shared->memory, &p->runs, p->run_count, &p->run_capacity, sizeof *p->runs, "runs", e);

    if (status != DELTAFS_OK)
        return status;
    struct run *run = &p->runs[p->run_count++];
    status = run_init(run, p->run_number++, n, log_end(&p->data), &p->shared->keys, e);
    if (status == DELTAFS_OK)
        status = part_put_keys(p, records, table->epochs, n, e);
    run->is_short = n > 0 && records->keys[n - 1] <= UINT32_MAX;
    block_writer_clear(&p->shared->block); /* of what a run that failed left there */
    if (status == DELTAFS_OK)
        status = table->value_size >= 0 ? part_write_fixed(p, run, (size_t)table->value_size, records, e)
                                        : part_write_any(p, run, table, records->order, e);
    if (status == DELTAFS_OK)
        p->held += n;
    return status;
}

int partition_writer_seal(struct partition_writer *p, struct error *e)
{
    /* So that it is written while the index is made; if not, it is below. */
    if (p->data.flusher)
        log_hand_over(&p->data);
    int status = partition_writer_segment(p, 1, e);

    if (status == DELTAFS_OK)
        status = log_flush(&p->data, e);
    if (status == DELTAFS_OK)
        status = log_flush(&p->index.log, e);
    p->totals.bytes_stored = log_end(&p->data) - p->start.data + log_end(&p->index.log) - p->start.index.log_end;
    return status;
}

int partition_writer_sync(struct partition_writer *p, struct error *e)
{
    int status = io_file_sync(&p->data.file, e);

    return status == DELTAFS_OK ? io_file_sync(&p->index.log.file, e) : status;
}

void partition_writer_next(struct partition_writer *p)
{
    part_begin_epoch(p, p->start.epoch + 1);
}

void partition_writer_keep(struct partition_writer *p)
{
    p->kept = p->start;
}

int partition_writer_give_up(struct partition_writer *p, struct error *e)
{
    int status = log_rewind(&p->data, p->kept.data, e);

    if (status == DELTAFS_OK)
        status = index_rewind(&p->index, &p->kept.index, e);
    part_begin_epoch(p, p->kept.epoch);
    return status;
}

int partition_writer_finish(struct partition_writer *p, int sync, uint64_t *tail_length, struct error *e)
{
    /* Records that no epoch end followed are discarded, with whatever runs they already made. */
    int status = partition_writer_give_up(p, e);

    if (status == DELTAFS_OK)
        status = log_flush(&p->data, e);
    if (status == DELTAFS_OK)
        status = index_write_tail(&p->index, tail_length, e);
    return status == DELTAFS_OK && sync ? partition_writer_sync(p, e) : status;
}
