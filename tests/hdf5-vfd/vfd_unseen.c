/* A module that brings DeltaFS and HDF5 with it: see vfd_load.c. */
#include <stdio.h>
#include <deltafs/deltafs_fileindex.h>
#include <hdf5.h>

int index_file(const char *path);

int index_file(const char *path)
{
    deltafs_options *o;
    int status = H5open() < 0 ? DELTAFS_ERR_IO : deltafs_options_create(&o);

    if (status != DELTAFS_OK)
        return status;
    status = deltafs_options_set(o, "key", "/no/such");
    if (status == DELTAFS_OK)
        status = deltafs_index_closed(path, o);
    if (status != DELTAFS_OK)
        fprintf(stderr, "%s\n", deltafs_errmsg(NULL));
    deltafs_options_destroy(o);
    return status;
}
