#include "io/window.h"

int window_read(struct window *w, struct io_file *file, uint64_t end, uint64_t offset, size_t n, const uint8_t **out,
                struct error *e)
{
    if (offset < w->offset || offset - w->offset > w->length || n > w->length - (offset - w->offset)) {
        uint64_t ahead = n > w->ahead ? n : w->ahead;
        if (offset + ahead > end)
            ahead = end > offset + n ? end - offset : n;
        w->length = 0;
        int status = buffer_reserve(&w->bytes, (size_t)ahead, "reading ahead", e);
        if (status == DELTAFS_OK)
            status = io_file_read(file, offset, w->bytes.bytes, (size_t)ahead, e);
        /* What lies ahead may not be readable while this is. */
        if (status != DELTAFS_OK && status != DELTAFS_ERR_MEMORY && ahead > n) {
            ahead = n;
            status = io_file_read(file, offset, w->bytes.bytes, n, e);
        }
        if (status != DELTAFS_OK)
            return status;
        w->offset = offset;
        w->length = (size_t)ahead;
    }
    *out = w->bytes.bytes + (offset - w->offset);
    return DELTAFS_OK;
}

void window_fini(struct window *w)
{
    buffer_fini(&w->bytes);
    w->length = 0;
}
