#!/bin/sh
# HDF5 files in a pool through the driver, without `deltafs run`; and with MPI, if HDF5 has it.
. "$top_srcdir/tests/pool/pool_lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/vfd_lib.sh"

pool_start 2
expect 0 "$probe" make plain.h5
expect 0 vfd "$probe" make "$point/ours.h5"
expect 0 "$probe" change plain.h5
expect 0 vfd "$probe" change "deltafs:$point/ours.h5"
expect 0 "$probe" digest plain.h5
cp out digest
expect 0 vfd "$probe" digest "$point/ours.h5"
same digest out "values differ"
expect 0 vfd "$probe" is "$point/ours.h5"
why "$point/nothing.h5: in its pool: /nothing.h5: does not exist (errno = 2)" "$point/nothing.h5"
why "$point: in its pool: /: is a folder" "$point"
expect 0 "$deltafs" pool drain "$point/ours.h5" drained.h5
expect 0 "$probe" digest drained.h5
same digest out "values of the drained file differ"
if [ -x "$HDF5_DIR/bin/h5dump" ]; then
    expect 0 h5dump drained.h5
    grep -v '^HDF5 "' out >plain.out
    expect 0 vfd h5dump "$point/ours.h5"
    grep -v '^HDF5 "' out >ours.out
    same plain.out ours.out "h5dump differs"
    expect 0 vfd h5ls -r "$point/ours.h5"
fi
if [ -x "$top_builddir/vfd_parallel" ]; then
    expect 0 mpi 3 "$top_builddir/vfd_parallel" deltafs "$point/parallel.h5" write
    expect 0 mpi 2 "$top_builddir/vfd_parallel" deltafs "$point/parallel.h5" read
    expect 0 vfd "$probe" digest "$point/parallel.h5"
fi
expect 0 vfd "$probe" delete "$point/ours.h5"
why "does not exist" "$point/ours.h5"
[ ! -e "$point" ] || fail "something is in the file system"
pool_stop
