/* DeltaFS in C: keys inside files. Files that hold rows, and a column of keys among them, stay as they are; beside them
 * an index records which row of which file has each key, so that a key's rows come back in a few reads.
 *
 * Words
 *  - A source is a file with rows: a plain file, or a logical file (deltafs_logical.h).
 *  - A table is what of a source makes one timestep: its label, the number of its rows, and its columns. A stream of
 *    fixed-size records is one table; an HDF5 file may have many.
 *  - A column says where in the source each row has one of its values.
 *  - An index covers any number of sources: it is a directory of DeltaFS (deltafs.h), whose keys are the rows'
 *    keys and whose values are the rows' numbers, and in it the text file SOURCES, which says what was indexed.
 *
 * A source is not copied. If it is written to after it was indexed, that is noticed, and its rows are not handed out
 * until it is indexed again (DELTAFS_ERR_CHANGED). Each row that is read is checked to have the key that was asked for.
 *
 * The conventions of deltafs.h hold. deltafs_mpi.h has the collective way to index. */
#ifndef DELTAFS_FILEINDEX_H
#define DELTAFS_FILEINDEX_H

#include <deltafs/deltafs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What a source has ---- */

/* Rows first .. first + rows - 1 of a column stand from `offset` of the source on. */
struct deltafs_piece {
    uint64_t first;
    uint64_t rows;
    uint64_t offset;
};

/* Where the values of one column stand: that of row i at offset + i * stride of the source; or, if there are pieces, at
 * offset + (i - first) * stride of the piece that has it. Pieces are in the order of their rows, each begins where the
 * one before ends, and together they have all rows of the table. Names are those of schemas; within a table each has
 * its own. A stream of records of 48 bytes has columns with a stride of 48; an HDF5 dataset's is its element's size. */
struct deltafs_column {
    const char *name;
    char kind;     /* 'f', 'i', 'u', 'S' or 'V', as in schemas; a key's is 'i' (never negative) or 'u' */
    uint32_t size; /* bytes of a value, as in schemas */
    int is_big_endian;
    uint64_t stride;
    uint64_t offset; /* not used if there are pieces */
    size_t piece_count;
    const struct deltafs_piece *piece;
};

struct deltafs_table {
    uint64_t label;   /* the timestep; tables of different sources, and of one, may have the same */
    const char *name; /* which of a source's tables this is (a group of an HDF5 file, say); "" if there is but one */
    uint64_t rows;
    size_t key; /* which of the columns is the key */
    size_t column_count;
    const struct deltafs_column *column;
};

/* The table that a stream of fixed-size records is: `schema` describes a record, of which the field `key` is the key;
 * `skip` bytes stand before the first one; the stream has `size` bytes in all. `path` is for messages.
 * DELTAFS_ERR_SCHEMA: no such schema, or no such field, or one that is no integer; DELTAFS_ERR_SIZE: what is behind
 * `skip` is no whole number of records, the message says at which offset the last one is cut. Free with
 * deltafs_table_destroy. The message is that of deltafs_errmsg(NULL). */
DELTAFS_API int deltafs_table_from_schema(const char *path, const char *schema, const char *key, uint64_t skip,
                                          uint64_t size, uint64_t label, struct deltafs_table **out);
DELTAFS_API void deltafs_table_destroy(struct deltafs_table *table);

/* The same as the options schema, key, skip and epoch have it; with epoch=auto the label is that of the file's name, or
 * 0. DELTAFS_ERR_OPTION if there is no key or no schema. */
DELTAFS_API int deltafs_table_from_options(const char *path, const deltafs_options *options, uint64_t size,
                                           struct deltafs_table **out);

/* The label that a file's name gives: the last number in its last part, of which an ending that is not a number (.h5,
 * .bin) does not count: 1200 for "run.3/dump.1200.bin", 48 for "eparticle.48". 0, and *label as it was, if there is
 * none. */
DELTAFS_API int deltafs_label_from_name(const char *path, uint64_t *label);

/* Take what the file deltafs.conf in the folder of the file at `path` says (lines NAME=VALUE; see deltafs-index(7)) for
 * those of the options schema, key, skip, epoch and index that neither the caller nor the environment has set; a index
 * is one in that folder. No such file: DELTAFS_OK. DELTAFS_ERR_OPTION, _SCHEMA: the message names file and line. */
DELTAFS_API int deltafs_folder_options(const char *path, deltafs_options *options);

/* ---- Indexing ---- */

/* Writes to one index. Between opening and closing it may have any number of sources added. */
typedef struct deltafs_indexer deltafs_indexer;

/* Open an index to add to it; it is made by the first deltafs_indexer_add if there is none. `index` NULL: the
 * one that belongs to `path`, which is PATH/keys if that is a logical file, else PATH.keys. With an index given,
 * `path` may be NULL. Of `options` (NULL: those of the environment) count what those of a directory do, but schema,
 * keys, value_size, place and volumes; sync is none unless it is given: what a power loss takes of an index is noticed,
 * and the index can be made again from its sources. DELTAFS_ERR_NOT_DELTAFS if there is anything else in the
 * index's place, a directory of records too; _VERSION, _DAMAGED as deltafs_open. End with deltafs_indexer_close.
 */
DELTAFS_API int deltafs_indexer_open(const char *index, const char *path, const deltafs_options *options,
                                     deltafs_indexer **out);

/* *has: whether the file at `path` is indexed, was not written to since, and nothing of its part of the index is known
 * to be lost. Call this before you look for the file's tables: if it is written to from here on, deltafs_indexer_add of
 * it gives DELTAFS_ERR_CHANGED, and does not take tables of what it was for those of what it is. Collective; rank 0's
 * path counts. */
