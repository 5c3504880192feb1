#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/team.h"
#include "base/thread.h"

/* Before a thread sleeps it waits for so long, giving way to others: where calls follow one another closely, as those
 * of a program that reads a file do, none has to be woken, which takes a call of the system and some 50 us on the way.
 */
#define LINGER_NS 30000

struct team {
    pid_t process; /* a child that is forked has none of the threads, and the lock as it happened to be */
    uint32_t most, started;
    pthread_t *thread;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* of the threads: there is work, or the end */
    pthread_cond_t done; /* the last of the work is done */
    int is_stopping;
    void (*task)(void *ctx, size_t i);
    void *ctx;
    size_t next, end; /* tasks not taken yet */
    size_t busy;      /* taken, and not done yet */
    /* For those who linger: */
    _Atomic uint32_t calls; /* with work for threads; and the end */
    _Atomic uint32_t ends;  /* times that no work was left */
};

/* Wait a moment for a counter to go on from `seen`. */
static void team_linger(_Atomic uint32_t *counter, uint32_t seen)
{
    uint64_t start = thread_clock();

    while (atomic_load_explicit(counter, memory_order_relaxed) == seen && thread_clock() - start < LINGER_NS)
        sched_yield();
}

/* Do tasks until there are none; the lock is held on entry and return. */
static void team_work(struct team *t)
{
    while (t->next < t->end) {
        size_t mine = t->next++;
        t->busy++;
        pthread_mutex_unlock(&t->lock);
        t->task(t->ctx, mine);
        pthread_mutex_lock(&t->lock);
        if (--t->busy == 0 && t->next == t->end) {
            t->ends++;
            pthread_cond_signal(&t->done);
        }
    }
}

static void *team_thread(void *arg)
{
    struct team *t = arg;

    pthread_mutex_lock(&t->lock);
    while (!t->is_stopping) {
        uint32_t seen = t->calls;
        team_work(t);
        pthread_mutex_unlock(&t->lock);
        team_linger(&t->calls, seen);
        pthread_mutex_lock(&t->lock);
        if (!t->is_stopping && t->calls == seen)
            pthread_cond_wait(&t->wake, &t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

int team_create(uint32_t threads, struct team **out, struct error *e)
{
    struct team *t = calloc(1, sizeof *t);
    pthread_t *thread = calloc(threads + 1, sizeof *thread);

    if (!t || !thread) {
        free(t);
        free(thread);
        return error_no_memory(e, sizeof *t, "threads");
    }
    *t = (struct team){.process = getpid(), .most = threads, .thread = thread};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, NULL);
    pthread_cond_init(&t->done, NULL);
    *out = t;
    return DELTAFS_OK;
}

static void team_end(struct team *t)
{
    pthread_mutex_lock(&t->lock);
    t->is_stopping = 1;
    t->calls++;
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
    for (uint32_t i = 0; i < t->started; i++)
        pthread_join(t->thread[i], NULL);
    pthread_cond_destroy(&t->done);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
}

void team_destroy(struct team *t)
{
    if (!t)
        return;
    if (t->process == getpid())
        team_end(t);
    free(t->thread);
    free(t);
}

uint32_t team_threads(const struct team *t)
{
    return t->most;
}

void team_run(struct team *t, void (*task)(void *ctx, size_t i), void *ctx, size_t n)
{
    if (t->process != getpid()) {
        for (size_t i = 0; i < n; i++)
            task(ctx, i);
        return;
    }
    pthread_mutex_lock(&t->lock);
    t->task = task;
    t->ctx = ctx;
    t->next = 0;
    t->end = n;
    while (t->started < t->most && t->started + 1 < n &&
           thread_start(&t->thread[t->started], team_thread, t, error_ignored()) == DELTAFS_OK)
        t->started++;
    if (n > 1) {
        t->calls++;
        pthread_cond_broadcast(&t->wake);
    }
    uint32_t seen = t->ends;
    team_work(t);
    if (t->busy > 0) {
        pthread_mutex_unlock(&t->lock);
        team_linger(&t->ends, seen);
        pthread_mutex_lock(&t->lock);
    }
    while (t->busy > 0)
        pthread_cond_wait(&t->done, &t->lock);
    pthread_mutex_unlock(&t->lock);
}
