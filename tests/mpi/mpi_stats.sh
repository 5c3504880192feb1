#!/bin/sh
# The statistics of a job: one line of JSON for each directory, with numbers that fit one another; and who cannot have
# them is told at once.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

# stats RANKS NODES ROUTE: two cases' statistics into $work/stats.
stats() {
    fresh
    rm -f "$work/stats"
    DELTAFS_STATS=$work/stats DELTAFS_TEST_NODES=$2 DELTAFS_ROUTE=$3
    export DELTAFS_STATS DELTAFS_TEST_NODES DELTAFS_ROUTE
    check "$1" ./test_mpi_shuffle "$data" 4 2
    unset DELTAFS_STATS DELTAFS_TEST_NODES DELTAFS_ROUTE
    $PYTHON3 "$top_srcdir/tests/mpi/check_stats.py" "$work/stats" "$1" "$2" "$3" || fail "stats of $1 ranks, $2 nodes, $3"
}
stats 1 1 auto
stats 2 1 direct
stats 4 2 3hop
stats 4 4 grid
stats 3 2 direct

# import FILE: a little directory, with statistics in FILE.
printf '0123456789abcdef' >"$work/records"
import() {
    fresh
    mpi 2 "$deltafs_mpi" import --format raw --schema id:u8,x:u8 --key id -o "$data/d" --stats "$1" "$work/records" \
        >"$work/out" 2>"$work/err"
}
import "$work/nowhere/stats" && fail "statistics in a folder that is not there"
says "option stats"
[ -z "$(ls "$data")" ] || fail "a directory was left: $(ls "$data")"
import /dev/full && fail "statistics on a full device"
says "directory itself is complete"
expect 0 "$deltafs" verify "$data/d"
