#include "namespace/list_batch.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/coding.h"
#include "directory/format/planes.h"

#define AHEAD       8 /* groups */
#define AHEAD_LINES 2 /* of each */

static const char what[] = "a list of a folder";

/* ---- Groups ---- */

void group_clear(struct group *g, uint32_t hash)
{
    g->hash = hash;
    g->used = g->count = 0;
}

void group_fini(struct group *g)
{
    buffer_fini(&g->copies);
    free(g->member);
}

int group_add(struct group *g, const uint8_t *bytes, size_t size, const struct entry *entry, struct error *e)
{
    int status = memory_extend(NULL, &g->member, g->count, &g->room, sizeof *g->member, what, e);

    if (status == DELTAFS_OK)
        g->member[g->count++] = (struct member){*entry, bytes, size, 0};
    return status;
}

int group_copy(struct group *g, const uint8_t *bytes, size_t size, const struct entry *entry, struct error *e)
{
    int status = buffer_reserve(&g->copies, g->used + size, what, e);

    if (status != DELTAFS_OK)
        return status;
    memcpy(g->copies.bytes + g->used, bytes, size);
    g->used += size;
    return group_add(g, NULL, size, entry, e);
}

void group_settle(struct group *g)
{
    const uint8_t *record = g->copies.bytes;

    for (struct member *m = g->member, *end = m + g->count; m < end; record += m++->size) {
        m->bytes = record;
        m->entry.name = (const char *)record + ENTRY_HEADER_SIZE;
        m->entry.target = (const char *)record + m->size - m->entry.target_size;
    }
}

/* ---- Batches ---- */

void list_batch_fini(struct list_batch *b)
{
    struct buffer *const buffers[] = {&b->bytes, &b->place, &b->at, &b->keys, &b->values};

    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        buffer_fini(buffers[i]);
}

/* Let the system use huge pages: groups are read in an order that has nothing to do with where they are. */
static void use_huge_pages(const struct buffer *b)
{
    size_t before = (size_t)(0 - (uintptr_t)b->bytes) % MEMORY_PAGE;

    if (b->capacity > before)
        madvise(b->bytes + before, b->capacity - before, MADV_HUGEPAGE);
}

int list_batch_begin(struct list_batch *b, size_t bytes, struct error *e)
{
    int is_first = !b->bytes.bytes, status = buffer_reserve(&b->bytes, bytes, what, e);

    if (is_first && status == DELTAFS_OK)
        use_huge_pages(&b->bytes);
    b->used = b->count = b->next = 0;
    b->error.status = DELTAFS_OK;
    return status;
}

/* The place of the bytes of its newest file. */
static uint64_t group_place(const struct group *g)
{
    uint64_t place = 0;

    for (const struct member *m = g->member, *end = m + g->count; m < end; m++)
        place = m->entry.inode.data.number > place ? m->entry.inode.data.number : place;
    return place;
}

int list_batch_add(struct list_batch *b, const struct group *g, struct error *e)
{
    size_t bytes = 2 * sizeof(uint32_t), numbers = (b->count + 1) * sizeof(uint64_t) + PLANES_SLACK;

    for (const struct member *m = g->member, *end = m + g->count; m < end; m++)
        bytes += sizeof(uint32_t) + m->size;
    int status = buffer_reserve(&b->bytes, b->used + bytes, what, e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&b->place, numbers, what, e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&b->at, numbers, what, e);
    if (status != DELTAFS_OK)
        return status;
    ((uint64_t *)(void *)b->place.bytes)[b->count] = group_place(g);
    put_u64(b->at.bytes + b->count++ * sizeof(uint64_t), b->used);
    uint8_t *p = b->bytes.bytes + b->used;
    put_u32(p, g->hash);
    put_u32(p + 4, (uint32_t)g->count);
    p += 8;
    for (const struct member *m = g->member, *end = m + g->count; m < end; m++) {
        put_u32(p, (uint32_t)m->size);
        memcpy(p + 4, m->bytes, m->size);
        p += 4 + m->size;
    }
    b->used += bytes;
    return DELTAFS_OK;
}

size_t list_batch_size(const struct list_batch *b)
{
    return b->used + 4 * b->count * sizeof(uint64_t);
}

void list_batch_sort(struct list_batch *b)
{
    static const struct sort_partitions one = {.count = 1};
    const struct sort_input in = {.count = (uint32_t)b->count,
                                  .keys = (uint64_t *)(void *)b->place.bytes,
                                  .values = b->at.bytes,
                                  .value_size = sizeof(uint64_t)};
    size_t bytes = b->count * sizeof(uint64_t) + PLANES_SLACK;

    b->sorted = (struct sorted){.values = b->at.bytes};
    if (b->count > 0 && buffer_reserve(&b->keys, bytes, what, error_ignored()) == DELTAFS_OK &&
        buffer_reserve(&b->values, bytes, what, error_ignored()) == DELTAFS_OK)
        b->sorted = sort_records(&in, &one, (uint64_t *)(void *)b->keys.bytes, (uint64_t *)(void *)b->values.bytes);
}

static const uint8_t *group_at(const struct list_batch *b, size_t i)
{
    i = b->sorted.order ? b->sorted.order[i] : i;
    return b->bytes.bytes + get_u64(b->sorted.values + i * sizeof(uint64_t));
}

int list_batch_take(struct list_batch *b, struct group *out, struct error *e)
{
    struct entry entry;
    int status = DELTAFS_OK;

    group_clear(out, 0);
    if (b->next == b->count)
        return DELTAFS_OK;
    /* Groups may be anywhere in memory. Not in a function of its own: compilers leave out calls of those that do
     * nothing else. */
    for (size_t i = 0; i < AHEAD_LINES && b->count - b->next > AHEAD; i++)
        __builtin_prefetch(group_at(b, b->next + AHEAD) + i * CACHE_LINE);
    const uint8_t *p = group_at(b, b->next++);
    group_clear(out, get_u32(p));
    uint32_t count = get_u32(p + 4);
    p += 8;
    for (uint32_t i = 0; i < count && status == DELTAFS_OK; i++) {
        size_t size = get_u32(p);
        p += 4;
        entry_decode(p, size, &entry); /* as it was before it came here */
        status = group_add(out, p, size, &entry, e);
        p += size;
    }
    return status;
}
