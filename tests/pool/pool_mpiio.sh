#!/bin/sh
# MPI-IO as it is, with a pool behind a mount point.
. "$top_srcdir/tests/pool/pool_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"

pool_start 2
mounted "pool=$point=$point" mkdir "$point/a" || fail "mkdir"
mpi 3 "$deltafs" run --pool "$point" -- "$(cd "$top_builddir" && pwd)/pool_mpiio" "$point/a" 2>"$work/err" ||
    fail "MPI-IO: $(cat "$work/err")"
grep deltafs: "$work/err" && fail "a message"
pool_stop
