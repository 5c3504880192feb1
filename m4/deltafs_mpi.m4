# DELTAFS_MPI: how to compile, link and start MPI programs.
#
# Sets MPI_CFLAGS, MPI_LIBS, MPIEXEC, the conditional WITH_MPI, and mpi_how for the
# summary. The flags come from the compiler wrapper, so that one $CC builds libdeltafs without MPI and libdeltafs_mpi
# with it. A compiler that knows MPI by itself (a Cray's cc, CC=mpicc) needs no wrapper.
AC_DEFUN([DELTAFS_MPI], [
AC_ARG_VAR([MPICC], [MPI compiler wrapper, such as mpicc.mpich; configure takes MPI's flags from it])
AC_ARG_VAR([MPIEXEC], [MPI launcher that the tests use, such as mpirun.mpich])
AC_ARG_WITH([mpi], [AS_HELP_STRING([--without-mpi], [build only the core library and the deltafs command])],
  [], [with_mpi=yes])
mpi_how="not built"
AS_IF([test "x$with_mpi" != xno], [
  AS_IF([test -z "$MPICC"], [
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[MPI_Init(0, 0);]])],
      [mpi_how="built with $CC"],
      [AC_CHECK_PROGS([MPICC], [mpicc])])])
  AS_IF([test -n "$MPICC"], [
    mpi_shown=`$MPICC -show 2>/dev/null` ||
      AC_MSG_ERROR([$MPICC does not answer -show; set CC to it instead of MPICC])
    mpi_how="built with $MPICC"
    first=yes
    for word in $mpi_shown; do
      AS_IF([test $first = yes], [first=no], [
        AS_CASE([$word],
          [-I*|-D*], [MPI_CFLAGS="$MPI_CFLAGS $word"],
          [-pthread], [MPI_CFLAGS="$MPI_CFLAGS $word"; MPI_LIBS="$MPI_LIBS $word"],
          [-L*|-l*|-Wl,*], [MPI_LIBS="$MPI_LIBS $word"])])
    done])
  deltafs_save_CFLAGS=$CFLAGS
  deltafs_save_LIBS=$LIBS
  CFLAGS="$CFLAGS $MPI_CFLAGS"
  LIBS="$LIBS $MPI_LIBS"
  AC_MSG_CHECKING([whether MPI 3 works])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[MPI_Comm c; MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c);]])],
    [AC_MSG_RESULT([yes, $mpi_how])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([MPI is missing: install one (Debian: libmpich-dev or libopenmpi-dev), name its wrapper (MPICC=...), or configure --without-mpi])])
  CFLAGS=$deltafs_save_CFLAGS
  LIBS=$deltafs_save_LIBS
  AS_IF([test -z "$MPIEXEC"], [
    AS_CASE([$MPICC],
      [*mpicc.*], [MPIEXEC=`echo "$MPICC" | $SED 's/mpicc\.\([[^/]]*\)$/mpirun.\1/'`],
      [*/mpicc], [MPIEXEC=`echo "$MPICC" | $SED 's/mpicc$/mpirun/'`])
    AC_CHECK_PROGS([MPIEXEC], [mpirun mpiexec srun])])
])
AC_SUBST([MPI_CFLAGS])
AC_SUBST([MPI_LIBS])
AM_CONDITIONAL([WITH_MPI], [test "x$with_mpi" != xno])

])
