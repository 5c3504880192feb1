/* Rows by column, in memory. */
#ifndef DELTAFS_TOOLS_EXPORT_BLOCK_H
#define DELTAFS_TOOLS_EXPORT_BLOCK_H

#include "tools/export.h"

struct export_part {
    uint8_t *bytes; /* of one column */
    size_t used, room;
    /* Before each cell come 4 bytes with its size, and a text ends before its first zero. Set after export_block_init;
     * needed if the column's size is 0. */
    int has_sizes;
};

struct export_block {
    struct export_part *part; /* for each column */
    size_t rows, bytes;       /* in it now */
};

int export_block_init(struct export_block *b, const struct export *x);
int export_block_add(struct export_block *b, const struct export *x, const struct deltafs_record *row, size_t count);
void export_block_clear(struct export_block *b, const struct export *x);
void export_block_fini(struct export_block *b, const struct export *x);

#endif
