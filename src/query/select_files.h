/* Selecting rows of files through an index over them. The files have no blocks to be looked at: their rows become
 * batches of records. What a select needs of a manifest (fields and epochs), it gets from the tables of the index. The
 * fields are those that all tables have which are selected from. */
#ifndef DELTAFS_QUERY_SELECT_FILES_H
#define DELTAFS_QUERY_SELECT_FILES_H

#include <deltafs/deltafs_query.h>
#include "directory/format/manifest.h"
#include "fileindex/fileindex_scan.h"
#include "query/expr.h"

struct files_table {
    uint64_t rows;
    size_t *field; /* the numbers of the manifest's fields in its own schema; NULL: it is not selected from */
};

struct select_files {
    deltafs_fileindex *index; /* the caller's */
    struct manifest manifest; /* a partition is a share of a table, that of number 0 the first of the first table */
    struct files_table *table;
    size_t count;
    size_t *first;      /* of each epoch: its first table; and `count` */
    uint64_t unit_rows; /* rows of a share, at most */
    size_t fields;
};

/* The tables in the range (NULL: all) are selected from. `all_fields`: rows have all columns, so they must be the same
 * in all these tables. Destroy it with select_files_destroy. */
int select_files_create(deltafs_fileindex *index, const struct deltafs_range *range, int all_fields,
                        struct select_files **out, struct error *e);
/* NULL is allowed. */
void select_files_destroy(struct select_files *f);

/* The epochs that are in the range: *first <= i < *end. */
void select_files_epochs(const struct select_files *f, const struct deltafs_range *range, uint32_t *first,
                         uint32_t *end);
/* What an index by value is asked about table number `i` from that of the epoch on: the label of its rows, that of its
 * epoch in the index, and how many rows it has there. Returns 0 if that cannot be told. */
int select_files_subject(const struct select_files *f, uint32_t epoch, size_t i, uint64_t *label, uint64_t *indexed,
                         uint64_t *records);
/* The fingerprint of an expression for all columns of that table. Returns 0 if it has none. */
int select_files_print(const struct select_files *f, uint32_t epoch, size_t i, const struct expr *value, uint64_t *out);
/* The share of an epoch's tables that is this partition. Returns 0 if it has none. */
int select_files_part(const struct select_files *f, uint32_t epoch, uint32_t partition, struct table_part *out);

#endif
