/* Where an HDF5 file has its rows: for each dataset of keys that a pattern matches, the table (deltafs_fileindex.h)
 * that the dataset and its siblings make. deltafs-index(7) describes patterns, columns and labels. Datasets that are
 * not stored as plain bytes (compressed, say) are an error, because their values would be missed. */
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
