/* One thread at a time has the library's handle of a file. */
#include "ad_deltafs.h"

deltafs_logical *ad_deltafs_enter(ADIO_File fd)
{
    struct ad_deltafs_file *file = fd->fs_ptr;

    pthread_mutex_lock(&file->lock);
    return file->handle;
}

/* After the barrier all ranks are in the call. A thread that holds the lock is in a local call, which ends. */
deltafs_logical *ad_deltafs_enter_all(ADIO_File fd)
{
    const struct ad_deltafs_file *file = fd->fs_ptr;

    if (file->has_threads)
        MPI_Barrier(fd->comm);
    return ad_deltafs_enter(fd);
}

void ad_deltafs_leave(ADIO_File fd)
{
    struct ad_deltafs_file *file = fd->fs_ptr;

    pthread_mutex_unlock(&file->lock);
}
