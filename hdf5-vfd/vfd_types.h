/* Transfers that HDF5 describes by MPI datatypes. */
#ifndef DELTAFS_VFD_TYPES_H
#define DELTAFS_VFD_TYPES_H

#include <mpi.h>
#include "h5fd.h"

/* `count` of `memory_type` at `bytes`, from or to what `file_type` has of the file from `base` on. */
int vfd_types_transfer(struct vfd_file *f, int is_write, uint64_t base, uint8_t *bytes, size_t count,
                       MPI_Datatype memory_type, MPI_Datatype file_type);

#endif
