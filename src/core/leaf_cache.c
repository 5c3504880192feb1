/* A table of slots, of which each place in the logs has one. What is there already goes; and when the memory is used
 * up, slots are emptied one after the other, round and round. */
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "core/leaf_cache.h"

#define TYPICAL_LEAF 4096 /* bytes; a slot for each that fits, twice over */

struct slot {
    uint8_t *bytes; /* NULL: it is empty */
    size_t size;
    uint32_t partition;
    uint64_t offset;
    struct leaf leaf;
};

struct leaf_cache {
    uint64_t limit, used;
    size_t count; /* of slots */
    size_t hand;  /* the next to be emptied */
    struct slot *slot;
};

int leaf_cache_create(uint64_t bytes, struct leaf_cache **out, struct error *e)
{
    struct leaf_cache *c = calloc(1, sizeof *c);
    size_t count = (size_t)(bytes / TYPICAL_LEAF * 2 + 1);

    if (!c)
        return error_no_memory(e, sizeof *c, "a reader");
    *c = (struct leaf_cache){.limit = bytes, .count = count, .slot = calloc(count, sizeof *c->slot)};
    if (!c->slot) {
        free(c);
        return error_no_memory(e, count * sizeof(struct slot), "a reader's cache");
    }
    *out = c;
    return DELTAFS_OK;
}

static void slot_empty(struct leaf_cache *c, struct slot *s)
{
    c->used -= s->size;
    free(s->bytes);
    *s = (struct slot){0};
}

void leaf_cache_destroy(struct leaf_cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->count; i++)
        slot_empty(c, &c->slot[i]);
    free(c->slot);
    free(c);
}

static struct slot *slot_of(struct leaf_cache *c, uint32_t partition, uint64_t offset)
{
    return &c->slot[hash_key(offset ^ (uint64_t)partition << 44) % c->count];
}

const struct leaf *leaf_cache_find(struct leaf_cache *c, uint32_t partition, uint64_t offset)
{
    struct slot *s = slot_of(c, partition, offset);

    return s->bytes && s->partition == partition && s->offset == offset ? &s->leaf : NULL;
}

void leaf_cache_add(struct leaf_cache *c, uint32_t partition, uint64_t offset, const struct leaf *leaf,
                    const uint8_t *bytes, size_t n)
{
    struct slot *s = slot_of(c, partition, offset);

    if (n + LEAF_SLACK > c->limit)
        return;
    slot_empty(c, s);
    while (c->used + n + LEAF_SLACK > c->limit)
        slot_empty(c, &c->slot[c->hand++ % c->count]);
    uint8_t *copy = malloc(n + LEAF_SLACK);
    if (!copy)
        return;
    memcpy(copy, bytes, n + LEAF_SLACK);
    *s = (struct slot){.bytes = copy, .size = n + LEAF_SLACK, .partition = partition, .offset = offset, .leaf = *leaf};
    c->used += s->size;
    s->leaf.runs = s->leaf.blocks = (struct buffer){0};
    s->leaf.table = copy + (leaf->table - bytes);
    s->leaf.upper = copy + (leaf->upper - bytes);
    s->leaf.lower = copy + (leaf->lower - bytes);
    s->leaf.runs_of = copy + (leaf->runs_of - bytes);
}
