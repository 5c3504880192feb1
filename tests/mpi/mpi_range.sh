#!/bin/sh
# Partitions by ranges of keys: created, and reopened with other numbers of ranks and other commits. The pivots are
# those that the job before has stored.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

# runs OPTIONS
runs() {
    fresh
    check 4 ./test_mpi_range "$data" 0 2 "partitioner=range value_size=24 memory=8M $1"
    check 2 ./test_mpi_range "$data" 2 4 "memory=8M commit=async"
    check 3 ./test_mpi_range "$data" 4 6 "memory=8M"
    [ "$(grep -c ^Pivots "$data/range/MANIFEST")" = "$2" ] || fail "$(grep ^Pivots "$data/range/MANIFEST")"
}

fresh
check 3 ./test_mpi_range "$data" 0 2 "partitions=7 value_size=24 memory=8M" caller
check 2 ./test_mpi_range "$data" 2 4 "memory=8M commit=async" caller

runs "partitions=9 commit=async" 1
runs "partitions=2 layout=local" 1
