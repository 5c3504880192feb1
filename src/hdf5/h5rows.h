/* Where an HDF5 file has its rows: for each dataset of keys that a pattern names, the table (deltafs_fileindex.h) that
 * it makes with its siblings.
 *
 * A pattern is a path whose parts are patterns of the shell, each for one name: /Timestep_N/id with a * for N, as
 * h5part's and VPIC's files have it. One that does not begin with '/' stands for any path that ends so: particles, *,
 * id for openPMD's data/100/particles/e/id. Behind a '.' in its last part stands the name of a member, if the dataset
 * is a compound one: /dump_N/particles.id.
 *
 * A table's columns are those of all datasets in the key's group and the groups below it that have as many elements as
 * the key: numbers, texts of a fixed length; members of compound datasets, elements of small arrays and of a second
 * dimension each have a column of their own. The name is the dataset's path below the group, with '.' between its
 * parts. What has no place in a row (references, texts of variable length), has never been written, or is reached by
 * soft or external links, is left out. What is in the file, but not as plain bytes (compressed, say), is an error: it
 * would be missed.
 *
 * The label is the number at the end of the first name of the path, from the root, that is not spelled out in the
 * pattern; else the one that the file's name gives; else that of the first name which is spelled out. */
#ifndef DELTAFS_H5ROWS_H
#define DELTAFS_H5ROWS_H

#include <deltafs/deltafs_fileindex.h>
#include "hdf5/h5lib.h"

struct h5rows {
    size_t count;
    struct deltafs_table **table; /* in the order of their labels */
};

/* The tables of an open file, by the name `path` in messages and for labels. A status, with a message;
 * DELTAFS_ERR_NOT_FOUND if the pattern matches nothing. Free with h5rows_fini. */
int h5rows_read(const struct h5lib *lib, h5_id file, const char *path, const char *pattern, const uint64_t *label,
                struct h5rows *out, char message[H5LIB_MESSAGE_MAX]);
void h5rows_fini(struct h5rows *rows);

/* The same of the file `name`, opened with the property list `fapl` (0: HDF5's default), as `path`. */
int h5rows_of_file(const struct h5lib *lib, const char *name, h5_id fapl, const char *path, const char *pattern,
                   const uint64_t *label, struct h5rows *out, char message[H5LIB_MESSAGE_MAX]);

/* Whether a key is a pattern for HDF5's datasets. */
int h5rows_is_pattern(const char *key);

#endif
