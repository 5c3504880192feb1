/* The HDF5 that indexes use, for programs that want to use the same. */
#include <deltafs/deltafs_fileindex.h>
#include "base/options.h"
#include "hdf5/h5lib.h"

int deltafs_hdf5_library(const deltafs_options *options, void **library)
{
    struct error own = {0};
    deltafs_options *defaults = NULL;
    struct h5lib lib;

    if (!library)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_hdf5_library: library must be given");
    int status = options ? DELTAFS_OK : error_of_call(deltafs_options_create(&defaults), &own);
    if (status == DELTAFS_OK)
        status = h5lib_load(&lib, deltafs_private_options_text(options ? options : defaults, OPTION_HDF5), &own);
    if (status == DELTAFS_OK)
        *library = lib.library;
    deltafs_options_destroy(defaults);
    return error_of_thread(status, &own);
}
