/* Reads at many places. As long as each is quick (the page cache has it), they are made one after the other; once one
 * was slow, the others go out in parallel, by a bounded number of threads, which are started when they are first needed
 * and stay. */
#ifndef DELTAFS_STORE_FETCH_H
#define DELTAFS_STORE_FETCH_H

#include "store/io.h"

struct fetch {
    struct io_file *file;
    uint64_t offset;
    size_t length;
    uint8_t *bytes; /* room for `length`; the caller's */
    int is_bad;     /* it could not be read; reading it again tells why */
};

struct fetcher;

/* With at most `threads` threads beside the caller's; 0: none. */
int fetcher_create(uint32_t threads, struct fetcher **out, struct error *e);
/* NULL is fine. */
void fetcher_destroy(struct fetcher *f);

void fetcher_run(struct fetcher *f, struct fetch *fetches, size_t n);

#endif
