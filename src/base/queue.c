#include <stdlib.h>
#include <string.h>
#include "base/queue.h"
#include "base/thread.h"

struct queue {
    queue_fn work;
    void *ctx;
    int has_thread, is_stopping;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wake;  /* of the thread: there is work, or the end */
    pthread_cond_t done;  /* it has done some */
    void **free;
    uint32_t free_count;
    uint8_t *ring; /* `slots` items; the one that is worked on keeps its slot */
    size_t size;
    uint32_t slots, head, count;
    uint64_t put; /* items so far */
};

/* The thing of an item that is done. */
static void queue_release(struct queue *q, const void *item)
{
    void *thing;

    memcpy(&thing, item, sizeof thing);
    if (thing)
        q->free[q->free_count++] = thing;
}

static void *queue_run(void *arg)
{
    struct queue *q = arg;

    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (q->count == 0 && !q->is_stopping)
            pthread_cond_wait(&q->wake, &q->lock);
        if (q->count == 0)
            break;
        const uint8_t *item = q->ring + q->head * q->size;
        pthread_mutex_unlock(&q->lock);
        q->work(q->ctx, item);
        pthread_mutex_lock(&q->lock);
        queue_release(q, item);
        q->head = (q->head + 1) % q->slots;
        q->count--;
        pthread_cond_broadcast(&q->done);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

int queue_create(uint32_t most, size_t size, int has_thread, queue_fn work, void *ctx, struct queue **out,
                 struct error *e)
{
    struct queue *q = calloc(1, sizeof *q);
    int status = DELTAFS_OK;

    if (!q)
        return error_no_memory(e, sizeof *q, "a thread");
    *q = (struct queue){.work = work, .ctx = ctx, .size = size, .slots = most + 1};
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->wake, NULL);
    pthread_cond_init(&q->done, NULL);
    q->free = calloc(most, sizeof *q->free);
    q->ring = calloc(q->slots, size);
    if (!q->free || !q->ring)
        status = error_no_memory(e, q->slots * size, "a thread");
    else if (has_thread)
        status = thread_start(&q->thread, queue_run, q, e);
    q->has_thread = has_thread && status == DELTAFS_OK;
    if (status == DELTAFS_OK)
        *out = q;
    else
        queue_destroy(q);
    return status;
}

void queue_destroy(struct queue *q)
{
    if (!q)
        return;
    if (q->has_thread) {
        pthread_mutex_lock(&q->lock);
        q->is_stopping = 1;
        pthread_cond_signal(&q->wake);
        pthread_mutex_unlock(&q->lock);
        pthread_join(q->thread, NULL);
    }
    pthread_cond_destroy(&q->done);
    pthread_cond_destroy(&q->wake);
    pthread_mutex_destroy(&q->lock);
    free(q->free);
    free(q->ring);
    free(q);
}

void queue_add(struct queue *q, void *thing)
{
    pthread_mutex_lock(&q->lock);
    q->free[q->free_count++] = thing;
    pthread_mutex_unlock(&q->lock);
}

void *queue_take(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (q->free_count == 0)
        pthread_cond_wait(&q->done, &q->lock);
    void *thing = q->free[--q->free_count];
    pthread_mutex_unlock(&q->lock);
    return thing;
}

void *queue_try(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    void *thing = q->free_count > 0 ? q->free[--q->free_count] : NULL;
    pthread_mutex_unlock(&q->lock);
    return thing;
}

int queue_has_free(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    int has = !q->has_thread || q->free_count > 0;
    pthread_mutex_unlock(&q->lock);
    return has;
}

uint64_t queue_put(struct queue *q, const void *item)
{
    pthread_mutex_lock(&q->lock);
    uint64_t number = ++q->put;
    if (q->has_thread) {
        memcpy(q->ring + (q->head + q->count++) % q->slots * q->size, item, q->size);
        pthread_cond_signal(&q->wake);
    } else {
        q->work(q->ctx, item);
        queue_release(q, item);
    }
    pthread_mutex_unlock(&q->lock);
    return number;
}

int queue_has_done(struct queue *q, uint64_t number)
{
    pthread_mutex_lock(&q->lock);
    int has = q->put - q->count >= number;
    pthread_mutex_unlock(&q->lock);
    return has;
}

void queue_wait(struct queue *q, uint64_t number)
{
    pthread_mutex_lock(&q->lock);
    uint64_t upto = number < q->put ? number : q->put;
    while (q->put - q->count < upto)
        pthread_cond_wait(&q->done, &q->lock);
    pthread_mutex_unlock(&q->lock);
}
