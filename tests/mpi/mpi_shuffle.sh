#!/bin/sh
# The shuffle against its oracle, on several numbers of ranks; and with one rank that sleeps amid its appends.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

# shuffle RANKS FIRST COUNT; 24 cases meet every value size with every skew.
shuffle() {
    fresh
    check "$1" ./test_mpi_shuffle "$data" "$2" "$3"
}
shuffle 1 0 24
shuffle 2 0 24
shuffle 3 24 12
shuffle 4 36 6
shuffle 7 42 6

fresh
check 4 ./test_mpi_shuffle "$data" 3 2 0
