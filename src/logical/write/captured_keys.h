/* Keys that a writer has seen go by in what it wrote to a logical file, so that indexing need not read them back. A key
 * is known by where it stands in the writer's data log: there nothing ever changes, whatever is written over the same
 * place of the file later, and by whom. Those that are cut across two writes are not kept, nor those that there is no
 * room for. */
#ifndef DELTAFS_CORE_KEPT_KEYS_H
#define DELTAFS_CORE_KEPT_KEYS_H

#include <deltafs/deltafs_fileindex.h>
#include "base/error.h"
#include "base/private.h"

struct captured_keys;

/* For the keys of a column that is in one piece; `limit` bytes at most. */
int captured_keys_create(const struct deltafs_column *column, uint64_t limit, struct captured_keys **out,
                         struct error *e);
DELTAFS_PRIVATE void deltafs_private_captured_keys_destroy(struct captured_keys *k);
/* `size` bytes were written at `offset` of the file, and stand at `position` of the log, behind all of the calls
 * before. */
void captured_keys_take(struct captured_keys *k, uint64_t offset, const uint8_t *bytes, size_t size, uint64_t position);
/* Keys that there was no room for; UINT64_MAX / 2 of NULL. And the rows that a file of `size` bytes has. */
DELTAFS_PRIVATE uint64_t deltafs_private_captured_keys_missed(const struct captured_keys *k);
DELTAFS_PRIVATE uint64_t deltafs_private_captured_keys_rows(const struct captured_keys *k, uint64_t size);
/* Whether it has that column's keys. */
int captured_keys_are_of(const struct captured_keys *k, const struct deltafs_column *column);
/* The keys of rows `row` on, at most *n, of which the first stands at `position`: one after another, as they were
 * written, *n of them. NULL if that one is not kept; *n then is how many at least are not. */
const uint8_t *captured_keys_find(const struct captured_keys *k, uint64_t row, uint64_t position, uint64_t *n);

#endif