DELTAFS_API int deltafs_indexer_has(deltafs_indexer *indexer, const char *path, int *has);

/* Index the file at `path`, which has these `n` tables (1 or more); it replaces what the index has of this path.
 * All of them are found when this returns DELTAFS_OK, none of them after an error. The keys are read from the
 * source, by all ranks in equal shares. Collective; rank 0's arguments count, the others' may be anything.
 * DELTAFS_ERR_INVALID: columns that contradict each other, or are not within the file (the message says which);
 * DELTAFS_ERR_NOT_FOUND, _NOT_DELTAFS: no such file, or neither a plain nor a logical one; DELTAFS_ERR_BUSY as
 * deltafs_reopen; DELTAFS_ERR_DAMAGED, DELTAFS_ERR_SCHEMA, with file and offset: damage of the source, or a negative
 * key; DELTAFS_ERR_CHANGED: written to since the last call on the handle was deltafs_indexer_has of it. */
DELTAFS_API int deltafs_indexer_add(deltafs_indexer *indexer, const char *path, size_t n,
                                    const struct deltafs_table *const *table);

/* Take the file that the index calls `path`, or, if it has none of that name, the one that the path leads to, out
 * of the index; the file need not be there any longer. Its rows are not found by that name from then on, and
 * answers do not say that it is missing. Path NULL: all files that are not there any longer. *forgotten gets how many
 * went, after an error on rank 0 only. Nothing happens to the files; their part of the index stays where it is, unused.
 * They may be indexed again. Collective; rank 0's path counts. DELTAFS_ERR_NOT_FOUND: no such index, or it has no
 * such file; DELTAFS_ERR_BUSY as deltafs_reopen; with NULL, and nothing forgotten then, DELTAFS_ERR_CHANGED: none of
 * the files is there, which looks as if it were the index that had gone from them; or the error of looking for
 * one. */
DELTAFS_API int deltafs_indexer_forget(deltafs_indexer *indexer, const char *path, uint64_t *forgotten);

/* Close and free, whatever is returned. Collective. */
DELTAFS_API int deltafs_indexer_close(deltafs_indexer *indexer);

/* The message of the handle's last failed call; with NULL the calling thread's last without a handle, or of a close. */
DELTAFS_API const char *deltafs_indexer_errmsg(const deltafs_indexer *indexer);

/* ---- Asking ---- */

/* An index that is open for reading. Not collective; needs no MPI. */
typedef struct deltafs_fileindex deltafs_fileindex;

/* Open the index at `path`, or that of the file at `path` (in PATH/keys or PATH.keys). DELTAFS_ERR_NOT_FOUND if
 * there is none; _NOT_DELTAFS, _VERSION, _DAMAGED as deltafs_open. End with deltafs_fileindex_close. */
DELTAFS_API int deltafs_fileindex_open(const char *path, const deltafs_options *options, deltafs_fileindex **out);
DELTAFS_API void deltafs_fileindex_close(deltafs_fileindex *keys); /* NULL is fine */

/* The message of the handle's last failed call; with NULL the calling thread's last without a handle. */
DELTAFS_API const char *deltafs_fileindex_errmsg(const deltafs_fileindex *keys);

/* One row of a source, as deltafs_fileindex_get hands it out; valid during the call. */
struct deltafs_row {
    uint64_t key;
    uint64_t label;
    uint64_t row;       /* its number in the table */
    const char *path;   /* of the source, from where it is now */
    const char *table;  /* its name */
    const char *schema; /* of the value: the table's columns but the key */
    const void *value;  /* packed, little-endian */
    size_t size;
};

/* A return other than 0 ends the call, which returns it. */
typedef int (*deltafs_row_fn)(const struct deltafs_row *row, void *arg);

/* Hand all rows of `key` whose label is in `range` (NULL: all) to `fn`: by label, then in the order in which the
 * sources were indexed, then by row. DELTAFS_ERR_NOT_FOUND if there are none; DELTAFS_ERR_CHANGED if the index has
 * never had a source, as nothing is known of it then. A source that cannot be read, or was written to since it was
 * indexed (DELTAFS_ERR_CHANGED), or has another key in that row (DELTAFS_ERR_DAMAGED, or _SCHEMA if that is negative),
 * does not keep the others from being handed out; the first such error is returned at the end. */
DELTAFS_API int deltafs_fileindex_get(deltafs_fileindex *keys, uint64_t key, const struct deltafs_range *range,
                                      deltafs_row_fn fn, void *arg);

/* File operations so far, of the index and the sources. */
DELTAFS_API int deltafs_fileindex_io_stat(const deltafs_fileindex *keys, struct deltafs_io_stat *out);

/* One indexed table. */
struct deltafs_table_stat {
    const char *path;  /* of the source, from where the handle was opened; owned by the handle, as all texts */
    char kind;         /* 'f' a logical file, '-' a plain one */
    const char *table; /* its name */
    uint64_t label;
    uint64_t rows;
    const char *key;    /* the key's column */
    const char *schema; /* of the others */
};

/* Table number `i` in the order of deltafs_fileindex_get; DELTAFS_ERR_INVALID beyond the last. */
DELTAFS_API int deltafs_fileindex_table(deltafs_fileindex *keys, size_t i, struct deltafs_table_stat *out);

/* Check the index (as deltafs_verify), that each source is as it was indexed, and that each key that the index has
 * stands in its row, and that SOURCES names all that was indexed. Damages, and sources that have changed, go to `fn`
 * (may be NULL) with a message. Returns the first error. *rows (may be NULL) gets the rows that were found right. */
DELTAFS_API int deltafs_fileindex_verify(deltafs_fileindex *keys, deltafs_damage_fn fn, void *arg, uint64_t *rows);

#ifdef __cplusplus
}
#endif
#endif
