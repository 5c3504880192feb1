/* Hints: ROMIO's own, and DeltaFS's options as deltafs_NAME. */
#include "ad_deltafs.h"

static const char prefix[] = "deltafs_";

/* Options count when the file is opened. They are kept among the file's hints until then, and checked there: an error
 * here would be lost. */
static void keep_options(ADIO_File fd, MPI_Info users_info)
{
    char key[MPI_MAX_INFO_KEY];
    char value[MPI_MAX_INFO_VAL];
    int keys = 0;
    int has_value;

    MPI_Info_get_nkeys(users_info, &keys);
    for (int i = 0; i < keys; i++) {
        MPI_Info_get_nthkey(users_info, i, key);
        if (strncmp(key, prefix, sizeof prefix - 1) != 0)
            continue;
        ADIOI_Info_get(users_info, key, sizeof value - 1, value, &has_value);
        if (has_value)
            ADIOI_Info_set(fd->info, key, value);
    }
}

void ad_deltafs_set_info(ADIO_File fd, MPI_Info users_info, int *error_code)
{
    ADIOI_GEN_SetInfo(fd, users_info, error_code);
    if (*error_code == MPI_SUCCESS && users_info != MPI_INFO_NULL && !fd->fs_ptr)
        keep_options(fd, users_info);
}
