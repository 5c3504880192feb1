if BUILD_AD_DELTAFS

AM_CPPFLAGS += -I$(top_srcdir)/adio/ad_deltafs

noinst_HEADERS +=                               \
    adio/ad_deltafs/ad_deltafs.h                \
    adio/ad_deltafs/error_class.h               \
    adio/ad_deltafs/deltafs/deltafs.h           \
    adio/ad_deltafs/deltafs/deltafs_logical.h   \
    adio/ad_deltafs/deltafs/deltafs_mpi.h

romio_other_sources +=                          \
    adio/ad_deltafs/ad_deltafs.c                \
    adio/ad_deltafs/ad_deltafs_read_write.c         \
    adio/ad_deltafs/ad_deltafs_library.c        \
    adio/ad_deltafs/error_class.c

endif BUILD_AD_DELTAFS
