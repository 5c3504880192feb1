/* Particles as HDF5 files: one subfile's records, or what a directory has, encoded by h5_image.h. */
#ifndef DELTAFS_H5_PARTICLES_H
#define DELTAFS_H5_PARTICLES_H

#include <deltafs/deltafs.h>
#include "h5_image.h"

/* A file with the dataset `trajectory`: the records of one key, a compound of `epoch`, the label, and the schema's
 * fields; without a schema, of `epoch` and `value`, opaque; or if values have different sizes, of `epoch`, `offset` and
 * `size`, which are in the dataset `values`. Computed columns are datasets beside it. Returns a status; without memory
 * for the file image->is_lacking is set. */
int h5_trajectory(deltafs_dir *dir, const char *path, const deltafs_records *records, struct h5_bytes *image);

/* A file with a dataset `epochs` of all epochs (label, records, bytes_raw, bytes_stored), and a group for each, named
 * by its label, with the same as attributes; in it the dataset `records`, of `key` and what trajectories have, and
 * datasets of computed columns, as long as all of that takes no more than `bytes_max` bytes of memory. */
int h5_description(deltafs_dir *dir, const char *path, uint64_t bytes_max, struct h5_bytes *image);

#endif
