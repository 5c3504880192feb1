#!/bin/sh
# Every thread level that a program may ask MPI for.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

for level in single $(in_full funneled serialized) multiple; do
    fresh
    check 2 ./test_mpi_shuffle "$data" 4 3 100 "$level"
done
