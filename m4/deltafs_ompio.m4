# DELTAFS_OMPIO: whether the components for Open MPI's MPI-IO can be built; they need its internal headers.
#
# Call it after DELTAFS_MPI. Sets OMPIO_CFLAGS and OMPIO_LIBS, HAVE_OPEN_MPI_5 (0 or 1), the conditional
# HAVE_OMPIO, and ompio_how for the summary.
AC_DEFUN([DELTAFS_OMPIO], [
AC_REQUIRE([DELTAFS_MPI])
have_ompio=no
HAVE_OPEN_MPI_5=0
ompio_how="not built"
AS_IF([test "x$with_mpi" != xno], [
  deltafs_save_CFLAGS=$CFLAGS
  deltafs_save_LIBS=$LIBS
  # Open MPI 5's headers need PMIx's, and files that packages lack (see the folder).
  deltafs_ompio_cflags="$MPI_CFLAGS `$PKG_CONFIG --cflags pmix 2>/dev/null` -idirafter `cd "$srcdir" && pwd`/adio/ompio/openmpi5"
  CFLAGS="$CFLAGS $deltafs_ompio_cflags"
  ompio_how="not built: the MPI is not Open MPI"
  AC_MSG_CHECKING([for Open MPI's internal headers])
  AC_COMPILE_IFELSE([AC_LANG_SOURCE([[#include <mpi.h>
#ifndef OPEN_MPI
#error not Open MPI
#endif]])],
    [ompio_how="not built: Open MPI's internal headers are not installed (Debian: libopenmpi-dev has them)"
     # Open MPI 4 has OMPIO in a library of its own, Open MPI 5 in libmpi.
     for deltafs_ompio in -lmca_common_ompio ""; do
       LIBS="$deltafs_ompio $deltafs_save_LIBS $MPI_LIBS -lopen-pal"
       AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <ompi_config.h>
#include <ompi/mca/common/ompio/common_ompio.h>
#include <ompi/mca/fs/base/base.h>]],
          [[return OMPI_MAJOR_VERSION +
             mca_common_ompio_file_write(0, 0, 0, 0, 0) == MCA_IO_BASE_V_2_0_0 + opal_info_dup(0, 0);]])],
         [have_ompio=yes
          ompio_how="components for Open MPI, built"
          OMPIO_CFLAGS=`echo "$deltafs_ompio_cflags" | $SED 's/-I/-isystem /g'`
          OMPIO_LIBS="$deltafs_ompio $MPI_LIBS -lopen-pal"
          AS_IF([test -z "$deltafs_ompio"], [HAVE_OPEN_MPI_5=1])
          break])
     done])
  AC_MSG_RESULT([$have_ompio])
  CFLAGS=$deltafs_save_CFLAGS
  LIBS=$deltafs_save_LIBS
])
AC_SUBST([HAVE_OPEN_MPI_5])
AC_SUBST([OMPIO_CFLAGS])
AC_SUBST([OMPIO_LIBS])
AM_CONDITIONAL([HAVE_OMPIO], [test "$have_ompio" = yes])
])
