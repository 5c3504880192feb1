/* Where an HDF5 file has its rows: for each dataset of keys that a pattern matches, the table (deltafs_fileindex.h)
 * that the dataset and its siblings make.
 *
 * A pattern is a path whose parts are shell patterns, each for one name. /Timestep_N/id, with a * for N, matches the
 * files of h5part and VPIC. A pattern that does not begin with '/' matches any path that ends so: particles, *, id
 * (each after the other) match openPMD's data/100/particles/e/id. If the dataset is compound, the last part ends in '.'
 * and the name of a member: /dump_N/particles.id.
 *
 * A table has a column for each dataset in the key's group, and in the groups below it, that has as many elements as
 * the key: numbers, and texts of a fixed length. Members of compound datasets, elements of small arrays and of a second
 * dimension each become a column. A column's name is the dataset's path below the group, with '.' between its parts.
 * Datasets are left out if they have no value per row (references, texts of variable length), were never written, or
 * are reached by soft or external links. Datasets that are not stored as plain bytes (compressed, say) are an error,
 * because their values would be missed.
 *
 * The label is the number at the end of the first name of the path, from the root, that the pattern does not spell out;
 * otherwise the number in the file's name; otherwise that of the first name that the pattern spells out. */
#ifndef DELTAFS_H5ROWS_H
#define DELTAFS_H5ROWS_H

#include <deltafs/deltafs_fileindex.h>
#include "hdf5/h5file.h"

struct h5rows {
    size_t count;
    struct deltafs_table **table; /* in the order of their labels */
};

/* The tables of a file, with this label unless `label` is NULL. DELTAFS_ERR_NOT_FOUND if the pattern matches nothing
 * that has elements. Free with h5rows_fini. */
int h5rows_read(const struct h5lib *lib, const struct h5source *source, const char *pattern, const uint64_t *label,
                struct h5rows *out, struct error *e);
void h5rows_fini(struct h5rows *rows);

#endif
