/* The driver's table. */
#include "ad_deltafs.h"

struct ADIOI_Fns_struct ADIO_DELTAFS_operations = {
    .ADIOI_xxx_Open = ad_deltafs_open,
    .ADIOI_xxx_OpenColl = ad_deltafs_open_coll,
    .ADIOI_xxx_ReadContig = ad_deltafs_read_contig,
    .ADIOI_xxx_WriteContig = ad_deltafs_write_contig,
    .ADIOI_xxx_ReadStridedColl = ad_deltafs_read_coll,
    .ADIOI_xxx_WriteStridedColl = ad_deltafs_write_strided, /* each rank writes its own extents */
    .ADIOI_xxx_SeekIndividual = ADIOI_GEN_SeekIndividual,
    .ADIOI_xxx_Fcntl = ad_deltafs_fcntl,
    .ADIOI_xxx_SetInfo = ad_deltafs_set_info,
    .ADIOI_xxx_ReadStrided = ad_deltafs_read_strided,
    .ADIOI_xxx_WriteStrided = ad_deltafs_write_strided,
    .ADIOI_xxx_Close = ad_deltafs_close,
    .ADIOI_xxx_IreadContig = ad_deltafs_iread_contig,
    .ADIOI_xxx_IwriteContig = ad_deltafs_iwrite_contig,
    .ADIOI_xxx_ReadDone = ADIOI_FAKE_IODone,
    .ADIOI_xxx_WriteDone = ADIOI_FAKE_IODone,
    .ADIOI_xxx_ReadComplete = ADIOI_FAKE_IOComplete,
    .ADIOI_xxx_WriteComplete = ADIOI_FAKE_IOComplete,
    .ADIOI_xxx_IreadStrided = ad_deltafs_iread_strided,
    .ADIOI_xxx_IwriteStrided = ad_deltafs_iwrite_strided,
    .ADIOI_xxx_Flush = ad_deltafs_flush,
    .ADIOI_xxx_Resize = ad_deltafs_resize,
    .ADIOI_xxx_Delete = ad_deltafs_delete,
    .ADIOI_xxx_Feature = ad_deltafs_feature,
    .fsname = "DELTAFS: logs of each rank's own",
    .ADIOI_xxx_IreadStridedColl = ad_deltafs_iread_strided,
    .ADIOI_xxx_IwriteStridedColl = ad_deltafs_iwrite_strided,
    .ADIOI_xxx_SetLock = ad_deltafs_set_lock,
};
