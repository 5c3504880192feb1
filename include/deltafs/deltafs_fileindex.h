/* DeltaFS in C: indexes over files that hold rows. The files stay as they are. An index records where the rows of each
 * key are: in which files, and at which row numbers. So a program can read the rows of one key with a few reads.
 *
 * Words
 *  - A source file is a file with rows: a plain file or a logical file (deltafs_logical.h).
 *  - A table is the part of a source file that holds one timestep: its label, its number of rows and its columns. A
 *    stream of fixed-size records is one table. An HDF5 file may have many tables.
 *  - A column says where in the source file each row has one of its values. One column is the key.
 *  - An index covers any number of source files. It is a directory of DeltaFS (deltafs.h) that maps keys to numbers of
 *    rows. Its text file SOURCES lists what was indexed.
 *
 * An index does not copy a source file. If the file changes after it was indexed, a query returns DELTAFS_ERR_CHANGED
 * instead of its rows, until it is indexed again. A change that preserves size and mtime is not detected. But a query
 * checks that each row that it reads has the key that was asked for.
 *
 * The conventions of deltafs.h hold. deltafs_mpi.h has the collective way to index. */
#ifndef DELTAFS_FILEINDEX_H
#define DELTAFS_FILEINDEX_H

#include <deltafs/deltafs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The tables of a source file ---- */

/* A part of a column: rows `first` to first + rows - 1. The first of them is at `offset` of the source file. */
struct deltafs_piece {
    uint64_t first;
    uint64_t rows;
    uint64_t offset;
};

/* Where the values of one column are stored. Without pieces, the value of row i is at offset + i * stride of the source
 * file. With pieces, it is at offset + (i - first) * stride of the piece that has the row. The pieces are in the order
 * of their rows and cover all rows of the table.
 *
 * With `dataset`, the path of an HDF5 dataset in the file, HDF5 reads the values (they are compressed, for example). An
 * element of the dataset, with its second dimension if there is one, has `stride` bytes; the value is at `offset` of
 * it. With `constant`, all rows have the value at that address. Names follow the rules of schemas and are unique within
 * a table. The stride of records is their size; that of an HDF5 dataset is the size of its elements. */
struct deltafs_column {
    const char *name;
    char kind;     /* 'f', 'i', 'u', 'S' or 'V', as in schemas; a key's is 'i' (never negative) or 'u' */
    uint32_t size; /* bytes of a value, as in schemas */
    int is_big_endian;
    uint64_t stride;
    uint64_t offset; /* ignored if there are pieces, or a constant */
    size_t piece_count;
    const struct deltafs_piece *piece;
    const char *dataset;  /* NULL: the values are at these places of the file */
    const void *constant; /* NULL: each row has a value of its own. A key has no constant */
};

struct deltafs_table {
    uint64_t label;   /* the timestep; several tables may have the same */
    const char *name; /* names a table within its source file (a group of an HDF5 file); "" if the file has one only */
    uint64_t rows;
    size_t key; /* which of the columns is the key */
    size_t column_count;
    const struct deltafs_column *column;
};

/* Describe a stream of fixed-size records as a table. `schema` describes a record; its field `key` is the key. The
 * first record begins at offset `skip`; the stream has `size` bytes in all. `path` is for messages. DELTAFS_ERR_SCHEMA:
 * a bad schema, or one with an error bound, or the key is not one of its fields or not an integer. DELTAFS_ERR_SIZE:
 * the bytes behind `skip` are not a whole number of records; the message has the offset of the incomplete one. Free
 * with deltafs_table_destroy. */
DELTAFS_API int deltafs_table_from_schema(const char *path, const char *schema, const char *key, uint64_t skip,
                                          uint64_t size, uint64_t label, struct deltafs_table **out);
DELTAFS_API void deltafs_table_destroy(struct deltafs_table *table);

/* Do the same with the options schema, key, skip and epoch (the label) of `options`. With epoch=auto the label comes
 * from the name of the file, and is 0 if the name has no number. DELTAFS_ERR_OPTION if there is no key or no schema. */
