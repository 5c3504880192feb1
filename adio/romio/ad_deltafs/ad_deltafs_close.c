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
    int is_deleted = (fd->access_mode & ADIO_DELETE_ON_CLOSE) != 0;
    int status = is_deleted ? library->logical_close(handle) : library->mpi_logical_close(handle);
    *error_code = ad_deltafs_error("ADIOI_DELTAFS_CLOSE", status, library->logical_errmsg(NULL));

    /* One rank deletes the file after this, and the others shall be done with it by then. */
    if (is_deleted)
        MPI_Barrier(fd->comm);
}
