#include "base/short_copy.h"
#include "directory/write/memtable.h"
#include "directory/format/planes.h"

#define TYPICAL_VALUE 48 /* bytes to compute with where sizes differ */

size_t memtable_arena_bytes(int64_t value_size)
{
    return value_size < 0 ? 4 + TYPICAL_VALUE : (size_t)value_size;
}

size_t memtable_record_bytes(int64_t value_size)
{
    return (value_size < 0 ? 8u + 4 : 8u) + memtable_arena_bytes(value_size);
}

int memtable_init(struct memtable *t, int64_t value_size, uint32_t capacity, struct memory *memory, struct error *e)
{
    size_t n = capacity;

    *t = (struct memtable){.value_size = value_size, .capacity = capacity, .memory = memory};
    t->room = n * memtable_arena_bytes(value_size);
    if (value_size < 0 && t->room < MEMTABLE_ROOM_MIN)
        t->room = MEMTABLE_ROOM_MIN;
    if (value_size < 0 && t->room > UINT32_MAX)
        t->room = UINT32_MAX; /* places are 32 bits */
    int status = memory_take(memory, n * sizeof *t->keys + PLANES_SLACK, "a memtable", &t->keys, e);
    if (status == DELTAFS_OK)
        status = memory_take(memory, t->room + PLANES_SLACK, "a memtable", &t->arena, e);
    if (status == DELTAFS_OK && value_size < 0)
        status = memory_take(memory, n * sizeof *t->places, "a memtable", &t->places, e);
    return status;
}

int memtable_add_epochs(struct memtable *t, struct error *e)
{
    return memory_take(t->memory, t->capacity * sizeof *t->epochs, "a memtable", &t->epochs, e);
}

void memtable_fini(struct memtable *t)
{
    memory_give(t->memory, t->keys, t->capacity * sizeof *t->keys + PLANES_SLACK);
    memory_give(t->memory, t->places, t->capacity * sizeof *t->places);
    memory_give(t->memory, t->epochs, t->capacity * sizeof *t->epochs);
    memory_give(t->memory, t->arena, t->room + PLANES_SLACK);
    *t = (struct memtable){0};
}

size_t memtable_put_some(struct memtable *t, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                         size_t value_stride, size_t size)
{
    size_t some = 1;

    if (t->value_size < 0) {
        uint64_t key;
        memcpy(&key, keys, sizeof key);
        memtable_put(t, key, values, size);
        return some;
    }
    some = t->capacity - t->count < n ? t->capacity - t->count : n;
    for (size_t i = 0; i < some; i++)
        memcpy(&t->keys[t->count + i], keys + i * key_stride, sizeof *t->keys);
    if (value_stride == size && size > 0)
        memcpy(t->arena + t->used, values, some * size);
    for (size_t i = 0; i < some && value_stride != size && size > 0; i++)
        copy_short(t->arena + t->used + i * size, values + i * value_stride, size);
    t->count += (uint32_t)some;
    t->used += some * size;
    return some;
}
