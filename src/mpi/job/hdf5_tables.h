/* The tables of an HDF5 file that a program of many ranks has written through MPI-IO, as one of them reads it. */
#ifndef DELTAFS_MPI_HDF5_TABLES_H
#define DELTAFS_MPI_HDF5_TABLES_H

#include "base/error.h"
#include "hdf5/h5rows.h"

/* Whether what the logical file at `path` begins with is HDF5's. */
int hdf5_tables_is(const char *path);

/* The tables of the logical file at `path`, by the HDF5 that this process has, which opens it through its MPI-IO
 * driver, alone. `label` as for h5rows_read. DELTAFS_ERR_NOT_FOUND if `pattern` fits nothing. Local. */
int hdf5_tables_read(const char *path, const char *pattern, const uint64_t *label, struct h5rows *out, struct error *e);

#endif