DELTAFS_API int deltafs_table_from_options(const char *path, const deltafs_options *options, uint64_t size,
                                           struct deltafs_table **out);

/* Find the label in a file's name: the last number in its last part, ignoring an ending that is not a number (.h5,
 * .bin). 1200 for "run.3/dump.1200.bin", 48 for "eparticle.48". Returns 1 if there is one. Otherwise returns 0 and does
 * not change *label. */
DELTAFS_API int deltafs_label_from_name(const char *path, uint64_t *label);

/* Read the file deltafs.conf in the folder of `path` (lines NAME=VALUE; see deltafs-index(7)). It sets the options
 * schema, key, skip, padding, epoch and index, but not those that the caller or the environment has set. The index is
 * in that folder. DELTAFS_OK if there is no such file. DELTAFS_ERR_OPTION, _SCHEMA: the message names file and line. */
DELTAFS_API int deltafs_folder_options(const char *path, deltafs_options *options);

/* ---- Indexing ---- */

/* Writes to one index. Any number of source files may be added between open and close. */
typedef struct deltafs_indexer deltafs_indexer;

/* Open an index to add to it. If there is none, the first deltafs_indexer_add creates it. If `index` is NULL, it is the
 * index that belongs to `path`: PATH/keys for a logical file, PATH.keys otherwise. If `index` is given, `path` may be
 * NULL. `options` (NULL: those of the environment) apply as for a directory, but schema, keys, value_size, layout,
 * volumes, commit and index_by are ignored. sync is none unless it is given, because an index can be created again from
 * its files. DELTAFS_ERR_NOT_DELTAFS if something that is not an index is there; _VERSION, _DAMAGED as for
 * deltafs_open. Close with deltafs_indexer_close. */
DELTAFS_API int deltafs_indexer_open(const char *index, const char *path, const deltafs_options *options,
                                     deltafs_indexer **out);

/* Set *has to 1 if the file at `path` is indexed, has not changed since then, and no part of its index is known to be
 * lost; otherwise to 0. Call this before you find out the tables of the file: if the file changes after this call,
 * deltafs_indexer_add returns DELTAFS_ERR_CHANGED. Collective; the path of rank 0 is used. */
DELTAFS_API int deltafs_indexer_has(deltafs_indexer *indexer, const char *path, int *has);

/* Index the file at `path`, which has `n` tables (1 or more). Replaces what the index has for this path. On DELTAFS_OK
 * all tables are in the index, after an error none of them. The ranks read the keys from the file in equal shares.
 * Collective; the arguments of rank 0 are used, and those of the other ranks are ignored.
 *
 * DELTAFS_ERR_INVALID: columns that contradict each other or lie outside the file; the message says which.
 * DELTAFS_ERR_NOT_FOUND, _NOT_DELTAFS: no such file, or neither a plain nor a logical one. DELTAFS_ERR_BUSY as for
 * deltafs_reopen. DELTAFS_ERR_DAMAGED, DELTAFS_ERR_SCHEMA: a damaged file, or a negative key; the message has the
 * offset. DELTAFS_ERR_CHANGED: the file changed since deltafs_indexer_has. */
DELTAFS_API int deltafs_indexer_add(deltafs_indexer *indexer, const char *path, size_t n,
                                    const struct deltafs_table *const *table);

/* Index the file at `path`. `options` describe its rows. If the option key has a '/', it is a pattern for datasets of
 * an HDF5 file (see deltafs-index(7); the options epoch and hdf5 also apply). Otherwise the file has records, as for
 * deltafs_table_from_options. The number of rows that are indexed is added to *rows; `rows` may be NULL. The errors are
 * those of deltafs_indexer_add, and DELTAFS_ERR_NOT_FOUND if the file is not an HDF5 file or has no such datasets. */
DELTAFS_API int deltafs_indexer_add_file(deltafs_indexer *indexer, const char *path, const deltafs_options *options,
                                         uint64_t *rows);

/* Get how much of the file that a call indexes is read by this rank, from 0 to 1. For another thread, while
 * deltafs_indexer_add or deltafs_indexer_add_file runs. */
