#include <stdlib.h>
#include "core/encoder.h"

#define BATCH_BYTES ((size_t)256 << 10) /* of values in a batch, about */
#define BATCH_MAX   256u                /* blocks in a batch */

/* What one thread makes of one batch. */
struct batch {
    struct block_writer block;
    struct buffer out; /* the finished blocks, one after the other */
    size_t used;
    const uint32_t *order; /* of its records */
    uint64_t records;
    uint32_t first_block;
    uint32_t blocks;
    struct run_block made[BATCH_MAX];
    int status;
    struct error error;
};

struct encoder {
    struct team *team;
    uint32_t batches;
    uint32_t block_records;
    uint32_t batch_blocks;
    struct batch *batch;
    struct memory *memory;
    /* While a run is encoded: */
    const struct memtable *table;
    struct block_id id;
    uint32_t seed;
};

static uint32_t encoder_batch_blocks(const struct writer_config *c)
{
    size_t bytes = block_records(c->value_size, c->block) * (size_t)(c->value_size > 0 ? c->value_size : 1);
    size_t n = BATCH_BYTES / bytes;

    return n < 1 ? 1 : n > BATCH_MAX ? BATCH_MAX : (uint32_t)n;
}

static size_t encoder_batch_bytes(const struct writer_config *c)
{
    return encoder_batch_blocks(c) * block_writer_out_max(c->value_size, c->block);
}

uint64_t encoder_memory(const struct writer_config *c, uint32_t threads)
{
    return (threads + UINT64_C(1)) *
           (block_writer_memory(c->value_size, c->block) + encoder_batch_bytes(c) + sizeof(struct batch));
}

void encoder_destroy(struct encoder *x)
{
    if (!x)
        return;
    team_destroy(x->team);
    for (uint32_t i = 0; i < x->batches && x->batch; i++) {
        block_writer_fini(&x->batch[i].block);
        buffer_fini(&x->batch[i].out);
    }
    memory_give(x->memory, x->batch, x->batches * sizeof *x->batch);
    free(x);
}

int encoder_create(const struct writer_config *c, uint32_t threads, struct memory *memory, struct encoder **out,
                   struct error *e)
{
    struct encoder *x = calloc(1, sizeof *x);

    if (!x)
        return error_no_memory(e, sizeof *x, "threads");
    *x = (struct encoder){.batches = threads + 1,
                          .block_records = block_records(c->value_size, c->block),
                          .batch_blocks = encoder_batch_blocks(c),
                          .memory = memory};
    int status = memory_take(memory, x->batches * sizeof *x->batch, "encoding", &x->batch, e);
    if (status == DELTAFS_OK)
        memset(x->batch, 0, x->batches * sizeof *x->batch);
    for (uint32_t i = 0; i < x->batches && status == DELTAFS_OK; i++) {
        x->batch[i].out.memory = memory;
        status = block_writer_init(&x->batch[i].block, c->value_size, c->codec, c->block, memory, e);
        if (status == DELTAFS_OK)
            status = buffer_reserve(&x->batch[i].out, encoder_batch_bytes(c), "encoding", e);
    }
    if (status == DELTAFS_OK)
        status = team_create(threads, &x->team, e);
    if (status == DELTAFS_OK)
        *out = x;
    else
        encoder_destroy(x);
    return status;
}

static void encoder_encode(void *ctx, size_t number)
{
    struct encoder *x = ctx;
    struct batch *b = &x->batch[number];
    size_t length;

    b->used = b->blocks = 0;
    b->status = DELTAFS_OK;
    for (uint64_t at = 0; at < b->records && b->status == DELTAFS_OK; at += x->block_records) {
        uint32_t here = b->records - at < x->block_records ? (uint32_t)(b->records - at) : x->block_records;
        struct block_id id = x->id;
        id.block = b->first_block + b->blocks;
        memtable_prefetch(x->table, b->order + at + here, b->records - at - here, x->block_records);
        block_writer_set(&b->block, x->table->arena, b->order + at, here);
        b->status = block_writer_close(&b->block, &id, x->seed, &length, &b->error);
        if (b->status != DELTAFS_OK)
            break;
        memcpy(b->out.bytes + b->used, b->block.out.bytes, length);
        b->used += length;
        b->made[b->blocks++] = (struct run_block){(uint32_t)length, here};
    }
}

/* Append what a batch has become. */
static int encoder_append(const struct batch *b, struct run *run, struct log *data, struct error *e)
{
    int status = b->status;

    if (status != DELTAFS_OK)
        *e = b->error;
    for (uint32_t i = 0; i < b->blocks && status == DELTAFS_OK; i++)
        status = run_note_block(run, &b->made[i], e);
    return status == DELTAFS_OK ? log_append(data, b->out.bytes, b->used, e) : status;
}

int encoder_run(struct encoder *x, const struct memtable *table, const uint32_t *order, struct run *run,
                uint32_t partition, uint32_t epoch, struct log *data, struct error *e)
{
    uint64_t most = (uint64_t)x->batch_blocks * x->block_records;
    int status = DELTAFS_OK;

    x->table = table;
    x->id = (struct block_id){.partition = partition, .epoch = epoch, .run = run->number};
    x->seed = data->seed;
    for (uint64_t at = 0; at < run->count && status == DELTAFS_OK;) {
        uint64_t left = run->count - at, share = left / x->batches + 1;
        uint32_t n = 0;
        /* The last round is shared out evenly, in whole blocks. */
        share = (share + x->block_records - 1) / x->block_records * x->block_records;
        share = share < most ? share : most;
        for (; n < x->batches && left > 0; n++) {
            uint64_t here = left < share ? left : share;
            x->batch[n].order = order + at;
            x->batch[n].records = here;
            x->batch[n].first_block = (uint32_t)(at / x->block_records);
            at += here;
            left -= here;
        }
        team_run(x->team, encoder_encode, x, n);
        for (uint32_t i = 0; i < n && status == DELTAFS_OK; i++)
            status = encoder_append(&x->batch[i], run, data, e);
    }
    return status;
}
