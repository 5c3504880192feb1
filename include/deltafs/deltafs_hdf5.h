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

/* Have the files that are opened with this file access property list opened by all ranks of `comm` together, as with
 * H5Pset_fapl_mpio: an HDF5 file that is made is a logical file, one that is there is what it is. `comm` and `info` are
 * duplicated. Hints named deltafs_NAME are options; and there is deltafs_atomic, no or yes, of which rank 0's counts
 * (see deltafs-hdf5(7)). HDF5 must be parallel, and of the version that this library was built with. H5Fdelete with
 * this list is collective, too. Returns 0, or -1 with HDF5's error stack.
 *
 * Every rank writes its own logs, so a transfer is never gathered by some ranks for others; of a collective one each
 * does its own part, and then waits until all have: what fails on one fails on all, with its message. What a rank
 * cannot write of HDF5's metadata, the next flush and the close tell to all. */
DELTAFS_API herr_t H5Pset_fapl_deltafs(hid_t fapl, MPI_Comm comm, MPI_Info info);

#ifdef __cplusplus
}
#endif
#endif
