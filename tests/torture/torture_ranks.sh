#!/bin/sh
# A short run of scripts/torture's faults in a job of three ranks; TORTURE_TIMES as in torture_short.sh.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

count=$((4 * ${TORTURE_TIMES:-1}))
expect 0 mpi 3 ./torture_mpi --count $count --seed 1 --folder "$work"
grep -qx "torture: fault $count tried, 0 lost, 0 wrong" "$work/out" || fail "$(cat "$work/out")"
