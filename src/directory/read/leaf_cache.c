/* A hash table of entries, each with a leaf's bytes. When they take too much, those of one place after the other go. */
#include <stdlib.h>
#include "base/hash.h"
#include "directory/read/leaf_cache.h"

#define TYPICAL_LEAF 4096       /* bytes; a place in the table for each that fits */
#define BUCKETS_MAX  (1u << 20) /* places in the table, at most */

struct entry {
    struct entry *next; /* in its place */
    uint32_t partition, segment;
    uint64_t offset;
    size_t size; /* of all of it */
    struct leaf leaf;
    uint8_t bytes[];
};

struct leaf_cache {
    uint64_t limit, used;
    size_t count; /* of places */
    size_t hand;  /* the place whose entries go next */
    struct entry **bucket;
};

int leaf_cache_create(uint64_t bytes, struct leaf_cache **out, struct error *e)
{
    struct leaf_cache *c = calloc(1, sizeof *c);
    uint64_t count = bytes / TYPICAL_LEAF < BUCKETS_MAX ? bytes / TYPICAL_LEAF + 1 : BUCKETS_MAX;

    if (!c)
        return error_no_memory(e, sizeof *c, "a reader");
    *c = (struct leaf_cache){.limit = bytes, .count = (size_t)count};
    *out = c;
    return DELTAFS_OK;
}

static struct entry **leaf_cache_place(const struct leaf_cache *c, uint32_t partition, uint64_t offset)
{
    return &c->bucket[hash_key(offset ^ (uint64_t)partition << 44) % c->count];
}

static void leaf_cache_empty(struct leaf_cache *c, struct entry **place)
{
    for (struct entry *gone; (gone = *place);) {
        *place = gone->next;
        c->used -= gone->size;
        free(gone);
    }
}

void leaf_cache_destroy(struct leaf_cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; c->bucket && i < c->count; i++)
        leaf_cache_empty(c, &c->bucket[i]);
    free(c->bucket);
    free(c);
}

const struct leaf *leaf_cache_find(struct leaf_cache *c, uint32_t partition, uint32_t segment, uint64_t offset)
{
    if (!c->bucket)
        return NULL;
    for (struct entry *entry = *leaf_cache_place(c, partition, offset); entry; entry = entry->next)
        if (entry->partition == partition && entry->segment == segment && entry->offset == offset)
            return &entry->leaf;
    return NULL;
}

void leaf_cache_add(struct leaf_cache *c, uint32_t partition, uint32_t segment, uint64_t offset,
                    const struct leaf *leaf)
{
    size_t table = c->count * sizeof *c->bucket, size = sizeof(struct entry) + leaf->size + LEAF_SLACK;

    if (size + table > c->limit || leaf_cache_find(c, partition, segment, offset))
        return;
    if (!c->bucket) {
        c->bucket = calloc(c->count, sizeof *c->bucket);
        if (!c->bucket)
            return;
        c->used = table;
    }
    for (; c->used + size > c->limit; c->hand = (c->hand + 1) % c->count)
        leaf_cache_empty(c, &c->bucket[c->hand]);
    struct entry *entry = malloc(size);
    if (!entry)
        return;
    struct entry **at = leaf_cache_place(c, partition, offset);
    *entry = (struct entry){.next = *at, .partition = partition, .segment = segment, .offset = offset, .size = size};
    leaf_copy(&entry->leaf, leaf, entry->bytes);
    *at = entry;
    c->used += size;
}
