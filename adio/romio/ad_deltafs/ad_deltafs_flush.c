/* MPI_File_sync: publish what was written, and see what others have. */
#include "ad_deltafs.h"

void ad_deltafs_flush(ADIO_File fd, int *error_code)
{
    int status = ad_deltafs_loaded()->logical_sync(ad_deltafs_enter_all(fd));

    if (status == DELTAFS_OK)
        fd->dirty_write = 0;
    *error_code = ad_deltafs_last_error("ADIOI_DELTAFS_FLUSH", status);
    ad_deltafs_leave(fd);
}
