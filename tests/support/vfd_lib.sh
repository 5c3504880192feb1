# Sourced by the tests of the HDF5 driver, after tests/support/lib.sh and tests/support/cli_lib.sh. They work in a folder of their own.
top_srcdir=$(cd "$top_srcdir" && pwd)
top_builddir=$(cd "$top_builddir" && pwd)
deltafs=$top_builddir/deltafs
deltafs_mpi=$top_builddir/deltafs-mpi
put_records=$top_builddir/put_records
probe=$top_builddir/vfd_probe
corpus=$top_srcdir/tests/corpus
real=${VPIC_HARRIS:-$top_srcdir/../shared/data/vpic-harris}
case $real in /*) ;; *) real=$(pwd)/$real ;; esac
HDF5_PLUGIN_PATH=$top_builddir/hdf5-vfd/.libs
export HDF5_PLUGIN_PATH
unset HDF5_DRIVER HDF5_DRIVER_CONFIG HDF5_USE_FILE_LOCKING
PATH=$HDF5_DIR/bin:$PATH
cd "$work" || exit 99

need_tools() {
    # Debian's tools are those of its HDF5 without MPI.
    case $HDF5_DIR in /usr/lib/*/hdf5/serial) command -v h5dump >/dev/null && return ;; esac
    [ -x "$HDF5_DIR/bin/h5dump" ] || skip "$HDF5_DIR has no tools"
}

# vfd COMMAND...: with the driver.
vfd() {
    HDF5_DRIVER=deltafs "$@"
}

vfd_oracle() {
    HDF5_DRIVER=deltafs "$PYTHON3" "$top_srcdir/tests/hdf5-vfd/vfd_oracle.py" "$@"
}

# why TEXT ARGUMENT...: fails unless the driver refuses to open the file, and the error stack has TEXT.
why() {
    text=$1
    shift
    HDF5_DRIVER=deltafs "$probe" why "$@" >"$work/why"
    [ $? -eq 1 ] || fail "opened: $*"
    grep -qF -- "$text" "$work/why" || {
        cat "$work/why" >&2
        fail "$*: no message with '$text'"
    }
}

# is_logical FILE: what the driver writes is not an ordinary file.
is_logical() {
    [ -f "$1/MANIFEST" ] || fail "$1 is no logical file"
}
