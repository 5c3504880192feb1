/* What the parts of libdeltafs_romio that are not ROMIO's share. */
#ifndef DELTAFS_OVERLAY_H
#define DELTAFS_OVERLAY_H

#include <mpi.h>

/* Whether `fh` was the last MPI_File that this thread has freed, and is not in use again. */
int overlay_is_freed(MPI_File fh);

/* Call the error handler of `fh`, or with MPI_FILE_NULL that of files that are not open; returns what it makes of the
 * code. */
int overlay_call_handler(MPI_File fh, int error_code);

#endif
