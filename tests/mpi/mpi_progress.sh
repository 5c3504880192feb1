#!/bin/sh
# A thread that serves other ranks while the program is elsewhere.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

for nodes in 1 2; do
    fresh
    DELTAFS_TEST_NODES=$nodes
    export DELTAFS_TEST_NODES
    check 2 ./test_mpi_progress "$data" thread
    unset DELTAFS_TEST_NODES
done
fresh
DELTAFS_TEST_NODES=2 DELTAFS_ROUTE=3hop
export DELTAFS_TEST_NODES DELTAFS_ROUTE
check 4 ./test_mpi_progress "$data" thread
fresh
printf '0123456789abcdef' >"$work/records"
check 2 "$deltafs_mpi" import --format raw --schema id:u8,x:u8 --key id -o "$data/d" --progress thread "$work/records"
fresh
check 2 ./test_mpi_progress "$data" level
[ -z "$(ls "$data")" ] || fail "a directory was left: $(ls "$data")"
