/* Size, atomic mode, space. */
#include "ad_deltafs.h"

void ad_deltafs_fcntl(ADIO_File fd, int flag, ADIO_Fcntl_t *fcntl_struct, int *error_code)
{
    static const char where[] = "ADIOI_DELTAFS_FCNTL";
    const struct ad_deltafs_library *library = ad_deltafs_loaded();
    uint64_t size = 0;
    int status;

    switch (flag) {
    case ADIO_FCNTL_GET_FSIZE:
        status = library->logical_size(ad_deltafs_enter(fd), &size);
        fcntl_struct->fsize = (ADIO_Offset)size;
        break;
    case ADIO_FCNTL_SET_DISKSPACE: /* by all ranks: ROMIO's source is changed to call it so */
        status = library->logical_extend(ad_deltafs_enter_all(fd), (uint64_t)fcntl_struct->diskspace);
        break;
    case ADIO_FCNTL_SET_ATOMICITY:
        status = library->logical_set_atomic(ad_deltafs_enter_all(fd), fcntl_struct->atomicity != 0);
        if (status == DELTAFS_OK)
            fd->atomicity = fcntl_struct->atomicity != 0;
        break;
    default:
        *error_code = MPIO_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, where, __LINE__, MPI_ERR_ARG, "**flag",
                                           "**flag %d", flag);
        return;
    }
    *error_code = ad_deltafs_last_error(where, status);
    ad_deltafs_leave(fd);
}
