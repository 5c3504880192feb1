# DELTAFS_OMPIO: whether the components for Open MPI's MPI-IO can be built; they need its internal headers.
#
# Call it after DELTAFS_MPI. Sets OMPIO_CFLAGS and OMPIO_LIBS, the conditional HAVE_OMPIO, and ompio_how for the summary.
AC_DEFUN([DELTAFS_OMPIO], [
AC_REQUIRE([DELTAFS_MPI])
have_ompio=no
ompio_how="not built"
AS_IF([test "x$with_mpi" != xno], [
  deltafs_save_CFLAGS=$CFLAGS
  deltafs_save_LIBS=$LIBS
  CFLAGS="$CFLAGS $MPI_CFLAGS"
  ompio_how="not built: the MPI is not Open MPI"
  AC_MSG_CHECKING([for Open MPI's internal headers])
  AC_COMPILE_IFELSE([AC_LANG_SOURCE([[#include <mpi.h>
#ifndef OPEN_MPI
#error not Open MPI
#endif]])],
    [LIBS="-lmca_common_ompio $LIBS $MPI_LIBS -lopen-pal"
     AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <ompi_config.h>
#include <ompi/mca/common/ompio/common_ompio.h>
#include <ompi/mca/fs/base/base.h>]],
        [[return OMPI_MAJOR_VERSION != 4 || OMPI_MINOR_VERSION != 1 ||
           mca_common_ompio_file_write(0, 0, 0, 0, 0) == MCA_IO_BASE_V_2_0_0 + opal_info_dup(0, 0);]])],
       [have_ompio=yes
        ompio_how="components for Open MPI, built"
        OMPIO_CFLAGS=`echo "$MPI_CFLAGS" | $SED 's/-I/-isystem /g'`
        OMPIO_LIBS="-lmca_common_ompio $MPI_LIBS -lopen-pal"],
       [ompio_how="not built: Open MPI's internal headers are not installed (Debian: libopenmpi-dev has them)"])])
  AC_MSG_RESULT([$have_ompio])
  CFLAGS=$deltafs_save_CFLAGS
  LIBS=$deltafs_save_LIBS
])
AC_SUBST([OMPIO_CFLAGS])
AC_SUBST([OMPIO_LIBS])
AM_CONDITIONAL([HAVE_OMPIO], [test "$have_ompio" = yes])
])
