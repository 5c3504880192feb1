/* MPI_File_set_size. */
#include "ad_deltafs.h"

void ad_deltafs_resize(ADIO_File fd, ADIO_Offset size, int *error_code)
{
    int status = ad_deltafs_loaded()->logical_truncate(ad_deltafs_enter_all(fd), (uint64_t)size);

    *error_code = ad_deltafs_last_error("ADIOI_DELTAFS_RESIZE", status);
    ad_deltafs_leave(fd);
}
