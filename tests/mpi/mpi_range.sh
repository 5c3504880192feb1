#!/bin/sh
# Partitions by ranges of keys: created, and reopened with other numbers of ranks and other commits. The pivots are
# those that the job before has stored.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

# runs VALUE_SIZE PIVOTS OPTIONS
runs() {
    fresh
    check 4 ./test_mpi_range "$data" 0 2 "$1" "partitioner=range value_size=$1 memory=8M $3"
    check 2 ./test_mpi_range "$data" 2 4 "$1" "memory=8M commit=async"
    check 3 ./test_mpi_range "$data" 4 6 "$1" "memory=8M"
    [ "$(grep -c ^Pivots "$data/range/MANIFEST")" = "$2" ] || fail "$(grep ^Pivots "$data/range/MANIFEST")"
}

fresh
check 3 ./test_mpi_range "$data" 0 2 24 "partitions=7 value_size=24 memory=8M" caller
check 2 ./test_mpi_range "$data" 2 4 24 "memory=8M commit=async" caller

# All ranks hold their records back until the end of the epoch; some do; none does.
runs 24 1 "partitions=9 commit=async"
if [ -n "$(in_full yes)" ]; then
    runs 24 1 "partitions=2 layout=local"
    runs 250 1 "partitions=9"
fi
runs 600 1 "partitions=3 commit=async"
