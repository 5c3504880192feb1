#!/bin/sh
# MPI that fails on one rank while a directory is closed.
. "$top_srcdir/tests/lib.sh"
. "$top_srcdir/tests/mpi/mpi_lib.sh"

# Of what all call together; of what follows.
for count in 0 1 2; do
    fresh
    mpi 2 ./test_mpi_lost "$data" $count
    code=$?
    [ $code -eq 42 ] || fail "exit code $code where reduction $count fails"
done
