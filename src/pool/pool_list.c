/* Lists of folders: each member is asked for its entries, a part at a time. */
#include <stdlib.h>
#include <sys/stat.h>
#include "base/memory.h"
#include "base/options.h"
#include "pool/pool_client.h"

struct deltafs_pool_list {
    struct deltafs_pool *pool;
    struct pool_place place;
    uint32_t *members;
    size_t count, capacity, next; /* the member that is asked */
    char name[POOL_NAME_MAX + 1]; /* the last that was returned */
    struct deltafs_pool_entry entry;
    size_t at, used; /* bytes of the part */
    _Alignas(8) uint8_t part[POOL_REMOTE_BYTES];
};

static int list_members(struct deltafs_pool_list *l, struct error *e)
{
    size_t count = 1;
    int status = DELTAFS_OK;

    while (status == DELTAFS_OK && count > 0) {
        struct pool_call c = pool_call_at(POOL_MEMBERS, &l->place);
        c.request.offset = l->count > 0 ? l->members[l->count - 1] + 1 : 0;
        c.out = l->part;
        c.room = sizeof l->part;
        status = pool_ask(l->pool, &c, l->place.path, e);
        count = status == DELTAFS_OK ? c.answer.bytes / sizeof(uint32_t) : 0;
        for (size_t i = 0; i < count && status == DELTAFS_OK; i++) {
            status = memory_extend(NULL, &l->members, l->count, &l->capacity, sizeof *l->members, "a list", e);
            if (status == DELTAFS_OK)
                memcpy(&l->members[l->count++], l->part + i * sizeof(uint32_t), sizeof(uint32_t));
        }
    }
    return status;
}

/* What is listed from now on is behind the last name. */
static int list_read(struct deltafs_pool_list *l, struct error *e)
{
    char in[POOL_PATH_MAX + 1 + POOL_NAME_MAX];
    size_t n = l->place.n, length = strlen(l->name);
    struct pool_call c = pool_call_of(POOL_LIST, l->members[l->next]);

    memcpy(in, l->place.path, n);
    in[n] = '\0';
    memcpy(in + n + 1, l->name, length);
    c.in = in;
    c.request.bytes = (uint32_t)(n + 1 + length);
    c.out = l->part;
    c.room = sizeof l->part;
    int status = pool_ask(l->pool, &c, l->place.path, e);
    l->at = 0;
    l->used = status == DELTAFS_OK ? c.answer.bytes : 0;
    if (status == DELTAFS_OK && l->used == 0) {
        l->next++;
        l->name[0] = '\0';
    }
    return status;
}

int pool_list_open(struct deltafs_pool *p, const struct pool_place *place, deltafs_pool_list **out, struct error *e)
{
    struct deltafs_pool_list *l = calloc(1, sizeof *l);

    if (!l)
        return error_no_memory(e, sizeof *l, "a list");
    l->pool = p;
    l->place = *place;
    int status = list_members(l, e);
    if (status == DELTAFS_OK)
        *out = l;
    else
        deltafs_pool_list_close(l);
    return status;
}

int deltafs_pool_list_open(deltafs_pool *pool, const char *path, deltafs_pool_list **out)
{
    struct error e = {.status = DELTAFS_OK};
    struct pool_place place;
    int status = pool_place_set(pool, &place, path, &e);

    if (status == DELTAFS_OK)
        do
            status = pool_list_open(pool, &place, out, &e);
        while (pool_follow(pool, &place, 1, &status, &e));
    return error_of_thread(status, &e);
}

int pool_list_next(deltafs_pool_list *l, const struct deltafs_pool_entry **entry, struct error *e)
{
    struct pool_entry next = {.id = 0};
    int status = DELTAFS_OK;

    while (status == DELTAFS_OK && l->at == l->used && l->next < l->count)
        status = list_read(l, e);
    if (status != DELTAFS_OK)
        return status;
    *entry = NULL;
    if (l->at == l->used)
        return DELTAFS_OK;
    memcpy(&next, l->part + l->at, sizeof next);
    if (next.length > POOL_NAME_MAX || POOL_ENTRY_BYTES(next.length) > l->used - l->at)
        return error_set(e, DELTAFS_ERR_IO, "%s: a server sent a bad list", l->place.path);
    memcpy(l->name, l->part + l->at + sizeof next, next.length);
    l->name[next.length] = '\0';
    l->at += POOL_ENTRY_BYTES(next.length);
    l->entry = (struct deltafs_pool_entry){.name = l->name, .inode = next.id, .mode = next.mode};
    *entry = &l->entry;
    return DELTAFS_OK;
}

int deltafs_pool_list_next(deltafs_pool_list *list, const struct deltafs_pool_entry **entry)
{
    struct error e = {.status = DELTAFS_OK};

    return error_of_thread(pool_list_next(list, entry, &e), &e);
}

int deltafs_pool_list_close(deltafs_pool_list *list)
{
    if (list)
        free(list->members);
    free(list);
    return DELTAFS_OK;
}
