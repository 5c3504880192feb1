#!/bin/sh
# A short run of scripts/torture's faults in a job of three ranks.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

expect 0 mpi 3 ./torture_mpi --count 15 --seed 1 --folder "$work"
grep -qx "torture: fault 15 tried, 0 lost, 0 wrong" "$work/out" || fail "$(cat "$work/out")"
