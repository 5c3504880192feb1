# DELTAFS_HDF5: the headers of HDF5 1.14 or later, for the driver, which finds HDF5's functions when it is loaded.
#
# Call it after DELTAFS_MPI. Sets HDF5_DIR, HDF5_CPPFLAGS, HDF5_LIBS and H5LIB_CPPFLAGS, the conditionals WITH_HDF5 and
# WITH_PARALLEL_HDF5, and hdf5_how for the summary. Debian 12's HDF5 is too old: scripts/build-hdf5 builds one.
AC_DEFUN([DELTAFS_HDF5], [
AC_REQUIRE([DELTAFS_MPI])
AC_ARG_WITH([hdf5], [AS_HELP_STRING([--with-hdf5=DIR], [build the HDF5 driver, with the HDF5 (1.14 or later) in DIR])],
  [], [with_hdf5=no])
hdf5_how="not built (--with-hdf5=DIR builds it)"
AS_IF([test "x$with_hdf5" != xno], [
  # Debian has an HDF5 without MPI and one for each MPI, in folders of their own below /usr/lib.
  AS_IF([test ! -f "$with_hdf5/include/H5PLextern.h"],
    [for deltafs_folder in "$with_hdf5"/lib/*/hdf5/serial; do
       AS_IF([test -f "$deltafs_folder/include/H5PLextern.h"], [with_hdf5=$deltafs_folder])
     done])
  AS_IF([test "x$with_hdf5" != xyes],
    [HDF5_DIR=`cd "$with_hdf5" 2>/dev/null && pwd` || AC_MSG_ERROR([--with-hdf5: there is no folder $with_hdf5])
     HDF5_CPPFLAGS="-isystem $HDF5_DIR/include"
     HDF5_LIBS="-L$HDF5_DIR/lib -Wl,-rpath,$HDF5_DIR/lib"
     H5LIB_CPPFLAGS="-DH5LIB_CONFIGURED='\"$HDF5_DIR/lib/libhdf5.so\"'"])
  HDF5_LIBS="$HDF5_LIBS -lhdf5"
  deltafs_save_CPPFLAGS=$CPPFLAGS
  CPPFLAGS="$CPPFLAGS $HDF5_CPPFLAGS $MPI_CFLAGS"
  AC_MSG_CHECKING([whether HDF5 is 1.14 or later])
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <H5PLextern.h>
#include <H5FDdevelop.h>
#if !H5_VERSION_GE(1, 14, 0)
#error too old
#endif]], [[H5FD_class_t c = {.version = H5FD_CLASS_VERSION}; return (int)c.version;]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([the HDF5 driver needs the headers of HDF5 1.14 or later: --with-hdf5=DIR names where it is installed, and scripts/build-hdf5 builds one])])
  AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <H5pubconf.h>
#ifndef H5_HAVE_PARALLEL
#error serial
#endif]])], [hdf5_parallel=yes], [hdf5_parallel=no])
  CPPFLAGS=$deltafs_save_CPPFLAGS
  AS_IF([test $hdf5_parallel = yes],
    [HDF5_CPPFLAGS="$HDF5_CPPFLAGS $MPI_CFLAGS"; hdf5_how="built, in parallel too, with $HDF5_DIR"],
    [hdf5_how="built, with $HDF5_DIR"])
])
AC_SUBST([HDF5_DIR])
AC_SUBST([HDF5_CPPFLAGS])
AC_SUBST([HDF5_LIBS])
AC_SUBST([H5LIB_CPPFLAGS])
AM_CONDITIONAL([WITH_HDF5], [test "x$with_hdf5" != xno])
AM_CONDITIONAL([WITH_PARALLEL_HDF5], [test "x$with_mpi" != xno && test "x$hdf5_parallel" = xyes])
])
