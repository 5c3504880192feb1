/* Scanning the tables of an index: their rows as they are in the source files, block by block. */
#ifndef DELTAFS_FILEINDEX_FILEINDEX_SCAN_H
#define DELTAFS_FILEINDEX_FILEINDEX_SCAN_H

#include <deltafs/deltafs_fileindex.h>
#include "base/error.h"

/* What is to be read of a table. */
struct table_part {
    size_t table;          /* its number, as in deltafs_fileindex_table */
    uint64_t from, end;    /* rows */
    size_t count;          /* of the values of a row, in their order: */
    const size_t *field;   /* their numbers in the table's schema; NULL: all fields, in its order */
    const uint8_t *wanted; /* for each of them; NULL: all. The bytes of the others are 0 */
};

/* Call `fn` for the rows in their order, but not those that the option padding leaves out. The schema of a row is the
 * table's, whatever the value has. After an error some rows may have been handed out. */
int fileindex_scan_part(deltafs_fileindex *k, const struct table_part *p, deltafs_row_fn fn, void *arg, int *stop,
                        struct error *e);
/* The same for `n` rows of the part alone, in rising order. Those that are near to each other are read together. */
int fileindex_scan_rows(deltafs_fileindex *k, const struct table_part *p, const uint64_t *row, size_t n,
                        deltafs_row_fn fn, void *arg, int *stop, struct error *e);
/* An error if the rows of a table cannot be read, since its file is not as it was indexed. */
int fileindex_check_table(deltafs_fileindex *k, size_t table, struct error *e);

/* How many tables there are; and the number of the one that was indexed as the i-th of them. */
size_t fileindex_tables(const deltafs_fileindex *k);
size_t fileindex_table_indexed(const deltafs_fileindex *k, size_t i);
/* The number of a table's epoch, and how many rows it has without those that the option padding leaves out. A file that
 * is indexed again keeps that epoch if its keys are the same in the same rows, though it may have other values. Returns
 * 0 if the index has lost them. */
int fileindex_table_epoch(const deltafs_fileindex *k, size_t table, uint64_t *sequence, uint64_t *records);
/* A number for `what`, and for the table's file as it was indexed: another one after the file was written to and
 * indexed again. */
uint64_t fileindex_table_print(const deltafs_fileindex *k, size_t table, uint64_t what);

/* Whether two handles, of the same index, see the same tables. */
int fileindex_is_same(const deltafs_fileindex *a, const deltafs_fileindex *b);
/* An error if not all rows that were indexed are known: no file was ever indexed, or lines of SOURCES are lost, or the
 * indexing of a file did not end. */
int fileindex_check(const deltafs_fileindex *k, struct error *e);
/* The directory of the index, owned by the handle; its path; and the option hdf5. */
deltafs_dir *fileindex_dir(const deltafs_fileindex *k);
const char *fileindex_path(const deltafs_fileindex *k);
const char *fileindex_hdf5(const deltafs_fileindex *k);

#endif
