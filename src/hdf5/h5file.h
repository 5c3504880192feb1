/* Opening an HDF5 file that is read by a function of the caller's. */
#ifndef DELTAFS_H5FILE_H
#define DELTAFS_H5FILE_H

#include "hdf5/h5lib.h"

struct h5source {
    const char *path; /* for messages */
    uint64_t size;
    /* Read bytes that the file has. Returns a status. */
    int (*read)(void *ctx, uint64_t offset, void *bytes, size_t size, struct error *e);
    void *ctx;
};

/* Whether the file has HDF5's signature: DELTAFS_OK, DELTAFS_ERR_NOT_FOUND, or an error of `read`. */
int h5file_check(const struct h5source *source, struct error *e);

struct h5file {
    h5_id file, driver;
};

/* Open it for reading; `source` must stay valid until h5file_close. */
int h5file_open(const struct h5lib *lib, const struct h5source *source, struct h5file *out, struct error *e);
void h5file_close(const struct h5lib *lib, struct h5file *file);

#endif
