#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "namespace/recent.h"

void recent_fini(struct recent *r)
{
    free(r->bytes);
    free(r->chunk);
}

void recent_clear(struct recent *r)
{
    r->used = r->count = 0;
}

int recent_add(struct recent *r, uint64_t key, const void *bytes, size_t size, struct error *e)
{
    if (size + sizeof *r->chunk > r->room)
        return DELTAFS_OK;
    if (!r->bytes)
        r->bytes = malloc(r->room);
    if (!r->bytes)
        return error_no_memory(e, r->room, "bytes of files");
    if (r->used + size + (r->count + 1) * sizeof *r->chunk > r->room)
        recent_clear(r);
    int status = memory_extend(NULL, &r->chunk, r->count, &r->capacity, sizeof *r->chunk, "bytes of files", e);
    if (status != DELTAFS_OK)
        return status;
    memcpy(r->bytes + r->used, bytes, size);
    r->chunk[r->count++] = (struct recent_chunk){key, r->used, size};
    r->used += size;
    return DELTAFS_OK;
}

static int compare_chunk(const void *key, const void *chunk)
{
    uint64_t a = *(const uint64_t *)key, b = ((const struct recent_chunk *)chunk)->key;

    return (a > b) - (a < b);
}

const uint8_t *recent_find(const struct recent *r, uint64_t key, size_t *size)
{
    const struct recent_chunk *c =
        r->count > 0 ? bsearch(&key, r->chunk, r->count, sizeof *r->chunk, compare_chunk) : NULL;

    if (!c)
        return NULL;
    *size = c->size;
    return r->bytes + c->at;
}
