/* Where a dataset's elements are in the file. */
#ifndef DELTAFS_H5PLACE_H
#define DELTAFS_H5PLACE_H

#include "hdf5/h5types.h"

struct h5dataset {
    const struct h5lib *lib;
    h5_id id;
    const char *path, *name; /* of the file and of the dataset, for messages */
    uint64_t user_block;     /* what HDF5's places of chunks lack */
    uint64_t rows, width;    /* its dimensions; one has a width of 1 */
    size_t size;             /* of an element */
};

/* DELTAFS_OK; DELTAFS_ERR_NOT_FOUND if it has one dimension too many, or none. */
int h5place_shape(struct h5dataset *d);

/* Columns `first` and up, whose offsets are those within a row, get their places. DELTAFS_ERR_NOT_FOUND if there are
 * none because nothing was ever written. */
int h5place_set(const struct h5dataset *d, struct h5columns *columns, size_t first, struct error *e);

#endif
