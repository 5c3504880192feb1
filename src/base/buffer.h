/* Memory that grows as needed and is used again. */
#ifndef DELTAFS_BASE_BUFFER_H
#define DELTAFS_BASE_BUFFER_H

#include "base/memory.h"

struct buffer {
    uint8_t *bytes;
    size_t capacity;
    struct memory *memory; /* NULL: not counted */
};

/* Make room for `n` bytes; what was in the buffer stays. `what` is for the message. */
static inline int buffer_reserve(struct buffer *b, size_t n, const char *what, struct error *e)
{
    if (n <= b->capacity)
        return DELTAFS_OK;
    if (n < b->capacity + b->capacity / 2)
        n = b->capacity + b->capacity / 2;
    int status = memory_grow(b->memory, &b->bytes, b->capacity, n, what, e);
    if (status == DELTAFS_OK)
        b->capacity = n;
    return status;
}

static inline void buffer_fini(struct buffer *b)
{
    memory_give(b->memory, b->bytes, b->capacity);
    *b = (struct buffer){0};
}

#endif
