#include <pthread.h>
#include <stdlib.h>
#include "directory/write/encoder.h"

#define BATCH_BYTES ((size_t)256 << 10) /* of values in a batch, about */
#define BATCH_MAX   256u                /* blocks in a batch */
#define STACK_BYTES ((size_t)64 << 10)  /* that sorting and packing take of a thread's stack, about */

/* What one thread makes of one batch. */
struct batch {
    struct block_writer block; /* which has the finished blocks, one after the other */
    size_t used;
    uint32_t blocks;
    struct run_block made[BATCH_MAX];
    pthread_cond_t turn; /* it may be appended */
};

struct encoder {
    struct team *team;
    size_t value_size;
    uint32_t batches;
    uint32_t block_records;
    uint32_t batch_blocks;
    struct batch *batch;
    struct memory *memory;
    pthread_mutex_t lock;
    /* While a run is encoded: */
    const struct sorted *records;
    struct run *run;
    struct log *data;
    struct block_id id;
    uint64_t share; /* records of a batch, but for the last one */
    size_t turn;    /* the batch that is to be appended next */
    struct error failed;
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
           (block_writer_memory(c->value_size, c->block) + encoder_batch_bytes(c) + sizeof(struct batch) + STACK_BYTES);
}

struct team *encoder_team(const struct encoder *x)
{
    return x->team;
}

void encoder_destroy(struct encoder *x)
{
    if (!x)
        return;
    team_destroy(x->team);
    pthread_mutex_destroy(&x->lock);
    for (uint32_t i = 0; i < x->batches && x->batch; i++) {
        pthread_cond_destroy(&x->batch[i].turn);
        block_writer_fini(&x->batch[i].block);
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
    pthread_mutex_init(&x->lock, NULL);
    int status = memory_take(memory, x->batches * sizeof *x->batch, "encoding", &x->batch, e);
    if (status == DELTAFS_OK)
        memset(x->batch, 0, x->batches * sizeof *x->batch);
    for (uint32_t i = 0; i < x->batches && x->batch; i++)
        pthread_cond_init(&x->batch[i].turn, NULL);
    for (uint32_t i = 0; i < x->batches && status == DELTAFS_OK; i++) {
        status = block_writer_init(&x->batch[i].block, c->value_size, &c->strips, c->codec, c->block, memory, e);
        if (status == DELTAFS_OK)
            status = buffer_reserve(&x->batch[i].block.out, encoder_batch_bytes(c), "encoding", e);
    }
    if (status == DELTAFS_OK)
        status = team_create(threads, &x->team, e);
    if (status == DELTAFS_OK)
        *out = x;
    else
        encoder_destroy(x);
    return status;
}

static int encoder_encode(const struct encoder *x, size_t number, struct batch *b, struct error *e)
{
    uint64_t first = number * x->share, left = x->run->count - first, count = left < x->share ? left : x->share;
    int status = DELTAFS_OK;
    size_t length;

    b->used = b->blocks = 0;
    for (uint64_t at = 0; at < count; at += x->block_records) {
        uint32_t here = count - at < x->block_records ? (uint32_t)(count - at) : x->block_records;
        const struct sorted from = sorted_from(x->records, first + at, x->value_size);
        struct block_id id = x->id;
        id.block = (uint32_t)((first + at) / x->block_records);
        block_writer_set(&b->block, from.values, from.order, here, count - at - here);
        status = block_writer_close(&b->block, &id, x->data->seed, b->used, &length, e);
        if (status != DELTAFS_OK)
            return status;
        b->used += length;
        b->made[b->blocks++] = (struct run_block){(uint32_t)length, here};
    }
    return DELTAFS_OK;
}

/* Append what a batch has become. */
static int encoder_append(const struct encoder *x, const struct batch *b, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < b->blocks && status == DELTAFS_OK; i++)
        status = run_note_block(x->run, &b->made[i], e);
    return status == DELTAFS_OK ? log_append(x->data, b->block.out.bytes, b->used, e) : status;
}

/* Nothing is appended behind what is missing. */
static int encoder_has_failed(struct encoder *x)
{
    pthread_mutex_lock(&x->lock);
    int has_failed = x->failed.status != DELTAFS_OK;
    pthread_mutex_unlock(&x->lock);
    return has_failed;
}

/* Encode a batch, and append it when all before it are. Tasks are taken in order. So two tasks never use a struct batch
 * at once, and the task whose turn it is has been taken. */
static void encoder_work(void *ctx, size_t number)
{
    struct encoder *x = ctx;
    struct batch *b = &x->batch[number % x->batches];
    struct error e;
    int status = encoder_has_failed(x) ? DELTAFS_OK : encoder_encode(x, number, b, &e);

    pthread_mutex_lock(&x->lock);
    while (x->turn != number)
        pthread_cond_wait(&b->turn, &x->lock);
    pthread_mutex_unlock(&x->lock);
    if (status == DELTAFS_OK && !encoder_has_failed(x))
        status = encoder_append(x, b, &e);
    pthread_mutex_lock(&x->lock);
    if (status != DELTAFS_OK && x->failed.status == DELTAFS_OK)
        x->failed = e;
    x->turn++;
    pthread_cond_signal(&x->batch[x->turn % x->batches].turn);
    pthread_mutex_unlock(&x->lock);
}

int encoder_run(struct encoder *x, const struct sorted *records, struct run *run, uint32_t partition, uint32_t epoch,
                struct log *data, struct error *e)
{
    uint64_t most = (uint64_t)x->batch_blocks * x->block_records, rounds = (run->count / x->batches + most) / most;

    x->id = (struct block_id){.partition = partition, .epoch = epoch, .run = run->number};
    x->records = records;
    x->run = run;
    x->data = data;
    x->turn = 0;
    x->failed.status = DELTAFS_OK;
    /* Shared out evenly, in whole blocks. */
    x->share = run->count / (rounds * x->batches) + 1;
    x->share = (x->share + x->block_records - 1) / x->block_records * x->block_records;
    team_run(x->team, encoder_work, x, (size_t)((run->count + x->share - 1) / x->share));
    if (x->failed.status != DELTAFS_OK)
        *e = x->failed;
    return x->failed.status;
}
