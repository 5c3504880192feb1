#!/bin/sh
# HDF5 is found that was loaded together with DeltaFS out of sight of the program, as a Python module's libraries are.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/vfd_lib.sh"

expect 0 "$probe" make plain.h5
LD_LIBRARY_PATH=$top_builddir/.libs:$HDF5_DIR/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
expect 0 "$top_builddir/vfd_load" "$top_builddir/.libs/libvfd_unseen.so" plain.h5