DELTAFS_API int deltafs_indexer_progress(const deltafs_indexer *indexer, double *share);

/* Index a file that this process has just closed. `options`, and a deltafs.conf beside the file
 * (deltafs_folder_options), describe its rows and name the index. If they name no rows of this file, nothing is
 * indexed, and this is no error. */
DELTAFS_API int deltafs_index_closed(const char *path, deltafs_options *options);

/* Remove a file from the index; its rows are no longer found. `path` is the name in the index, or a path that leads to
 * the file. The file itself may be gone and is not changed. Path NULL: remove all files that no longer exist.
 * *forgotten gets the number of files removed; after an error it is valid on rank 0 only. deltafs_indexer_compact frees
 * their space in the index. The files may be indexed again. Collective; the path of rank 0 is used.
 *
 * DELTAFS_ERR_NOT_FOUND: no such index, or the file is not in it. DELTAFS_ERR_BUSY as for deltafs_reopen.
 * DELTAFS_ERR_CHANGED, with NULL: none of the files exists, which means that the index was probably moved away from
 * them; nothing is removed. */
DELTAFS_API int deltafs_indexer_forget(deltafs_indexer *indexer, const char *path, uint64_t *forgotten);

/* Free the space of files that were indexed again or removed. What is used is copied to a new index, INDEX.compact,
 * which then gets the name of the old one. The answers stay the same, and no source file is needed. *freed gets the
 * number of bytes. A handle that has the old index open for reading finds the rows of the old one, or returns
 * DELTAFS_ERR_CHANGED: then open it again. The new index has the owner, group and modes of the old one. Collective; no
 * rank may index files meanwhile.
 *
 * After an error or a crash there is a complete index at the path. The message says if INDEX.compact is left; nothing
 * needs that, and it can be removed.
 *
 * Indexes by value (deltafs_mpi_index_by) of the rows are removed.
 *
 * DELTAFS_ERR_NOT_FOUND: no such index, or it has no files. DELTAFS_ERR_EXISTS: INDEX.compact is there. _BUSY as for
 * deltafs_reopen, also if a job may be writing an index by value; or the ranks do not see the same files in the index
 * yet. DELTAFS_ERR_CHANGED, _DAMAGED: the indexing of a file did not end, or a part of the index is lost.
 * DELTAFS_ERR_IO also if this user may not keep owner and group; or if the file system cannot exchange two folders, as
 * many network file systems: then the new index stays in INDEX.compact, and a user can rename it. */
DELTAFS_API int deltafs_indexer_compact(deltafs_indexer *indexer, uint64_t *freed);

/* Close and free the handle, also when it returns an error. Collective. */
DELTAFS_API int deltafs_indexer_close(deltafs_indexer *indexer);

/* ---- Queries ---- */

/* An index that is open for reading. Not collective; needs no MPI. */
typedef struct deltafs_fileindex deltafs_fileindex;

/* Open the index at `path`, or the index of the file at `path` (PATH/keys or PATH.keys). DELTAFS_ERR_NOT_FOUND if there
 * is none; _NOT_DELTAFS, _VERSION, _DAMAGED as for deltafs_open. Close with deltafs_fileindex_close. */
DELTAFS_API int deltafs_fileindex_open(const char *path, const deltafs_options *options, deltafs_fileindex **out);
DELTAFS_API int deltafs_fileindex_close(deltafs_fileindex *index);

/* One row of a source file. Valid during the call of deltafs_row_fn. */
struct deltafs_row {
    uint64_t key;
    uint64_t label;
    uint64_t row;       /* its number in the table */
    const char *path;   /* of the source file, as it is reached now */
    const char *table;  /* the table's name */
    const char *schema; /* of the value: all columns of the table without the key */
    const void *value;  /* packed, little-endian */
    size_t size;
};

/* deltafs_fileindex_get and _scan call this function for each row. A return value other than 0 stops the call. */
typedef int (*deltafs_row_fn)(const struct deltafs_row *row, void *arg);

