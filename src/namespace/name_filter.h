/* A Bloom filter over keys of names: whether a name may have been committed by this writer. In a folder that it has
 * created itself, no other writer has any, so that creating new names there reads nothing. */
#ifndef DELTAFS_NAMESPACE_NAME_FILTER_H
#define DELTAFS_NAMESPACE_NAME_FILTER_H

#include "base/error.h"

struct name_filter {
    uint64_t *line; /* of 8 words: the bits of a key are in one */
    size_t lines;   /* 0: there is no filter, and nothing is in it */
};

/* With about `bytes` of memory: ten bits for each key make one in a hundred answers wrong. */
int name_filter_init(struct name_filter *f, size_t bytes, struct error *e);
void name_filter_fini(struct name_filter *f);
void name_filter_add(struct name_filter *f, uint64_t key);
/* The key is added soon: have the processor fetch its line. */
void name_filter_prefetch(const struct name_filter *f, uint64_t key);
/* Whether the key may have been added; 0: it has not. */
int name_filter_has(const struct name_filter *f, uint64_t key);

#endif
