/* Public structs that begin with struct_size, the size that the caller knows (convention 7 of deltafs.h). */
#ifndef DELTAFS_BASE_SIZED_H
#define DELTAFS_BASE_SIZED_H

#include "base/error.h"

/* Fill the caller's struct `to` from `from`, which has `size` bytes. `call` is for the message. */
int sized_fill(void *to, const void *from, size_t size, const char *call, struct error *e);

/* Copy the caller's struct `from` to `to`, which has `size` bytes; members that the caller does not know become 0. */
int sized_take(void *to, const void *from, size_t size, const char *call, struct error *e);

#endif
