/* A memtable: records as they arrive, until there are enough for runs. All memory is taken at the start; adding a
 * record copies it and does nothing else. */
#ifndef DELTAFS_DIRECTORY_MEMTABLE_H
#define DELTAFS_DIRECTORY_MEMTABLE_H

#include <string.h>
#include "base/memory.h"
#include "directory/format/block.h"

#define MEMTABLE_ROOM_MIN (4 + BLOCK_VALUE_MAX)

struct memtable {
    int64_t value_size; /* -1: any; each value is then behind its size */
    uint32_t count, capacity;
    uint64_t *keys;
    uint32_t *places;             /* of values in the arena, if they differ in size */
    uint32_t *epochs;             /* of the records, where epochs are compacted; else NULL */
    const struct partitioner *by; /* how its records are placed; the caller's */
    uint32_t partition;           /* of all, if that is not known */
    uint8_t *arena;
    size_t used, room;
    struct memory *memory;
};

/* Bytes that a record takes, of typical size if sizes differ; and what of that is in the arena. */
size_t memtable_record_bytes(int64_t value_size);
size_t memtable_arena_bytes(int64_t value_size);
/* For `capacity` records; where sizes differ at least for one of the largest. Safe to memtable_fini if it fails. */
int memtable_init(struct memtable *t, int64_t value_size, uint32_t capacity, struct memory *memory, struct error *e);
/* Have room for the records' epochs. */
int memtable_add_epochs(struct memtable *t, struct error *e);
void memtable_fini(struct memtable *t);

static inline void memtable_clear(struct memtable *t)
{
    t->count = 0;
    t->used = 0;
}

static inline int memtable_has_room(const struct memtable *t, size_t size)
{
    return t->count < t->capacity && (t->value_size >= 0 || t->used + 4 + size <= t->room);
}

/* Add a record; there is room. */
static inline void memtable_put(struct memtable *t, uint64_t key, const void *value, size_t size)
{
    if (t->value_size < 0) {
        uint32_t size32 = (uint32_t)size;
        t->places[t->count] = (uint32_t)t->used;
        memcpy(t->arena + t->used, &size32, 4);
        t->used += 4;
    }
    if (size > 0)
        memcpy(t->arena + t->used, value, size);
    t->used += size;
    t->keys[t->count++] = key;
}

/* The records from number `first` on are of `epoch`, where epochs are compacted. */
static inline void memtable_set_epoch(struct memtable *t, uint32_t first, uint32_t epoch)
{
    for (uint32_t i = first; t->epochs && i < t->count; i++)
        t->epochs[i] = epoch;
}

/* Add the first of `n` records in arrays, as many as there is room for; returns how many. There is room for one. */
size_t memtable_put_some(struct memtable *t, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                         size_t value_stride, size_t size);

static inline const uint8_t *memtable_value(const struct memtable *t, uint32_t i, size_t *size)
{
    uint32_t size32;

    if (t->value_size >= 0) {
        *size = (size_t)t->value_size;
        return t->arena + (size_t)i * (size_t)t->value_size;
    }
    memcpy(&size32, t->arena + t->places[i], 4);
    *size = size32;
    return t->arena + t->places[i] + 4;
}

#endif
