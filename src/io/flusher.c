#include <stdlib.h>
#include "base/thread.h"
#include "io/flusher.h"

struct flush {
    struct io_file *file;
    uint64_t offset;
    uint8_t *buffer;
    size_t start, end;
};

struct flusher {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* of the thread: there is work, or the end */
    pthread_cond_t done; /* a buffer was written */
    int is_stopping;
    uint32_t spares; /* in all */
    uint32_t free_count;
    uint8_t **free;
    struct flush *queue; /* a ring of `spares` */
    uint32_t head, count;
    uint64_t queued, written; /* buffers so far */
    struct error failed;
    size_t capacity;
    struct memory *memory;
};

static void *flusher_run(void *arg)
{
    struct flusher *f = arg;
    struct error e;

    pthread_mutex_lock(&f->lock);
    for (;;) {
        while (f->count == 0 && !f->is_stopping)
            pthread_cond_wait(&f->wake, &f->lock);
        if (f->count == 0)
            break;
        struct flush work = f->queue[f->head];
        int is_dropped = f->failed.status != DELTAFS_OK, status = DELTAFS_OK;
        f->head = (f->head + 1) % f->spares;
        f->count--;
        pthread_mutex_unlock(&f->lock);
        if (!is_dropped)
            status =
                io_file_write(work.file, work.offset + work.start, work.buffer + work.start, work.end - work.start, &e);
        pthread_mutex_lock(&f->lock);
        if (status != DELTAFS_OK)
            f->failed = e;
        f->written++;
        f->free[f->free_count++] = work.buffer;
        pthread_cond_broadcast(&f->done);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

static void flusher_free(struct flusher *f)
{
    for (uint32_t i = 0; i < f->free_count; i++)
        memory_give(f->memory, f->free[i], f->capacity);
    free(f->free);
    free(f->queue);
    pthread_cond_destroy(&f->done);
    pthread_cond_destroy(&f->wake);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

int flusher_create(size_t capacity, uint32_t spares, struct memory *memory, struct flusher **out, struct error *e)
{
    struct flusher *f = calloc(1, sizeof *f);
    int status = DELTAFS_OK;

    if (!f)
        return error_no_memory(e, sizeof *f, "a thread");
    *f = (struct flusher){.spares = spares, .capacity = capacity, .memory = memory};
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->wake, NULL);
    pthread_cond_init(&f->done, NULL);
    f->free = calloc(spares, sizeof *f->free);
    f->queue = calloc(spares, sizeof *f->queue);
    if (!f->free || !f->queue)
        status = error_no_memory(e, spares * sizeof *f->queue, "a thread");
    for (; f->free_count < spares && status == DELTAFS_OK; f->free_count += status == DELTAFS_OK)
        status = memory_take(memory, capacity, "a log's buffer", &f->free[f->free_count], e);
    if (status == DELTAFS_OK)
        status = thread_start(&f->thread, flusher_run, f, e);
    if (status == DELTAFS_OK)
        *out = f;
    else
        flusher_free(f);
    return status;
}

void flusher_destroy(struct flusher *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->is_stopping = 1;
    pthread_cond_signal(&f->wake);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    flusher_free(f);
}

uint8_t *flusher_take(struct flusher *f)
{
    pthread_mutex_lock(&f->lock);
    uint8_t *spare = f->free_count > 0 ? f->free[--f->free_count] : NULL;
    pthread_mutex_unlock(&f->lock);
    return spare;
}

uint8_t *flusher_write(struct flusher *f, struct io_file *file, uint64_t offset, uint8_t *buffer, size_t start,
                       size_t end, uint8_t *spare)
{
    pthread_mutex_lock(&f->lock);
    while (!spare && f->free_count == 0)
        pthread_cond_wait(&f->done, &f->lock);
    if (!spare)
        spare = f->free[--f->free_count];
    f->queue[(f->head + f->count++) % f->spares] = (struct flush){file, offset, buffer, start, end};
    f->queued++;
    pthread_cond_signal(&f->wake);
    pthread_mutex_unlock(&f->lock);
    return spare;
}

int flusher_drain(struct flusher *f, struct error *e)
{
    pthread_mutex_lock(&f->lock);
    /* What others hand over meanwhile is not waited for. */
    for (uint64_t upto = f->queued; f->written < upto;)
        pthread_cond_wait(&f->done, &f->lock);
    int status = f->failed.status;
    if (status != DELTAFS_OK)
        *e = f->failed;
    f->failed = (struct error){0};
    pthread_mutex_unlock(&f->lock);
    return status;
}
