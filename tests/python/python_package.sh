#!/bin/sh
# The Python package, from its source folder. VFD_PYTHON may name a Python with NumPy, and with pandas, xarray, pyarrow and
# Dask, for the conversions to them.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

find_numpy
[ -n "$python" ] || skip "no Python with NumPy"

here=$(pwd)
absolute() {
    case $1 in
    /*) echo "$1" ;;
    *) echo "$here/$1" ;;
    esac
}
DELTAFS_LIBRARY=$(absolute "$top_builddir/.libs/libdeltafs.so")
! nm -D --undefined-only "$DELTAFS_LIBRARY" | grep -q __asan_init || skip "built with sanitizers, which Python does not have"
PYTHONPATH=$(absolute "$top_srcdir/src/python")
DELTAFS_COMMAND=$(absolute "$deltafs")
PUT_RECORDS=$(absolute "$put_records")
MANUAL=$(absolute "$top_srcdir/man/deltafs-python.7")
HEADER=$(absolute "$top_srcdir/include/deltafs/deltafs.h")
REAL=$(absolute "$real")
export DELTAFS_LIBRARY PYTHONPATH DELTAFS_COMMAND PUT_RECORDS MANUAL HEADER REAL
if [ -x "$deltafs_mpi" ]; then
    # Open MPI looks for networks unless told that it is alone, see cli_lib.sh.
    DELTAFS_MPI_COMMAND=$(absolute "$deltafs_mpi")
    export DELTAFS_MPI_COMMAND OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self
fi
test=$(absolute "$top_srcdir/tests/python/test_package.py")

[ "$("$python" -c 'import deltafs; print(deltafs.__version__)')" = "$("$deltafs" --version | sed 's/.* //')" ] ||
    fail "the package has another version than the library"
cd "$work" || exit 99
"$python" "$test"
