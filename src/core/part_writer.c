#include <stdlib.h>
#include "core/part_writer.h"
#include "store/store_format.h"

static void part_drop_runs(struct part_writer *p)
{
    for (uint32_t i = 0; i < p->run_count; i++)
        run_fini(&p->runs[i]);
    p->run_count = 0;
    p->held = 0;
    p->segment_raw = 0;
}

static void part_begin_epoch(struct part_writer *p)
{
    part_drop_runs(p);
    memtable_clear(&p->table);
    p->table_raw = 0;
    p->run_number = 0;
    p->segment = 0;
    p->data_start = log_end(&p->data);
    p->totals = (struct writer_totals){0};
    index_mark(&p->index);
}

int part_writer_open(struct part_writer *p, struct io *io, const struct writer_config *c, uint32_t partition,
                     const struct part_limits *limits, struct part_shared *shared, struct error *e)
{
    char *data = io_path(c->path, LOG_NAME_DATA, partition % BUCKET_COUNT, partition);
    char *index = io_path(c->path, LOG_NAME_INDEX, partition % BUCKET_COUNT, partition);
    int status = data && index ? DELTAFS_OK : error_no_memory(e, 1, "a path");

    *p = (struct part_writer){.partition = partition, .shared = shared};
    if (status == DELTAFS_OK)
        status = memtable_init(&p->table, c->value_size, limits->table_records, e);
    if (status == DELTAFS_OK)
        status = log_create(&p->data, io, data, LOG_KIND_DATA, partition, c->uuid, limits->data_buffer, e);
    if (status == DELTAFS_OK)
        status = index_writer_create(&p->index, io, index, partition, c->uuid, limits->index_buffer, e);
    if (status == DELTAFS_OK)
        part_begin_epoch(p);
    free(data);
    free(index);
    return status;
}

int part_writer_close(struct part_writer *p, struct error *e)
{
    struct error second;

    part_drop_runs(p);
    free(p->runs);
    memtable_fini(&p->table);
    int status = log_close(&p->data, e);
    int other = index_writer_close(&p->index, status == DELTAFS_OK ? e : &second);
    return status != DELTAFS_OK ? status : other;
}

/* Sort the memtable; returns the order. */
static const struct sort_entry *part_sort(struct part_writer *p)
{
    struct sort_entry *a = p->shared->sort[0];

    for (uint32_t i = 0; i < p->table.count; i++)
        a[i] = (struct sort_entry){p->table.keys[i], i};
    return sort_entries(a, p->shared->sort[1], p->table.count);
}

static int part_write_run(struct part_writer *p, struct run *run, struct error *e)
{
    const struct sort_entry *order = part_sort(p);
    struct block_writer *block = &p->shared->block;

    block->count = 0;
    block->used = 0;
    for (uint32_t i = 0; i < p->table.count; i++) {
        size_t size;
        const uint8_t *value = memtable_value(&p->table, order[i].index, &size);
        run->keys[i] = order[i].key;
        block_writer_add(block, value, size);
        if (block_writer_is_full(block) || i + 1 == p->table.count) {
            int status = run_add_block(run, block, p->partition, p->epoch, &p->data, e);
            if (status != DELTAFS_OK)
                return status;
        }
    }
    return DELTAFS_OK;
}

static int part_close_segment(struct part_writer *p, int is_last, struct error *e)
{
    struct footer f = {.epoch = p->epoch,
                       .segment = p->segment,
                       .is_last = is_last,
                       .records = p->held,
                       .bytes_raw = p->segment_raw,
                       .data_end = log_end(&p->data)};
    int status = index_write_segment(&p->index, p->runs, p->run_count, &f, e);

    if (status != DELTAFS_OK)
        return status;
    p->totals.records += p->held;
    p->totals.bytes_raw += p->segment_raw;
    p->segment++;
    part_drop_runs(p);
    return DELTAFS_OK;
}

int part_writer_flush(struct part_writer *p, struct error *e)
{
    if (p->table.count == 0)
        return DELTAFS_OK;
    if (p->run_count == p->run_capacity) {
        uint32_t capacity = p->run_capacity ? 2 * p->run_capacity : 8;
        struct run *grown = realloc(p->runs, capacity * sizeof *grown);
        if (!grown)
            return error_no_memory(e, capacity * sizeof *grown, "runs");
        p->runs = grown;
        p->run_capacity = capacity;
    }
    struct run *run = &p->runs[p->run_count];
    int status = run_init(run, p->run_number, p->table.count, log_end(&p->data), e);
    if (status != DELTAFS_OK)
        return status;
    p->run_count++;
    p->run_number++;
    status = part_write_run(p, run, e);
    if (status != DELTAFS_OK)
        return status;
    p->held += p->table.count;
    p->segment_raw += p->table_raw;
    p->table_raw = 0;
    memtable_clear(&p->table);
    return p->held >= p->shared->hold ? part_close_segment(p, 0, e) : DELTAFS_OK;
}

int part_writer_seal(struct part_writer *p, int sync, struct error *e)
{
    int status = part_writer_flush(p, e);

    if (status == DELTAFS_OK)
        status = part_close_segment(p, 1, e);
    if (status == DELTAFS_OK)
        status = log_flush(&p->data, e);
    if (status == DELTAFS_OK)
        status = log_flush(&p->index.log, e);
    if (status == DELTAFS_OK && sync)
        status = io_file_sync(&p->data.file, e);
    if (status == DELTAFS_OK && sync)
        status = io_file_sync(&p->index.log.file, e);
    p->totals.bytes_stored = log_end(&p->data) - p->data_start + log_end(&p->index.log) - p->index.mark.log_end;
    return status;
}

void part_writer_keep(struct part_writer *p)
{
    p->epoch++;
    part_begin_epoch(p);
}

int part_writer_give_up(struct part_writer *p, struct error *e)
{
    int status = log_rewind(&p->data, p->data_start, e);

    if (status == DELTAFS_OK)
        status = index_rewind(&p->index, e);
    part_begin_epoch(p);
    return status;
}

int part_writer_finish(struct part_writer *p, int sync, uint64_t *tail_length, struct error *e)
{
    /* Records that no epoch end followed are given up, with whatever runs they already made. */
    int status = part_writer_give_up(p, e);

    if (status == DELTAFS_OK)
        status = log_flush(&p->data, e);
    if (status == DELTAFS_OK)
        status = index_write_tail(&p->index, tail_length, e);
    if (status == DELTAFS_OK && sync)
        status = io_file_sync(&p->index.log.file, e);
    return status;
}
