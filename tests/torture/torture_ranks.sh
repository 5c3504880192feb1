#!/bin/sh
# A short run of scripts/torture's faults in a job of three ranks, and in the full run of a namespace that they share;
# TORTURE_TIMES as in torture_short.sh.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

count=$((4 * ${TORTURE_TIMES:-1}))
expect 0 mpi 3 ./torture_mpi --count $count --seed 1 --folder "$work"
grep -qx "torture: fault $count tried, 0 lost, 0 wrong" "$work/out" || fail "$(cat "$work/out")"

for count in $(in_full 25); do
    MPI_TIMEOUT=300
    expect 0 mpi 3 ./torture_mpi_namespace --count "$count" --seed 1 --folder "$work"
    grep -qx "torture: namespace $count tried, 0 lost, 0 wrong" "$work/out" || fail "$(cat "$work/out")"
done
