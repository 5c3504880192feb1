/* Keys that a writer captures from its own writes to a logical file, so that indexing need not read them back. A
 * captured key is identified by its position in the writer's data log, which never changes, even when the file's bytes
 * are overwritten later. Keys that span two writes, and keys beyond the memory limit, are not captured. */
#ifndef DELTAFS_LOGICAL_CAPTURED_KEYS_H
#define DELTAFS_LOGICAL_CAPTURED_KEYS_H

#include <deltafs/deltafs_fileindex.h>
#include "base/error.h"
#include "base/private.h"

struct captured_keys;

/* Capture the keys of a contiguous column; at most `limit` bytes. */
int captured_keys_create(const struct deltafs_column *column, uint64_t limit, struct captured_keys **out,
                         struct error *e);
DELTAFS_PRIVATE void deltafs_private_captured_keys_destroy(struct captured_keys *k);
/* Capture from a write of `size` bytes at `offset` of the file, logged at `position`. Positions rise from call to
 * call. */
void captured_keys_take(struct captured_keys *k, uint64_t offset, const uint8_t *bytes, size_t size, uint64_t position);
/* The number of keys that were not captured (UINT64_MAX / 2 for NULL); the rows of a file of `size` bytes. */
DELTAFS_PRIVATE uint64_t deltafs_private_captured_keys_missed(const struct captured_keys *k);
DELTAFS_PRIVATE uint64_t deltafs_private_captured_keys_rows(const struct captured_keys *k, uint64_t size);
/* Whether the captured keys are those of this column. */
int captured_keys_are_of(const struct captured_keys *k, const struct deltafs_column *column);
/* The captured keys from row `row` on, whose first is at `position`: contiguous, as written; *n is the maximum and gets
 * the number. NULL if the first is not captured; *n then gets how many at least are not. */
const uint8_t *captured_keys_find(const struct captured_keys *k, uint64_t row, uint64_t position, uint64_t *n);

#endif
