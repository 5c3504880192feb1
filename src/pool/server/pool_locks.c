#include <stdlib.h>
#include "base/memory.h"
#include "pool/server/pool_locks.h"

static int is_near(const struct pool_range *a, const struct pool_range *b)
{
    return a->id == b->id && a->from < b->to && b->from < a->to;
}

const struct pool_range *pool_locks_other(const struct pool_locks *l, const struct pool_range *r)
{
    for (size_t i = 0; i < l->count && r->lock != POOL_UNLOCKED; i++) {
        const struct pool_range *a = &l->range[i];
        int is_exclusive = a->lock == POOL_EXCLUSIVE || r->lock == POOL_EXCLUSIVE;
        if (is_exclusive && a->client != r->client && is_near(a, r))
            return a;
    }
    return NULL;
}

/* Take a range out of what the client has: of each lock, the parts before and behind it stay. */
static void cut_out(struct pool_locks *l, const struct pool_range *r)
{
    size_t n = l->count;

    for (size_t i = 0; i < n; i++) {
        struct pool_range *a = &l->range[i], behind = *a;
        if (a->client != r->client || !is_near(a, r))
            continue;
        a->to = r->from > a->from ? r->from : a->from;
        behind.from = r->to;
        if (behind.from < behind.to)
            l->range[l->count++] = behind;
    }
    size_t left = 0;
    for (size_t i = 0; i < l->count; i++)
        if (l->range[i].from < l->range[i].to)
            l->range[left++] = l->range[i];
    l->count = left;
}

/* Whether a lock becomes two if the range is unlocked. */
static int is_split(const struct pool_locks *l, const struct pool_range *r)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct pool_range *a = &l->range[i];
        if (a->client == r->client && a->id == r->id && a->from < r->from && r->to < a->to)
            return 1;
    }
    return 0;
}

int pool_locks_set(struct pool_locks *l, const struct pool_range *r, struct error *e)
{
    /* Only one lock of a client begins before the range and ends behind it: its locks are disjoint. */
    if (l->count + 2 > POOL_LOCKS_MOST && (r->lock != POOL_UNLOCKED || is_split(l, r)))
        return error_set(e, DELTAFS_ERR_NO_SPACE, "there are more than %d locks of parts of files", POOL_LOCKS_MOST);
    while (l->capacity < l->count + 2)
        if (memory_extend(NULL, &l->range, l->capacity, &l->capacity, sizeof *l->range, "locks", e) != DELTAFS_OK)
            return e->status;
    cut_out(l, r);
    if (r->lock != POOL_UNLOCKED)
        l->range[l->count++] = *r;
    return DELTAFS_OK;
}

/* Forget all locks of this client, or of this file; NULL: of any. */
static void forget(struct pool_locks *l, const uint64_t *client, const uint64_t *id)
{
    size_t left = 0;

    for (size_t i = 0; i < l->count; i++)
        if ((client && l->range[i].client != *client) || (id && l->range[i].id != *id))
            l->range[left++] = l->range[i];
    l->count = left;
}

void pool_locks_leave(struct pool_locks *l, uint64_t client)
{
    forget(l, &client, NULL);
}

void pool_locks_forget(struct pool_locks *l, uint64_t id)
{
    forget(l, NULL, &id);
}

void pool_locks_fini(struct pool_locks *l)
{
    free(l->range);
}
