/* Deleting: a container is a folder, so it takes more than unlink(2). */
#include "ad_deltafs.h"

void ad_deltafs_delete(const char *filename, int *error_code)
{
    static const char where[] = "ADIOI_DELTAFS_DELETE";
    const char *why;
    const struct ad_deltafs_library *library = ad_deltafs_library(&why);

    if (!library) {
        *error_code = ad_deltafs_error(where, DELTAFS_ERR_MPI, why);
        return;
    }
    int status = library->logical_remove(filename);
    *error_code = ad_deltafs_error(where, status, library->errmsg(NULL));
}
