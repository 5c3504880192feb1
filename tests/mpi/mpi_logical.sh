#!/bin/sh
# Logical files that ranks write together, and read together or alone.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

for ranks in 1 3 $(in_full 5); do
    fresh
    MPI_TIMEOUT=60 check "$ranks" ./test_mpi_logical "$data"
done
