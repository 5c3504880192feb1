#include <stdlib.h>
#include "core/memtable.h"
#include "store/block.h"

#define TYPICAL_VALUE 48 /* bytes to reckon with where sizes differ */

size_t memtable_record_bytes(int64_t value_size)
{
    return value_size < 0 ? 8 + 4 + 4 + TYPICAL_VALUE : 8 + (size_t)value_size;
}

int memtable_init(struct memtable *t, int64_t value_size, uint32_t capacity, struct error *e)
{
    size_t n = capacity;

    *t = (struct memtable){.value_size = value_size, .capacity = capacity};
    if (value_size < 0) {
        /* One value of the largest size must fit; places are 32 bits. */
        t->room = n * (4 + TYPICAL_VALUE);
        if (t->room < 4 + BLOCK_VALUE_MAX)
            t->room = 4 + BLOCK_VALUE_MAX;
        if (t->room > UINT32_MAX)
            t->room = UINT32_MAX;
        t->places = malloc(n * sizeof *t->places);
    } else {
        t->room = n * (size_t)value_size;
    }
    t->keys = malloc(n * sizeof *t->keys);
    t->arena = malloc(t->room + 1);
    if (!t->keys || !t->arena || (value_size < 0 && !t->places)) {
        memtable_fini(t);
        return error_no_memory(e, n * memtable_record_bytes(value_size), "a memtable");
    }
    return DELTAFS_OK;
}

void memtable_fini(struct memtable *t)
{
    free(t->keys);
    free(t->places);
    free(t->arena);
    *t = (struct memtable){0};
}
