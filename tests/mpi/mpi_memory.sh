#!/bin/sh
# Memory stays within its budget, and what the shuffle takes is what its plan says.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

has_sanitizers && skip "sanitizers need memory of their own"
# memory VALUE-SIZE...
memory() {
    fresh
    check 2 ./test_mpi_memory "$data" "$@"
}
memory 0
memory 40
memory any 48
# Many partitions, each with what a long value needs.
memory any 1000 64
# A grid with a short row, and nodes of different sizes.
check 7 ./test_mpi_promise