/* Call `fn` for all rows of `key` whose label is in `range` (NULL: all): by label, then in the order in which the files
 * were indexed, then by row. If `fn` returns a value other than 0, the call stops, *stopped gets that value, and the
 * status is DELTAFS_OK. Otherwise *stopped is 0. `stopped` may be NULL.
 *
 * DELTAFS_ERR_NOT_FOUND if there are no such rows. DELTAFS_ERR_CHANGED if no file was ever indexed. The indexing of a
 * file may not have ended (DELTAFS_ERR_CHANGED), or lines of SOURCES may be lost (DELTAFS_ERR_DAMAGED). A file may have
 * changed (DELTAFS_ERR_CHANGED), may be unreadable, or may have another key in that row (DELTAFS_ERR_DAMAGED, or
 * _SCHEMA if that key is negative). Then the rows of the other files are handed out, and the first such error is
 * returned at the end. */
DELTAFS_API int deltafs_fileindex_get(deltafs_fileindex *index, uint64_t key, const struct deltafs_range *range,
                                      deltafs_row_fn fn, void *arg, int *stopped);

/* Call `fn` for all rows whose label is in `range` (NULL: all): by label, then in the order in which the files were
 * indexed, then by row. Rows that the option padding left out of the index are left out. `fn` and `stopped` are as for
 * deltafs_fileindex_get; `fn` may call that with the same handle. About 4 MiB of rows are in memory at a time.
 *
 * The files are read from their start to their end, without looking keys up. DELTAFS_OK also if there are no such rows.
 * Errors are as for deltafs_fileindex_get: the rows of the other files are handed out, and some of the file itself, if
 * it changes during the call; then the first error is returned. */
DELTAFS_API int deltafs_fileindex_scan(deltafs_fileindex *index, const struct deltafs_range *range, deltafs_row_fn fn,
                                       void *arg, int *stopped);

/* Get the labels of the tables that the last deltafs_fileindex_get or deltafs_fileindex_scan of this handle could not
 * read, in rising order. If the answer was complete, there are none. The array belongs to the handle and is valid until
 * the next call. */
DELTAFS_API int deltafs_fileindex_missing(const deltafs_fileindex *index, const uint64_t **label, size_t *count);

/* File operations so far, of the index and the source files. */
DELTAFS_API int deltafs_fileindex_io_stat(const deltafs_fileindex *index, struct deltafs_io_stat *out);

/* One indexed table. */
struct deltafs_table_stat {
    size_t struct_size; /* see convention 7 of deltafs.h */
    const char *path;   /* of the source file, as it is reached now; owned by the handle, as all texts */
    char kind;          /* 'f' a logical file, '-' a plain one */
    const char *table;  /* the table's name */
    uint64_t label;
    uint64_t rows;
    const char *key;    /* the name of the key's column */
    const char *schema; /* of the other columns */
};

/* Table number `i`, in the order of deltafs_fileindex_get. DELTAFS_ERR_INVALID beyond the last. */
DELTAFS_API int deltafs_fileindex_table(deltafs_fileindex *index, size_t i, struct deltafs_table_stat *out);

/* Check the index as deltafs_verify does. Also check that no source file has changed, that each key of the index is in
 * its row, and that SOURCES names all that was indexed. `fn` is called for each damaged place and for each changed
 * file; it may be NULL. Returns the first error. `out` may be NULL. */
DELTAFS_API int deltafs_fileindex_verify(deltafs_fileindex *index, deltafs_damage_fn fn, void *arg,
                                         struct deltafs_verify_counts *out);

/* Get the HDF5 that indexing uses: the library that the option hdf5 names; else that of the process; else the first
 * that is found under HDF5's usual names, which is loaded. *library is what dlsym takes to find HDF5's functions, and
 * H5open was called. `options` may be NULL for the defaults. DELTAFS_ERR_INVALID: no HDF5 is found.
 * DELTAFS_ERR_VERSION: it is older than 1.10. */
DELTAFS_API int deltafs_hdf5_library(const deltafs_options *options, void **library);

#ifdef __cplusplus
}
#endif
#endif
