#include <stdlib.h>
#include "base/thread.h"
#include "directory/write/pipeline.h"

struct pipeline {
    pipeline_fn work;
    void *ctx;
    struct memtable *free[PIPELINE_TABLES];
    uint32_t free_count;
    int has_thread;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below, and of `free` */
    pthread_cond_t wake;  /* of the worker: there is work, or the end */
    pthread_cond_t done;  /* it has done some */
    int is_stopping, is_busy;
    struct memtable *queue[PIPELINE_TABLES + 1]; /* a ring; NULL: the epoch's end */
    uint32_t head, count;
    int is_ending; /* an epoch's end is in the queue, or being worked on */
};

static void *pipeline_run(void *arg)
{
    struct pipeline *p = arg;

    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->count == 0 && !p->is_stopping)
            pthread_cond_wait(&p->wake, &p->lock);
        if (p->count == 0)
            break;
        struct memtable *table = p->queue[p->head];
        p->head = (p->head + 1) % (PIPELINE_TABLES + 1);
        p->count--;
        p->is_busy = 1;
        pthread_mutex_unlock(&p->lock);
        p->work(p->ctx, table);
        pthread_mutex_lock(&p->lock);
        p->is_busy = 0;
        if (table)
            p->free[p->free_count++] = table;
        else
            p->is_ending = 0;
        pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

int pipeline_create(struct memtable *tables, uint32_t count, int has_thread, pipeline_fn work, void *ctx,
                    struct pipeline **out, struct error *e)
{
    struct pipeline *p = calloc(1, sizeof *p);

    if (!p)
        return error_no_memory(e, sizeof *p, "a thread");
    *p = (struct pipeline){.work = work, .ctx = ctx, .has_thread = has_thread};
    while (p->free_count < count) {
        p->free[p->free_count] = &tables[p->free_count];
        p->free_count++;
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    int status = has_thread ? thread_start(&p->thread, pipeline_run, p, e) : DELTAFS_OK;
    if (status != DELTAFS_OK) {
        p->has_thread = 0;
        pipeline_destroy(p);
        return status;
    }
    *out = p;
    return DELTAFS_OK;
}

void pipeline_destroy(struct pipeline *p)
{
    if (!p)
        return;
    if (p->has_thread) {
        pthread_mutex_lock(&p->lock);
        p->is_stopping = 1;
        pthread_cond_signal(&p->wake);
        pthread_mutex_unlock(&p->lock);
        pthread_join(p->thread, NULL);
    }
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

struct memtable *pipeline_take(struct pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->free_count == 0)
        pthread_cond_wait(&p->done, &p->lock);
    struct memtable *table = p->free[--p->free_count];
    pthread_mutex_unlock(&p->lock);
    return table;
}

int pipeline_has_free(struct pipeline *p)
{
    if (!p->has_thread)
        return 1;
    pthread_mutex_lock(&p->lock);
    int has = p->free_count > 0;
    pthread_mutex_unlock(&p->lock);
    return has;
}

static void pipeline_put(struct pipeline *p, struct memtable *table)
{
    if (!p->has_thread) {
        p->work(p->ctx, table);
        if (table)
            p->free[p->free_count++] = table;
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->queue[(p->head + p->count++) % (PIPELINE_TABLES + 1)] = table;
    p->is_ending |= !table;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

void pipeline_give(struct pipeline *p, struct memtable *table)
{
    pipeline_put(p, table);
}

void pipeline_end(struct pipeline *p)
{
    pipeline_put(p, NULL);
}

int pipeline_is_ending(struct pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    int is_ending = p->is_ending;
    pthread_mutex_unlock(&p->lock);
    return is_ending;
}

void pipeline_wait_end(struct pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->is_ending)
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void pipeline_wait(struct pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->count > 0 || p->is_busy)
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
