/* Columns from HDF5's types. */
#ifndef DELTAFS_H5TYPES_H
#define DELTAFS_H5TYPES_H

#include <deltafs/deltafs_fileindex.h>
#include "hdf5/h5lib.h"

/* A table that is being made. Names and pieces are the columns' own. */
struct h5columns {
    size_t count, capacity;
    struct deltafs_column *column;
};

void h5types_fini(struct h5columns *columns);
/* Columns `first` and up are gone. */
void h5types_drop(struct h5columns *columns, size_t first);

/* "NAME.PART", or "PART" if the name is empty; freed by the caller. NULL without memory. */
char *h5types_join(const char *name, const char *part);

/* Adds the columns of an element of this type, which begins `offset` bytes on in a row; their names begin with `name`,
 * and their strides are not set. What has no place in a row is left out. 0, or -1 without memory or with too many
 * columns. */
int h5types_add(const struct h5lib *lib, h5_id type, const char *name, uint64_t offset, struct h5columns *out);

#endif
