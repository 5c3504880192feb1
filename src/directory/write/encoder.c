#include <stdlib.h>
#include "directory/write/encoder.h"

#define BATCH_BYTES ((size_t)256 << 10) /* of values in a batch, about */
#define BATCH_MAX   256u                /* blocks in a batch */

/* What one thread makes of one batch. */
struct batch {
    struct block_writer block;
    struct buffer out; /* the finished blocks, one after the other */
    size_t used;
    struct sorted records; /* the first `count` of them */
    uint64_t count;
    uint32_t first_block;
    uint32_t blocks;
    struct run_block made[BATCH_MAX];
    int status;
    struct error error;
};

struct encoder {
    struct team *team;
    size_t value_size;
    uint32_t batches;
    uint32_t block_records;
    uint32_t batch_blocks;
    struct batch *batch;
    struct memory *memory;
    /* While a run is encoded: */
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
    *x = (struct encoder){.value_size = (size_t)c->value_size,
                          .batches = threads + 1,
                          .block_records = block_records(c->value_size, c->block),
                          .batch_blocks = encoder_batch_blocks(c),
                          .memory = memory};
    int status = memory_take(memory, x->batches * sizeof *x->batch, "encoding", &x->batch, e);
    if (status == DELTAFS_OK)
        memset(x->batch, 0, x->batches * sizeof *x->batch);
    for (uint32_t i = 0; i < x->batches && status == DELTAFS_OK; i++) {
        x->batch[i].out.memory = memory;
        status = block_writer_init(&x->batch[i].block, c->value_size, &c->strips, c->codec, c->block, memory, e);
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
    for (uint64_t at = 0; at < b->count && b->status == DELTAFS_OK; at += x->block_records) {
        uint32_t here = b->count - at < x->block_records ? (uint32_t)(b->count - at) : x->block_records;
        const struct sorted from = sorted_from(&b->records, at, x->value_size);
        struct block_id id = x->id;
        id.block = b->first_block + b->blocks;
        block_writer_set(&b->block, from.values, from.order, here, b->count - at - here);
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

int encoder_run(struct encoder *x, const struct sorted *records, struct run *run, uint32_t partition, uint32_t epoch,
                struct log *data, struct error *e)
{
    uint64_t most = (uint64_t)x->batch_blocks * x->block_records;
    int status = DELTAFS_OK;

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
            x->batch[n].records = sorted_from(records, at, x->value_size);
            x->batch[n].count = here;
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
