if BUILD_AD_DELTAFS

AM_CPPFLAGS += -I$(top_srcdir)/adio/ad_deltafs

noinst_HEADERS +=                               \
    adio/ad_deltafs/ad_deltafs.h                \
    adio/ad_deltafs/deltafs/deltafs.h           \
    adio/ad_deltafs/deltafs/deltafs_logical.h   \
    adio/ad_deltafs/deltafs/deltafs_mpi.h

romio_other_sources +=                          \
    adio/ad_deltafs/ad_deltafs.c                \
    adio/ad_deltafs/ad_deltafs_access.c         \
    adio/ad_deltafs/ad_deltafs_close.c          \
    adio/ad_deltafs/ad_deltafs_delete.c         \
    adio/ad_deltafs/ad_deltafs_error.c          \
    adio/ad_deltafs/ad_deltafs_fcntl.c          \
    adio/ad_deltafs/ad_deltafs_features.c       \
    adio/ad_deltafs/ad_deltafs_flush.c          \
    adio/ad_deltafs/ad_deltafs_hints.c          \
    adio/ad_deltafs/ad_deltafs_library.c        \
    adio/ad_deltafs/ad_deltafs_nonblocking.c    \
    adio/ad_deltafs/ad_deltafs_open.c           \
    adio/ad_deltafs/ad_deltafs_read.c           \
    adio/ad_deltafs/ad_deltafs_resize.c         \
    adio/ad_deltafs/ad_deltafs_threads.c        \
    adio/ad_deltafs/ad_deltafs_tiles.c          \
    adio/ad_deltafs/ad_deltafs_write.c

endif BUILD_AD_DELTAFS
