#!/bin/sh
# An h5py script, unmodified, through the driver; VFD_PYTHON is a Python that has h5py, with an HDF5 of its own.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/vfd_lib.sh"
[ -n "${VFD_PYTHON:-}" ] || skip "VFD_PYTHON names no Python with h5py"
script=$top_srcdir/tests/hdf5-vfd/vfd_script.py
"$VFD_PYTHON" -c 'import h5py; print("h5py", h5py.__version__, "HDF5", h5py.version.hdf5_version)' || fail "no h5py"

expect 0 "$VFD_PYTHON" "$script" make plain.h5
[ -f plain.h5 ] || fail "without the driver there is no ordinary file"
expect 0 "$VFD_PYTHON" "$script" digest plain.h5
cp out digest
expect 0 vfd "$VFD_PYTHON" "$script" make ours.h5
is_logical ours.h5
expect 0 vfd "$VFD_PYTHON" "$script" digest ours.h5
same digest out "read through the driver"
[ ! -x "$HDF5_DIR/bin/h5diff" ] || expect 0 vfd h5diff plain.h5 ours.h5

# Out of DeltaFS, and into it.
expect 0 "$deltafs" cp ours.h5 out.h5
expect 0 "$VFD_PYTHON" "$script" digest out.h5
same digest out "written with the driver, read without"
expect 0 "$deltafs" cp plain.h5 deltafs:in.h5
is_logical in.h5
expect 0 vfd "$VFD_PYTHON" "$script" digest in.h5
same digest out "written without the driver, read with it"
expect 0 vfd "$VFD_PYTHON" "$script" digest deltafs:in.h5
same digest out "under the name that it has in MPI-IO"

# Errors are exceptions.
expect 1 vfd "$VFD_PYTHON" "$script" digest nothing.h5
says "there is no such file"
if [ -d "$real" ] && [ -x "$deltafs_mpi" ]; then
    expect 0 import 2 --format vpic -o particles "$real"/eparticle.*
    expect 0 vfd "$VFD_PYTHON" "$script" trajectories particles "$real/trajectories.csv"
    stdout_has "50 keys"
    expect 1 vfd "$VFD_PYTHON" "$script" digest particles/20480
    says "no such subfile"
fi
