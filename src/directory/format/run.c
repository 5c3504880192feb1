#include "directory/format/run.h"

int run_init(struct run *run, uint32_t number, uint64_t count, uint64_t offset, struct keys_store *keys,
             struct error *e)
{
    *run = (struct run){.number = number, .count = count, .offset = offset, .memory = keys->memory};
    return keys_begin(keys, count, &run->keys, e);
}

void run_fini(struct run *run)
{
    memory_give(run->memory, run->blocks, run->block_capacity * sizeof *run->blocks);
    *run = (struct run){0};
}

int run_note_block(struct run *run, const struct run_block *block, struct error *e)
{
    size_t old = run->block_capacity * sizeof *run->blocks;

    if (run->block_count == run->block_capacity) {
        size_t capacity = run->block_capacity ? 2 * run->block_capacity : RUN_BLOCKS_FIRST;
        int status = memory_grow(run->memory, &run->blocks, old, capacity * sizeof *run->blocks, "a run's blocks", e);
        if (status != DELTAFS_OK)
            return status;
        run->block_capacity = capacity;
    }
    run->blocks[run->block_count++] = *block;
    return DELTAFS_OK;
}

int run_add_block(struct run *run, struct block_writer *w, uint32_t partition, uint32_t epoch, struct log *data,
                  struct error *e)
{
    struct block_id id = {partition, epoch, run->number, run->block_count, 0};
    uint32_t count = w->count;
    size_t length;
    int status = block_writer_close(w, &id, data->seed, &length, e);

    if (status == DELTAFS_OK)
        status = run_note_block(run, &(struct run_block){(uint32_t)length, count}, e);
    return status == DELTAFS_OK ? log_append(data, w->out.bytes, length, e) : status;
}
