#!/bin/sh
# Open MPI's MPI-IO with the prefix deltafs:, on files of a pool, without `deltafs run`.
. "$top_srcdir/tests/pool/pool_lib.sh"
. "$top_srcdir/tests/adio/ompio_lib.sh"

mkdir "$work/folder"
: >"$work/folder/of another"
pool_start 2
run 3 ./pool_mpiio "deltafs:$point"
for ranks in 1 3; do
    NO_ATOMIC=1 run "$ranks" ./ompio_calls_test "deltafs:$point/file" "$work/folder"
done
for seed in 1 2; do
    run $((1 + seed)) ./ompio_oracle "deltafs:$point/random$seed" "$seed" 8
done
# Several nodes have no shared file pointer.
mpi 2 --mca sharedfp lockedfile ./pool_mpiio "deltafs:$point" >"$work/out" 2>&1 || fail "lockedfile: $(cat "$work/out")"
[ ! -e "$point" ] || fail "something is in the file system: $(ls -aR "$point")"
pool_stop
