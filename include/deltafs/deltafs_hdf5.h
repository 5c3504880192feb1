/* DeltaFS in C: HDF5 files as logical files (deltafs_logical.h), for parallel programs that set the driver themselves.
 *
 * A program of one process needs nothing of this: HDF5_DRIVER=deltafs in its environment, or
 * H5Pset_driver_by_name(fapl, "deltafs", "NAME=VALUE ..."), loads the plugin libh5fd_deltafs.so from the folders of
 * HDF5_PLUGIN_PATH. */
#ifndef DELTAFS_HDF5_H
#define DELTAFS_HDF5_H

#include <hdf5.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DELTAFS_API
#define DELTAFS_API __attribute__((visibility("default")))
#endif

/* Open the files of this file access property list by all ranks of `comm` together, as with H5Pset_fapl_mpio. A file
 * that is created is a logical file; an existing one stays what it is. `comm` and `info` are duplicated. Hints named
 * deltafs_NAME are options; for the hint deltafs_atomic (no or yes; see deltafs-hdf5(7)) rank 0's counts. HDF5 must be
 * parallel, and of the version that this library was built with. H5Fdelete with this list is collective, too. Returns
 * 0, or -1 with HDF5's error stack.
 *
 * Each rank writes its own logs. In a collective transfer each rank does its own part and then waits for the others; if
 * one fails, all fail, with its message. If a rank cannot write metadata of HDF5, the next flush and the close fail on
 * all ranks. */
DELTAFS_API herr_t H5Pset_fapl_deltafs(hid_t fapl, MPI_Comm comm, MPI_Info info);

#ifdef __cplusplus
}
#endif
#endif
