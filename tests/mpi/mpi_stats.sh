#!/bin/sh
# The statistics of a job: one line of JSON for each directory, with numbers that fit one another; and who cannot have
# them is told at once.
. "$top_srcdir/tests/lib.sh"
. "$top_srcdir/tests/mpi/mpi_lib.sh"

# stats RANKS NODES ROUTE: two cases' statistics into $work/stats.
stats() {
    fresh
    rm -f "$work/stats"
    DELTAFS_STATS=$work/stats DELTAFS_NODES=$2 DELTAFS_ROUTE=$3
    export DELTAFS_STATS DELTAFS_NODES DELTAFS_ROUTE
    check "$1" ./test_mpi_shuffle "$data" 4 2
    unset DELTAFS_STATS DELTAFS_NODES DELTAFS_ROUTE
    $PYTHON3 "$top_srcdir/tests/mpi/check_stats.py" "$work/stats" "$1" "$2" "$3" || fail "stats of $1 ranks, $2 nodes, $3"
}
stats 1 1 auto
stats 2 1 direct
stats 4 2 3hop
stats 4 4 grid
stats 3 2 direct

fresh
DELTAFS_STATS=$work/nowhere/stats
export DELTAFS_STATS
mpi 2 ./test_mpi_shuffle "$data" 4 1 >"$work/out" 2>&1 && fail "statistics in a folder that is not there"
grep -q "option stats" "$work/out" || fail "no word of the option: $(cat "$work/out")"
[ -z "$(ls "$data")" ] || fail "a directory was left: $(ls "$data")"
DELTAFS_STATS=/dev/full
mpi 2 ./test_mpi_shuffle "$data" 4 1 >"$work/out" 2>&1 && fail "statistics on a full device"
grep -q "directory itself is whole" "$work/out" || fail "no word that it is whole: $(cat "$work/out")"
