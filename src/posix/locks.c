#include "posix/locks.h"
#include <errno.h>
#include <stddef.h>

/* A lock that this thread has, takes or gives: the mutex does not know its owner yet, or any more, in the instructions
 * between. */
struct held {
    pthread_mutex_t *volatile lock;
    volatile unsigned refused; /* those that went on without it */
};

#define HELD_MAX 16 /* more are held around a fork only, and then the mutex has to know */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct held held[HELD_MAX];

static struct held *find(const pthread_mutex_t *l)
{
    for (size_t i = 0; i < HELD_MAX; i++)
        if (held[i].lock == l)
            return &held[i];
    return NULL;
}

void lock_init(pthread_mutex_t *l)
{
    *l = (pthread_mutex_t)LOCK_INITIALIZER;
}

int lock_try(pthread_mutex_t *l)
{
    if (find(l))
        return EDEADLK;
    struct held *h = find(NULL);
    if (h)
        h->lock = l;
    int error = pthread_mutex_lock(l);
    if (error != 0 && h)
        h->lock = NULL;
    return error;
}

void lock_take(pthread_mutex_t *l)
{
    struct held *h = lock_try(l) != 0 ? find(l) : NULL;

    if (h)
        h->refused++;
}

void lock_give(pthread_mutex_t *l)
{
    struct held *h = find(l);

    if (h && h->refused > 0) {
        h->refused--;
        return;
    }
    pthread_mutex_unlock(l);
    if (h)
        h->lock = NULL;
}

int lock_is_held(void)
{
    for (size_t i = 0; i < HELD_MAX; i++)
        if (held[i].lock)
            return 1;
    return 0;
}

void lock_release(pthread_mutex_t *l, int is_child)
{
    struct held *h = find(l);

    if (!is_child) {
        lock_give(l);
        return;
    }
    lock_init(l);
    if (h)
        *h = (struct held){.lock = NULL};
}

static pthread_mutex_t *const *const brief[] = {&lock_of_mappings, &lock_of_placeholders, &lock_of_commands,
                                                &lock_of_streams, &lock_of_messages};
#define BRIEF (sizeof brief / sizeof *brief)

void locks_hold(void)
{
    for (size_t i = 0; i < BRIEF; i++)
        lock_take(*brief[i]);
}

void locks_release(int is_child)
{
    for (size_t i = 0; i < BRIEF; i++)
        lock_release(*brief[i], is_child);
}
