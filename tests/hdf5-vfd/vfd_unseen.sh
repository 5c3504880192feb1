#!/bin/sh
# HDF5 is found that was loaded together with DeltaFS out of sight of the program, as a Python module's libraries are; and
# a library where the program has a part of an HDF5, as one to which it is linked statically. (That part was used.)
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/vfd_lib.sh"

expect 0 "$probe" make plain.h5
LD_LIBRARY_PATH=$top_builddir/.libs:$HDF5_DIR/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
expect 0 "$top_builddir/vfd_load" "$top_builddir/.libs/libvfd_unseen.so" plain.h5

expect 0 "$top_builddir/vfd_static" plain.h5
expect 0 env DELTAFS_HDF5="$HDF5_DIR/lib/libhdf5.so" "$top_builddir/vfd_static" plain.h5
expect 1 env DELTAFS_HDF5=libno_such.so "$top_builddir/vfd_static" plain.h5
says "HDF5 cannot be loaded: libno_such.so"
