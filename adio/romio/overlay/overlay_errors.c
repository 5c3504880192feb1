/* Errors of the ROMIO in libdeltafs_romio, as the MPICH that it is loaded into has them. This file takes the place of
 * ROMIO's mpi-io/glue/mpich/mpio_err.c.
 *
 * Error codes are made by libmpich's own MPIR_Err_create_code (MPIO_Err_create_code is defined to be that). Error
 * handlers stay with libmpich, too: its functions for them look into the MPI_File, which is laid out as its own are, as
 * both are of one version. That is checked (overlay_start.c). */
#include "adio.h"
#include "overlay.h"

int MPIO_Err_return_file(MPI_File fh, int error_code)
{
    /* MPI_File_close reports what went wrong after the MPI_File is gone, and its error handler with it. */
    if (fh != MPI_FILE_NULL && overlay_is_freed(fh))
        return error_code;
    return overlay_call_handler(fh, error_code);
}

int MPIO_Err_return_comm(MPI_Comm comm, int error_code)
{
    PMPI_Comm_call_errhandler(comm, error_code);
    return error_code;
}
