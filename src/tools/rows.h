/* Rows of files that are indexed by their keys, for get, info and verify. */
#ifndef DELTAFS_TOOLS_ROWS_H
#define DELTAFS_TOOLS_ROWS_H

#include <time.h>
#include <deltafs/deltafs_fileindex.h>
#include "tools/print.h"

/* The index at `path`, or of the file there; *out is NULL if there is none. On other failures the message is out, and
 * the exit code returned. */
int rows_open(const char *path, deltafs_fileindex **out);

/* Print the rows of `n` keys. */
int rows_get(deltafs_fileindex *k, enum print_format format, const uint64_t *keys, size_t n,
             const struct deltafs_range *range);
void rows_print_stats(const deltafs_fileindex *k, const struct timespec *start);

/* Say which tables are indexed; as a member of a JSON object, or as a table. */
void rows_list(deltafs_fileindex *k, int is_json);

#endif
