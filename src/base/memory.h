/* The memory budget: what a writer allocates is taken from it and given back to it, so that its use is known and cannot
 * go beyond the limit. Any thread may take and give. A NULL budget counts nothing: what readers use. */
#ifndef DELTAFS_BASE_MEMORY_H
#define DELTAFS_BASE_MEMORY_H

#include <stdatomic.h>
#include "base/error.h"

struct memory {
    uint64_t limit;
    _Atomic uint64_t used;
    _Atomic uint64_t peak;
};

#define CACHE_LINE       64          /* bytes that the processor fetches at a time */
#define MEMORY_PAGE      4096        /* bytes; also what direct I/O is aligned to */
#define MEMORY_PAGED_MIN (64u << 10) /* memory of so many bytes begins at a page, if it is counted */

/* `n` bytes of memory, to be given back with the same n. `what` is for the message of DELTAFS_ERR_MEMORY, which comes
 * when the budget is used up, or the system has none. */
int memory_take(struct memory *m, size_t n, const char *what, void *out, struct error *e);
void memory_give(struct memory *m, void *p, size_t n);

/* Zeroed memory that is read and written all over: of huge pages, where the system has them. To be given back with the
 * same n. NULL: the system has none. */
void *memory_map(size_t n);
void memory_unmap(void *p, size_t n);

/* Make `p` of `old` bytes (NULL and 0 at first) one of `n` bytes, n > old, with the same contents. */
int memory_grow(struct memory *m, void *p, size_t old, size_t n, const char *what, struct error *e);

#define MEMORY_FIRST 16 /* elements that an array has room for at first */

/* Make room behind the first `count` elements, of `size` bytes each, of the array `p` with room for *capacity (NULL and
 * 0 at first). */
static inline int memory_extend(struct memory *m, void *p, size_t count, size_t *capacity, size_t size,
                                const char *what, struct error *e)
{
    size_t more = *capacity > 0 ? 2 * *capacity : MEMORY_FIRST;

    if (count < *capacity)
        return DELTAFS_OK;
    int status = memory_grow(m, p, *capacity * size, more * size, what, e);
    if (status == DELTAFS_OK)
        *capacity = more;
    return status;
}

#endif
