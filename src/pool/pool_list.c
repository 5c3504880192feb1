/* Lists of folders: the members are asked for their entries, some members at once, and a part at a time. */
#include <stdlib.h>
#include <sys/stat.h>
#include "base/memory.h"
#include "base/options.h"
#include "pool/pool_client.h"

#define PART POOL_REMOTE_BYTES /* bytes */

struct deltafs_pool_list {
    struct deltafs_pool *pool;
    struct pool_place place;
    uint32_t *members;
    size_t count, capacity;
    size_t asked;                 /* members so far */
    char name[POOL_NAME_MAX + 1]; /* the last that was returned */
    struct deltafs_pool_entry entry;
    uint8_t *part; /* of each member that was asked at once: PART bytes */
    size_t used[POOL_SLOTS];
    size_t parts, current, at; /* parts; the one that is read, and how far */
};

static int list_members(struct deltafs_pool_list *l, struct error *e)
{
    size_t count = PART / sizeof(uint32_t);
    int status = DELTAFS_OK;

    while (status == DELTAFS_OK && count == PART / sizeof(uint32_t)) {
        struct pool_call c = pool_call_at(POOL_MEMBERS, &l->place);
        c.request.offset = l->count > 0 ? l->members[l->count - 1] + 1 : 0;
        c.out = l->part;
        c.room = PART;
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

static int bad_list(const struct deltafs_pool_list *l, struct error *e)
{
    return error_set(e, DELTAFS_ERR_IO, "%s: a server sent a bad list", l->place.path);
}

/* Ask `n` members, the first of which is member `first`, for what is behind `name`; the parts begin with part `part`.
 */
static int list_ask(struct deltafs_pool_list *l, size_t first, size_t n, size_t part, const char *name, struct error *e)
{
    char in[POOL_PATH_MAX + 1 + POOL_NAME_MAX];
    size_t length = strlen(name), bytes = l->place.n + 1 + length;
    struct pool_call calls[POOL_SLOTS];

    memcpy(in, l->place.path, l->place.n);
    in[l->place.n] = '\0';
    memcpy(in + l->place.n + 1, name, length);
    for (size_t i = 0; i < n; i++) {
        calls[i] = pool_call_of(POOL_LIST, l->members[first + i]);
        calls[i].in = in;
        calls[i].request.bytes = (uint32_t)bytes;
        calls[i].out = l->part + (part + i) * PART;
        calls[i].room = PART;
        l->used[part + i] = 0;
    }
    int status = pool_link_calls(&l->pool->link, calls, n, e);
    if (status != DELTAFS_OK)
        return error_set(e, status, "%s: %s", l->place.path, e->text);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        if (calls[i].answer.status < 0)
            status = pool_refuse(calls[i].answer.status, l->place.path, e);
        else if (calls[i].answer.bytes > PART)
            status = bad_list(l, e);
        else
            l->used[part + i] = calls[i].answer.bytes;
    }
    return status;
}

/* Whether the member may have more than the current part: there was no room for any other entry. */
static int is_incomplete(const struct deltafs_pool_list *l)
{
    return l->current < l->parts && l->used[l->current] > PART - POOL_ENTRY_BYTES(POOL_NAME_MAX);
}

/* Go on behind the current part, which is read; at the end there are no parts. */
static int list_read(struct deltafs_pool_list *l, struct error *e)
{
    size_t first = l->asked - l->parts + l->current, left = l->count - l->asked;

    l->at = 0;
    if (is_incomplete(l))
        return list_ask(l, first, 1, l->current, l->name, e);
    if (++l->current < l->parts)
        return DELTAFS_OK;
    l->current = 0;
    l->parts = left < POOL_SLOTS ? left : POOL_SLOTS;
    first = l->asked;
    l->asked += l->parts;
    int status = l->parts > 0 ? list_ask(l, first, l->parts, 0, "", e) : DELTAFS_OK;
    if (status == DELTAFS_OK || l->parts == 1)
        return status;
    /* The entries of those before the member that has failed come first. */
    l->asked = first + 1;
    l->parts = 1;
    return list_ask(l, first, 1, 0, "", e);
}

static int list_begin(struct deltafs_pool_list *l, struct error *e)
{
    if (!(l->part = malloc(PART)))
        return error_no_memory(e, PART, "a list");
    int status = list_members(l, e);
    size_t size = (l->count < POOL_SLOTS ? l->count : POOL_SLOTS) * PART;
    uint8_t *part = status == DELTAFS_OK && size > PART ? realloc(l->part, size) : l->part;
    if (!part)
        return error_no_memory(e, size, "a list");
    l->part = part;
    return status;
}

int pool_list_open(struct deltafs_pool *p, const struct pool_place *place, deltafs_pool_list **out, struct error *e)
{
    struct deltafs_pool_list *l = calloc(1, sizeof *l);

    if (!l)
        return error_no_memory(e, sizeof *l, "a list");
    l->pool = p;
    l->place = *place;
    int status = list_begin(l, e);
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

    while (status == DELTAFS_OK && (l->parts > 0 ? l->at == l->used[l->current] : l->asked < l->count))
        status = list_read(l, e);
    if (status != DELTAFS_OK)
        return status;
    *entry = NULL;
    if (l->parts == 0)
        return DELTAFS_OK;
    const uint8_t *part = l->part + l->current * PART;
    size_t left = l->used[l->current] - l->at;
    if (left >= sizeof next)
        memcpy(&next, part + l->at, sizeof next);
    if (left < sizeof next || next.length > POOL_NAME_MAX || POOL_ENTRY_BYTES(next.length) > left)
        return bad_list(l, e);
    memcpy(l->name, part + l->at + sizeof next, next.length);
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
    if (list) {
        free(list->members);
        free(list->part);
    }
    free(list);
    return DELTAFS_OK;
}
