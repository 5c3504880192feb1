/* Closing. */
#include "ad_deltafs.h"

void ad_deltafs_close(ADIO_File fd, int *error_code)
{
    const struct ad_deltafs_library *library = ad_deltafs_loaded();
    deltafs_logical *handle = ad_deltafs_handle(fd);

    *error_code = MPI_SUCCESS;
    if (!handle)
        return;
    fd->fs_ptr = NULL;
    int status = library->logical_close(handle);
    *error_code = ad_deltafs_error("ADIOI_DELTAFS_CLOSE", status, library->logical_errmsg(NULL));

    /* One rank deletes the file after this, and the others shall be done with it by then. */
    if (fd->access_mode & ADIO_DELETE_ON_CLOSE)
        MPI_Barrier(fd->comm);
}
