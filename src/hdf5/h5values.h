/* Values that only HDF5 can read: of datasets that are compressed, or in places that are no plain list. */
#ifndef DELTAFS_H5VALUES_H
#define DELTAFS_H5VALUES_H

#include "hdf5/h5file.h"

/* Elements `first` to first + rows - 1 of an open dataset, of `row` bytes each, as the file has them. A second
 * dimension is a part of the element. Returns 0, or -1 and what HDF5 says in `why`. */
#define H5_WHY 512
int h5values_get(const struct h5lib *lib, h5_id dataset, size_t row, uint64_t first, uint64_t rows, void *out,
                 char why[static H5_WHY]);

/* An open file, and the datasets that were read so far. Calls of several threads exclude each other, because HDF5 may
 * not be made for threads. */
struct h5values;

/* `library`: as for h5lib_load. `source` is copied; its path and context must stay valid until the close. */
int h5values_open(const char *library, const struct h5source *source, struct h5values **out, struct error *e);
/* h5values_get by the dataset's path in the file. */
int h5values_read(struct h5values *v, const char *dataset, size_t row, uint64_t first, uint64_t rows, void *out,
                  struct error *e);
/* NULL is allowed. */
void h5values_close(struct h5values *v);

#endif
