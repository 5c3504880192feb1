#include <stdlib.h>
#include "store/run.h"

int run_init(struct run *run, uint32_t number, uint64_t count, uint64_t offset, struct error *e)
{
    *run = (struct run){.number = number, .count = count, .offset = offset};
    run->keys = malloc(count * sizeof *run->keys + 1);
    return run->keys ? DELTAFS_OK : error_no_memory(e, count * sizeof *run->keys, "a run's keys");
}

void run_fini(struct run *run)
{
    free(run->keys);
    free(run->blocks);
    *run = (struct run){0};
}

int run_add_block(struct run *run, struct block_writer *w, uint32_t partition, uint32_t epoch, struct log *data,
                  struct error *e)
{
    if (run->block_count == run->block_capacity) {
        size_t capacity = run->block_capacity ? 2 * run->block_capacity : 64;
        struct run_block *grown = realloc(run->blocks, capacity * sizeof *grown);
        if (!grown)
            return error_no_memory(e, capacity * sizeof *grown, "a run's blocks");
        run->blocks = grown;
        run->block_capacity = capacity;
    }
    struct block_id id = {partition, epoch, run->number, run->block_count};
    uint32_t count = w->count;
    size_t length = block_writer_close(w, &id, data->seed);
    run->blocks[run->block_count++] = (struct run_block){(uint32_t)length, count};
    return log_append(data, w->out, length, e);
}
