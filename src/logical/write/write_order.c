#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "logical/write/write_order.h"

static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER;
static struct write_order *order_list;

void write_order_lock(void)
{
    pthread_mutex_lock(&order_lock);
}

void write_order_unlock(void)
{
    pthread_mutex_unlock(&order_lock);
}

int write_order_create(struct write_order **out, struct error *e)
{
    *out = calloc(1, sizeof **out);
    return *out ? DELTAFS_OK : error_no_memory(e, sizeof **out, "the order of writes");
}

void write_order_join(struct write_order **w, const uint8_t uuid[16])
{
    struct write_order *shared;

    write_order_lock();
    for (shared = order_list; shared && memcmp(shared->uuid, uuid, sizeof shared->uuid) != 0;)
        shared = shared->next;
    if (shared) {
        free(*w);
        *w = shared;
    } else {
        (*w)->next = order_list;
        (*w)->session = WRITE_ORDER_NONE;
        memcpy((*w)->uuid, uuid, sizeof(*w)->uuid);
        order_list = *w;
    }
    (*w)->handles++;
    write_order_unlock();
}

void write_order_leave(struct write_order *w)
{
    struct write_order **at = &order_list;

    write_order_lock();
    if (w && w->handles <= 1) {
        while (*at && *at != w)
            at = &(*at)->next;
        if (*at)
            *at = w->next;
        free(w);
    } else if (w) {
        w->handles--;
    }
    write_order_unlock();
}
