/* A window on a file that is read from its start to its end: what is asked for comes out of a longer read. */
#ifndef DELTAFS_IO_WINDOW_H
#define DELTAFS_IO_WINDOW_H

#include "base/buffer.h"
#include "io/io.h"

struct window {
    size_t ahead; /* bytes to read at once, at least */
    uint64_t offset;
    size_t length; /* bytes it holds, from `offset` on */
    struct buffer bytes;
};

/* `n` bytes at `offset`; what is read ahead ends at `end`. *out is valid until the next call. */
int window_read(struct window *w, struct io_file *file, uint64_t end, uint64_t offset, size_t n, const uint8_t **out,
                struct error *e);
/* Let go of its memory; it can be used again. */
void window_fini(struct window *w);

#endif
