/* Closing; the library indexes what was written then, if its options say so. */
#include "ad_deltafs.h"

void ad_deltafs_close(ADIO_File fd, int *error_code)
{
    const struct ad_deltafs_library *library = ad_deltafs_loaded();
    struct ad_deltafs_file *file = fd->fs_ptr;

    *error_code = MPI_SUCCESS;
    if (!file)
        return;
    fd->fs_ptr = NULL;
    deltafs_logical *handle = file->handle;
    pthread_mutex_destroy(&file->lock);
    free(file);
    *error_code = ad_deltafs_error("ADIOI_DELTAFS_CLOSE", library->logical_close(handle), library->errmsg(NULL));

    /* One rank deletes the file after this, when no other rank uses it any more. */
    if (fd->access_mode & ADIO_DELETE_ON_CLOSE)
        MPI_Barrier(fd->comm);
}
