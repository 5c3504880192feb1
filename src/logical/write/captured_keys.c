#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "logical/write/captured_keys.h"

#define CHUNK 32768 /* keys in one allocation */

static const char what[] = "keys of what was written";

/* Rows at one stride in the log. */
struct captured_run {
    uint64_t row, count;
    uint64_t position; /* of the first key */
    uint64_t at;       /* keys captured before it */
};

struct captured_keys {
    uint64_t base, stride; /* of the column */
    uint32_t size;
    int is_full;
    uint64_t missed; /* since then */
    struct memory memory;
    struct captured_run *run;
    size_t runs, run_capacity;
    uint8_t **chunk;
    size_t chunks;
    uint64_t count; /* keys */
};

int captured_keys_create(const struct deltafs_column *c, uint64_t limit, struct captured_keys **out, struct error *e)
{
    struct captured_keys *k = calloc(1, sizeof *k);

    if (!k)
        return error_no_memory(e, sizeof *k, what);
    k->base = c->offset;
    k->stride = c->stride;
    k->size = c->size;
    k->memory.limit = limit;
    *out = k;
    return DELTAFS_OK;
}

void deltafs_private_captured_keys_destroy(struct captured_keys *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->chunks; i++)
        free(k->chunk[i]);
    free(k->chunk);
    free(k->run);
    free(k);
}

static int captured_add_chunk(struct captured_keys *k, struct error *e)
{
    int status =
        memory_grow(&k->memory, &k->chunk, k->chunks * sizeof *k->chunk, (k->chunks + 1) * sizeof *k->chunk, what, e);

    if (status == DELTAFS_OK)
        status = memory_take(&k->memory, (size_t)CHUNK * k->size, what, &k->chunk[k->chunks], e);
    if (status == DELTAFS_OK)
        k->chunks++;
    return status;
}

/* Rows `row` to `row` + n - 1; the caller stores their keys next. */
static int captured_add_run(struct captured_keys *k, uint64_t row, uint64_t n, uint64_t position, struct error *e)
{
    struct captured_run *last = k->runs > 0 ? &k->run[k->runs - 1] : NULL;

    if (last && last->row + last->count == row && last->position + last->count * k->stride == position) {
        last->count += n;
        return DELTAFS_OK;
    }
    int status = memory_extend(&k->memory, &k->run, k->runs, &k->run_capacity, sizeof *k->run, what, e);
    if (status == DELTAFS_OK)
        k->run[k->runs++] = (struct captured_run){row, n, position, k->count};
    return status;
}

static void captured_copy(uint8_t *to, const uint8_t *from, size_t n, size_t stride, size_t size)
{
    if (size == 8)
        for (size_t i = 0; i < n; i++)
            memcpy(to + 8 * i, from + stride * i, 8);
    else if (size == 4)
        for (size_t i = 0; i < n; i++)
            memcpy(to + 4 * i, from + stride * i, 4);
    else
        for (size_t i = 0; i < n; i++)
            memcpy(to + size * i, from + stride * i, size);
}

void captured_keys_take(struct captured_keys *k, uint64_t offset, const uint8_t *bytes, size_t size, uint64_t position)
{
    if (size < k->size || offset + size - k->size < k->base)
        return;
    uint64_t row = offset <= k->base ? 0 : (offset - k->base + k->stride - 1) / k->stride;
    uint64_t first = k->base + row * k->stride - offset; /* in `bytes` */
    if (first > size - k->size)
        return;
    for (uint64_t left = (size - k->size - first) / k->stride + 1; left > 0;) {
        uint64_t at = k->count % CHUNK, n = left < CHUNK - at ? left : CHUNK - at;
        /* Indexing reads back the keys that do not fit. */
        if (k->is_full || (at == 0 && captured_add_chunk(k, error_ignored()) != DELTAFS_OK) ||
            captured_add_run(k, row, n, position + first, error_ignored()) != DELTAFS_OK) {
            k->is_full = 1;
            k->missed += left;
            return;
        }
        captured_copy(k->chunk[k->chunks - 1] + at * k->size, bytes + first, (size_t)n, (size_t)k->stride, k->size);
        k->count += n;
        row += n;
        first += n * k->stride;
        left -= n;
    }
}

uint64_t deltafs_private_captured_keys_missed(const struct captured_keys *k)
{
    return k ? k->missed : UINT64_MAX / 2;
}

uint64_t deltafs_private_captured_keys_rows(const struct captured_keys *k, uint64_t size)
{
    return size < k->base ? 0 : (size - k->base) / k->stride + 1;
}

int captured_keys_are_of(const struct captured_keys *k, const struct deltafs_column *c)
{
    return c->piece_count == 0 && c->offset == k->base && c->stride == k->stride && c->size == k->size;
}

/* The first run that begins behind `position`. */
static size_t captured_run_behind(const struct captured_keys *k, uint64_t position)
{
    size_t low = 0, high = k->runs;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (k->run[middle].position <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const uint8_t *captured_keys_find(const struct captured_keys *k, uint64_t row, uint64_t position, uint64_t *n)
{
    size_t behind = captured_run_behind(k, position);
    const struct captured_run *r = behind > 0 ? &k->run[behind - 1] : NULL;
    const struct captured_run *next = behind < k->runs ? &k->run[behind] : NULL;
    uint64_t nth = r ? (position - r->position) / k->stride : 0, missing;

    if (r && nth < r->count && r->row + nth == row && r->position + nth * k->stride == position) {
        uint64_t at = r->at + nth, most = r->count - nth, chunk = CHUNK - at % CHUNK;
        most = most < chunk ? most : chunk;
        *n = *n < most ? *n : most;
        return k->chunk[at / CHUNK] + at % CHUNK * k->size;
    }
    missing = next ? (next->position - position + k->stride - 1) / k->stride : *n;
    *n = *n < missing ? *n : missing;
    return NULL;
}
