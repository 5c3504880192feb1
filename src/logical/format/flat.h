/* The index of a session in one file: all batches of all its extent logs, one after another. Made at the close, or by
 * whoever wants to have the file opened faster; readers take it instead of the extent logs. */
#ifndef DELTAFS_LOGICAL_FLAT_H
#define DELTAFS_LOGICAL_FLAT_H

#include "base/buffer.h"
#include "logical/format/session.h"

/* Write it, aside first, and durable if `sync`. */
int flat_write(const struct container *c, struct io *io, const struct session *s, const void *batches, size_t n,
               int sync, struct error *e);
/* The batches behind the `used` bytes that `out` has. DELTAFS_ERR_DAMAGED if the file is not whole and sound;
 * the logs are there still then. */
int flat_read(const struct container *c, struct io *io, const struct session *s, struct buffer *out, size_t *used,
              struct error *e);

#endif
