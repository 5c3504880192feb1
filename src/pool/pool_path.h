/* Paths within a pool, and where things are. */
#ifndef DELTAFS_POOL_PATH_H
#define DELTAFS_POOL_PATH_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "pool/pool_protocol.h"

/* A path from the root, "/a/b", without ".", ".." and what else is not needed; ".." of the root is the root. `out` gets
 * the text with a zero, and *n its length. */
int pool_path_normalise(const char *path, char out[POOL_PATH_MAX + 1], size_t *n, struct error *e);
/* Whether it is as pool_path_normalise makes it. */
int pool_path_is_normal(const char *path, size_t n);

/* Where the name begins; the length of the folder's path is that, less one, but the root's is 1. Not for the root. */
size_t pool_path_name(const char *path, size_t n);
static inline size_t pool_path_parent(const char *path, size_t n)
{
    size_t name = pool_path_name(path, n);

    return name > 1 ? name - 1 : 1;
}

/* Which of `servers` has the name. */
uint32_t pool_owner(const char *path, size_t n, uint32_t servers);
uint32_t pool_chunk_owner(uint64_t id, uint64_t chunk, uint32_t servers);

#endif
