/* Which bytes of a file were written. */
#ifndef DELTAFS_POSIX_SPAN_H
#define DELTAFS_POSIX_SPAN_H

#include <stddef.h>
#include <stdint.h>

struct span {
    uint64_t from, to;
};

/* Spans in order, with gaps between them. */
struct spans {
    struct span *span;
    size_t count, room;
    uint64_t bytes;
};

/* Add one; returns an error number. */
int spans_add(struct spans *s, uint64_t from, uint64_t to);
/* Leave out what is behind `end`. */
void spans_cut(struct spans *s, uint64_t end);
void spans_clear(struct spans *s);
void spans_fini(struct spans *s);
/* The first one that ends behind `at`; NULL: there is none. */
const struct span *spans_find(const struct spans *s, uint64_t at);

#endif
