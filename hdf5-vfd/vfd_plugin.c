/* What HDF5 asks a plugin that it has loaded: HDF5_DRIVER=deltafs, with HDF5_PLUGIN_PATH naming the folder of
 * libh5fd_deltafs.so. */
#include "h5fd.h"

/* For deltafs doctor. */
DELTAFS_API const char deltafs_driver_version[] = DELTAFS_VERSION;

H5PL_type_t H5PLget_plugin_type(void)
{
    return H5PL_TYPE_VFD;
}

const void *H5PLget_plugin_info(void)
{
    return &vfd_class;
}
