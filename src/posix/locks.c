#include "posix/locks.h"
#include <stddef.h>

void lock_init(pthread_mutex_t *l)
{
    *l = (pthread_mutex_t)LOCK_INITIALIZER;
}

void lock_release(pthread_mutex_t *l, int is_child)
{
    if (is_child)
        lock_init(l);
    else
        pthread_mutex_unlock(l);
}

static pthread_mutex_t *const *const brief[] = {&lock_of_mappings, &lock_of_placeholders, &lock_of_commands,
                                                &lock_of_streams, &lock_of_messages};
#define BRIEF (sizeof brief / sizeof *brief)

void locks_hold(void)
{
    for (size_t i = 0; i < BRIEF; i++)
        pthread_mutex_lock(*brief[i]);
}

void locks_release(int is_child)
{
    for (size_t i = 0; i < BRIEF; i++)
        lock_release(*brief[i], is_child);
}
