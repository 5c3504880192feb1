/* Memory that grows as needed and is used again. */
#ifndef DELTAFS_BASE_BUFFER_H
#define DELTAFS_BASE_BUFFER_H

#include <stdlib.h>
#include "base/error.h"

struct buffer {
    uint8_t *bytes;
    size_t capacity;
};

/* Make room for `n` bytes; what was in the buffer stays. `what` is for the message. */
static inline int buffer_reserve(struct buffer *b, size_t n, const char *what, struct error *e)
{
    if (n <= b->capacity)
        return DELTAFS_OK;
    if (n < 2 * b->capacity)
        n = 2 * b->capacity;
    uint8_t *grown = realloc(b->bytes, n);
    if (!grown)
        return error_no_memory(e, n, what);
    b->bytes = grown;
    b->capacity = n;
    return DELTAFS_OK;
}

static inline void buffer_fini(struct buffer *b)
{
    free(b->bytes);
    *b = (struct buffer){0};
}

#endif
