/* Bytes of files that this writer has stored and not committed: a directory can be read only up to its last commit. */
#ifndef DELTAFS_NAMESPACE_RECENT_H
#define DELTAFS_NAMESPACE_RECENT_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct recent_chunk {
    uint64_t key; /* each is higher than the one before */
    size_t at, size;
};

struct recent {
    uint8_t *bytes; /* NULL until something is added */
    size_t room, used;
    struct recent_chunk *chunk;
    size_t count, capacity;
};

static inline struct recent recent_of(size_t room)
{
    return (struct recent){.room = room};
}

void recent_fini(struct recent *r);
/* Add a chunk; if there is no room, all others are forgotten. */
int recent_add(struct recent *r, uint64_t key, const void *bytes, size_t size, struct error *e);
/* NULL: it is not there, or not any more. */
const uint8_t *recent_find(const struct recent *r, uint64_t key, size_t *size);
/* All are committed. */
void recent_clear(struct recent *r);

#endif
