#include "namespace/list_batch.h"
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "directory/format/planes.h"
#include "directory/write/sort.h"

#define AHEAD 8 /* groups */

struct batch_group {
    uint32_t hash, count;
    size_t at;
};

/* ---- Groups ---- */

void group_clear(struct group *g, uint32_t hash)
{
    g->hash = hash;
    g->used = g->count = 0;
}

void group_fini(struct group *g)
{
    buffer_fini(&g->bytes);
    free(g->member);
}

int group_add(struct group *g, const void *bytes, size_t size, const struct entry *entry, struct error *e)
{
    int status = memory_extend(NULL, &g->member, g->count, &g->room, sizeof *g->member, "a list of a folder", e);

    if (status == DELTAFS_OK)
        status = buffer_reserve(&g->bytes, g->used + size, "a list of a folder", e);
    if (status != DELTAFS_OK)
        return status;
    memcpy(g->bytes.bytes + g->used, bytes, size);
    struct member *m = &g->member[g->count++];
    m->entry = *entry;
    m->at = g->used;
    m->size = size;
    m->is_done = 0;
    g->used += size;
    return DELTAFS_OK;
}

void group_settle(struct group *g)
{
    for (struct member *m = g->member, *end = m + g->count; m < end; m++) {
        const char *record = (const char *)g->bytes.bytes + m->at;
        m->entry.name = record + ENTRY_HEADER_SIZE;
        m->entry.target = record + m->size - m->entry.target_size;
    }
}

/* ---- Batches ---- */

void list_batch_fini(struct list_batch *b)
{
    buffer_fini(&b->bytes);
    buffer_fini(&b->place);
    buffer_fini(&b->sorted);
    buffer_fini(&b->scratch);
    free(b->group);
}

void list_batch_clear(struct list_batch *b)
{
    b->used = b->count = b->next = 0;
    b->order = NULL;
    b->error.status = DELTAFS_OK;
}

int list_batch_add(struct list_batch *b, const struct group *g, struct error *e)
{
    size_t bytes = g->used + g->count * sizeof(uint32_t);
    int status = memory_extend(NULL, &b->group, b->count, &b->room, sizeof *b->group, "a list of a folder", e);

    if (status == DELTAFS_OK)
        status = buffer_reserve(&b->bytes, b->used + bytes, "a list of a folder", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&b->place, (b->count + 1) * sizeof(uint64_t), "a list of a folder", e);
    if (status != DELTAFS_OK)
        return status;
    ((uint64_t *)(void *)b->place.bytes)[b->count] = g->member[0].entry.inode.data.number;
    b->group[b->count++] = (struct batch_group){.hash = g->hash, .count = (uint32_t)g->count, .at = b->used};
    for (const struct member *m = g->member, *end = m + g->count; m < end; m++) {
        put_u32(b->bytes.bytes + b->used, (uint32_t)m->size);
        memcpy(b->bytes.bytes + b->used + sizeof(uint32_t), g->bytes.bytes + m->at, m->size);
        b->used += sizeof(uint32_t) + m->size;
    }
    return DELTAFS_OK;
}

size_t list_batch_size(const struct list_batch *b)
{
    return b->used + b->count * (sizeof *b->group + 3 * sizeof(uint64_t));
}

void list_batch_sort(struct list_batch *b)
{
    static const struct sort_partitions one = {.count = 1};
    const struct sort_input in = {.count = (uint32_t)b->count, .keys = (const uint64_t *)(const void *)b->place.bytes};
    size_t bytes = b->count * sizeof(uint64_t) + PLANES_SLACK;

    if (b->count == 0 || buffer_reserve(&b->sorted, bytes, "a list of a folder", error_ignored()) != DELTAFS_OK ||
        buffer_reserve(&b->scratch, bytes, "a list of a folder", error_ignored()) != DELTAFS_OK)
        return;
    uint64_t *sorted = (uint64_t *)(void *)b->sorted.bytes, *scratch = (uint64_t *)(void *)b->scratch.bytes;
    b->order = sort_records(&in, &one, sorted, scratch).order;
}

static const struct batch_group *group_at(const struct list_batch *b, size_t i)
{
    return &b->group[b->order ? b->order[i] : i];
}

int list_batch_prefetch(const struct list_batch *b, uint32_t *hash)
{
    if (b->count - b->next <= AHEAD)
        return 0;
    const struct batch_group *g = group_at(b, b->next + AHEAD);
    const uint8_t *p = b->bytes.bytes + g->at;
    __builtin_prefetch(p);
    __builtin_prefetch(p + CACHE_LINE);
    *hash = g->hash;
    return 1;
}

int list_batch_take(struct list_batch *b, struct group *out, struct error *e)
{
    int status = DELTAFS_OK;

    group_clear(out, 0);
    if (b->next == b->count)
        return DELTAFS_OK;
    const struct batch_group *g = group_at(b, b->next++);
    const uint8_t *p = b->bytes.bytes + g->at;
    group_clear(out, g->hash);
    for (uint32_t i = 0; i < g->count && status == DELTAFS_OK; i++) {
        struct entry entry;
        size_t size = get_u32(p);
        p += sizeof(uint32_t);
        entry_decode(p, size, &entry); /* as it was before it came here */
        status = group_add(out, p, size, &entry, e);
        p += size;
    }
    group_settle(out);
    return status;
}
