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
    int status = memory_extend(run->memory, &run->blocks, run->block_count, &run->block_capacity, sizeof *block,
                               "a run's blocks", e);

    if (status == DELTAFS_OK)
        run->blocks[run->block_count++] = *block;
    return status;
}

int run_add_block(struct run *run, struct block_writer *w, uint32_t partition, uint32_t epoch, struct log *data,
                  struct error *e)
{
    struct block_id id = {partition, epoch, run->number, run->block_count, 0};
    uint32_t count = w->count;
    size_t length;
    int status = block_writer_close(w, &id, data->seed, 0, &length, e);

    if (status == DELTAFS_OK)
        status = run_note_block(run, &(struct run_block){(uint32_t)length, count}, e);
    return status == DELTAFS_OK ? log_append(data, w->out.bytes, length, e) : status;
}
