#include <stdlib.h>
#include <time.h>
#include "base/thread.h"
#include "store/fetch.h"

#define FETCH_SLOW_NS 50000 /* a read that took longer came from storage */

struct fetcher {
    uint32_t most, started;
    pthread_t *thread;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* of the threads: there is work, or the end */
    pthread_cond_t done; /* the last of the work is done */
    int is_stopping;
    struct fetch *work; /* the next ones to be taken */
    size_t left;        /* of them */
    size_t busy;        /* taken, and not done yet */
};

static void fetch_one(struct fetch *f)
{
    struct error e;

    f->is_bad = io_file_read(f->file, f->offset, f->bytes, f->length, &e) != DELTAFS_OK;
}

/* Take reads until there are none; the lock is held on entry and return. */
static void fetcher_work(struct fetcher *f)
{
    while (f->left > 0) {
        struct fetch *mine = f->work++;
        f->left--;
        f->busy++;
        pthread_mutex_unlock(&f->lock);
        fetch_one(mine);
        pthread_mutex_lock(&f->lock);
        if (--f->busy == 0 && f->left == 0)
            pthread_cond_signal(&f->done);
    }
}

static void *fetcher_thread(void *arg)
{
    struct fetcher *f = arg;

    pthread_mutex_lock(&f->lock);
    while (!f->is_stopping) {
        fetcher_work(f);
        if (!f->is_stopping)
            pthread_cond_wait(&f->wake, &f->lock);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

int fetcher_create(uint32_t threads, struct fetcher **out, struct error *e)
{
    struct fetcher *f = calloc(1, sizeof *f);
    pthread_t *thread = calloc(threads + 1, sizeof *thread);

    if (!f || !thread) {
        free(f);
        free(thread);
        return error_no_memory(e, sizeof *f, "a reader");
    }
    *f = (struct fetcher){.most = threads, .thread = thread};
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->wake, NULL);
    pthread_cond_init(&f->done, NULL);
    *out = f;
    return DELTAFS_OK;
}

void fetcher_destroy(struct fetcher *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->is_stopping = 1;
    pthread_cond_broadcast(&f->wake);
    pthread_mutex_unlock(&f->lock);
    for (uint32_t i = 0; i < f->started; i++)
        pthread_join(f->thread[i], NULL);
    pthread_cond_destroy(&f->done);
    pthread_cond_destroy(&f->wake);
    pthread_mutex_destroy(&f->lock);
    free(f->thread);
    free(f);
}

/* By as many threads as there are reads for; if fewer can be started, by these. */
static void fetcher_run_parallel(struct fetcher *f, struct fetch *fetches, size_t n)
{
    struct error ignored;

    pthread_mutex_lock(&f->lock);
    f->work = fetches;
    f->left = n;
    while (f->started < f->most && f->started + 1 < n &&
           thread_start(&f->thread[f->started], fetcher_thread, f, &ignored) == DELTAFS_OK)
        f->started++;
    pthread_cond_broadcast(&f->wake);
    fetcher_work(f);
    while (f->busy > 0)
        pthread_cond_wait(&f->done, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static uint64_t fetch_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void fetcher_run(struct fetcher *f, struct fetch *fetches, size_t n)
{
    uint64_t before = f->most > 0 && n > 1 ? fetch_clock() : 0;

    for (size_t i = 0; i < n; i++) {
        fetch_one(&fetches[i]);
        if (f->most == 0 || i + 2 >= n)
            continue;
        uint64_t now = fetch_clock();
        if (now - before > FETCH_SLOW_NS) {
            fetcher_run_parallel(f, fetches + i + 1, n - i - 1);
            return;
        }
        before = now;
    }
}
