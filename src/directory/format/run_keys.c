#include "directory/format/run_keys.h"

/* A varint of v takes at most 1 + log2(v + 1) / 7 bytes, and a sum of logarithms is largest where all are alike. A run
 * begins with its first key, which may take the most. */
uint64_t keys_bound(uint64_t n, uint64_t runs, uint64_t range)
{
    uint64_t gap = n > 0 ? range / n : 0, scaled = gap > UINT64_MAX / runs ? UINT64_MAX : gap * runs;
    unsigned bits = scaled >> 62 ? 64 : 64 - (unsigned)__builtin_clzll(scaled + runs + 1);
    uint64_t bytes = n + n * bits / 7 + runs * VARINT_MAX;

    return bytes + bytes / 512 + 2 * KEYS_CHUNK; /* what chunks' ends leave free */
}

int keys_grow(struct keys_store *s, struct error *e)
{
    struct keys_chunk *chunk;
    int status = memory_take(s->memory, sizeof *chunk, "keys of runs", &chunk, e);

    if (status != DELTAFS_OK)
        return status;
    chunk->next = NULL;
    if (s->last)
        s->last->next = chunk;
    else
        s->first = chunk;
    s->last = chunk;
    s->at = chunk->bytes;
    return DELTAFS_OK;
}

int keys_begin(struct keys_store *s, uint64_t n, struct keys_cursor *out, struct error *e)
{
    int status = s->last && s->at <= keys_last_place(s->last) ? DELTAFS_OK : keys_grow(s, e);

    if (status == DELTAFS_OK)
        *out = (struct keys_cursor){
            .chunk = s->last, .at = s->at, .left = n, .has_epochs = s->has_epochs, .epoch = KEYS_NO_EPOCH};
    return status;
}

int keys_put_all(struct keys_store *s, const uint64_t *keys, uint64_t n, struct error *e)
{
    uint64_t previous = 0;
    int status = DELTAFS_OK;

    for (uint64_t i = 0; i < n && status == DELTAFS_OK;) {
        const uint8_t *last = keys_last_place(s->last);
        uint8_t *at = s->at;
        for (; i < n && at <= last; previous = keys[i++])
            at = keys_put_at(at, keys[i] - previous);
        s->at = at;
        if (i < n)
            status = keys_grow(s, e);
    }
    return status;
}

void keys_clear(struct keys_store *s)
{
    for (struct keys_chunk *next, *chunk = s->first; chunk; chunk = next) {
        next = chunk->next;
        memory_give(s->memory, chunk, sizeof *chunk);
    }
    *s = (struct keys_store){.memory = s->memory, .has_epochs = s->has_epochs};
}
