#include <pthread.h>
#include <stdlib.h>
#include "base/queue.h"
#include "io/flusher.h"

struct flush {
    uint8_t *buffer;
    struct io_file *file;
    uint64_t offset;
    size_t start, end;
};

struct flusher {
    struct queue *queue;
    pthread_mutex_t lock; /* of `failed`: while one caller drains, another may write on */
    struct error failed;
    size_t capacity;
    struct memory *memory;
};

static void flusher_work(void *ctx, const void *item)
{
    struct flusher *f = ctx;
    const struct flush *work = item;
    struct error e;

    pthread_mutex_lock(&f->lock);
    int is_dropped = f->failed.status != DELTAFS_OK;
    pthread_mutex_unlock(&f->lock);
    if (is_dropped || io_file_write(work->file, work->offset + work->start, work->buffer + work->start,
                                    work->end - work->start, &e) == DELTAFS_OK)
        return;
    pthread_mutex_lock(&f->lock);
    f->failed = e;
    pthread_mutex_unlock(&f->lock);
}

int flusher_create(size_t capacity, uint32_t spares, struct memory *memory, struct flusher **out, struct error *e)
{
    struct flusher *f = calloc(1, sizeof *f);

    if (!f)
        return error_no_memory(e, sizeof *f, "a thread");
    *f = (struct flusher){.capacity = capacity, .memory = memory};
    pthread_mutex_init(&f->lock, NULL);
    int status = queue_create(spares, sizeof(struct flush), 1, flusher_work, f, &f->queue, e);
    for (uint32_t i = 0; i < spares && status == DELTAFS_OK; i++) {
        uint8_t *buffer;
        status = memory_take(memory, capacity, "a log's buffer", &buffer, e);
        if (status == DELTAFS_OK)
            queue_add(f->queue, buffer);
    }
    if (status == DELTAFS_OK)
        *out = f;
    else
        flusher_destroy(f);
    return status;
}

void flusher_destroy(struct flusher *f)
{
    uint8_t *buffer;

    if (!f)
        return;
    if (f->queue) {
        queue_wait(f->queue, QUEUE_ALL);
        while ((buffer = queue_try(f->queue)))
            memory_give(f->memory, buffer, f->capacity);
    }
    queue_destroy(f->queue);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

uint8_t *flusher_take(struct flusher *f)
{
    return queue_try(f->queue);
}

uint8_t *flusher_write(struct flusher *f, struct io_file *file, uint64_t offset, uint8_t *buffer, size_t start,
                       size_t end, uint8_t *spare)
{
    if (!spare)
        spare = queue_take(f->queue);
    queue_put(f->queue, &(struct flush){buffer, file, offset, start, end});
    return spare;
}

int flusher_drain(struct flusher *f, struct error *e)
{
    queue_wait(f->queue, QUEUE_ALL);
    pthread_mutex_lock(&f->lock);
    int status = f->failed.status;
    if (status != DELTAFS_OK)
        *e = f->failed;
    f->failed.status = DELTAFS_OK;
    pthread_mutex_unlock(&f->lock);
    return status;
}
