/* A fence: where the leaves of a segment are, and their first keys. It is kept as it is stored, with marks to begin
 * from: a leaf takes some 6 bytes of memory, and finding one decodes FENCE_STEP entries at most, and those of further
 * leaves with the same first key. */
#ifndef DELTAFS_DIRECTORY_FENCE_H
#define DELTAFS_DIRECTORY_FENCE_H

#include "base/memory.h"

#define FENCE_STEP 16

struct fence_leaf {
    uint64_t first_key, offset;
    uint32_t length;
};

/* Before an entry whose number FENCE_STEP divides. */
struct fence_mark {
    uint64_t key, offset; /* the first key of the leaf before, or 0; where the entry's leaf is */
    uint32_t at;          /* byte of the entry */
};

struct fence {
    uint8_t *bytes; /* as stored; NULL: it was not read */
    struct fence_mark *mark;
    uint32_t size, leaves;
};

/* Take `size` bytes apart, whose header is right but for its offset; the last leaf must end at `stop`. Returns a text
 * on what is wrong, or NULL. *status is set if memory is what is missing. `f` is to be finished also then. */
const char *fence_parse(struct fence *f, const uint8_t *bytes, uint32_t size, uint32_t leaves, uint64_t stop,
                        struct memory *memory, int *status, struct error *e);
void fence_fini(struct fence *f, struct memory *memory);

/* Leaf number i. */
struct fence_leaf fence_leaf(const struct fence *f, uint32_t i);
/* The first leaf that can hold `key`, which is between the segment's first and last; *leaves is how many after it can
 * too. 0 leaves if none can. */
uint32_t fence_find(const struct fence *f, uint64_t key, uint32_t *leaves);

#endif
