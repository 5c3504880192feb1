/* What ROMIO may count on. */
#include "ad_deltafs.h"

int ad_deltafs_feature(ADIO_File fd, int feature)
{
    (void)fd;
    switch (feature) {
    case ADIO_SCALABLE_OPEN:   /* all ranks open it together, at once */
    case ADIO_SCALABLE_RESIZE: /* the same */
    case ADIO_ATOMIC_MODE:
        return 1;
    case ADIO_SHARED_FP:
#ifdef ROMIO_UFS
        return 1; /* in a plain file */
#else
        return 0;
#endif
    case ADIO_LOCKS:               /* atomic mode is the library's */
    case ADIO_DATA_SIEVING_WRITES: /* a log is not read to be written */
    case ADIO_TWO_PHASE:
    default:
        return 0;
    }
}

/* ROMIO does not ask for locks where ADIO_LOCKS is 0. A caller that does must not believe that it has one. */
int ad_deltafs_set_lock(ADIO_File fd, int cmd, int type, ADIO_Offset offset, int whence, ADIO_Offset len)
{
    (void)fd, (void)cmd, (void)type, (void)offset, (void)whence, (void)len;
    return MPIO_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, "ADIOI_DELTAFS_SETLOCK", __LINE__,
                                MPI_ERR_UNSUPPORTED_OPERATION, "**fileopunsupported", 0);
}
