#!/bin/sh
# One rank's error is every rank's; and ranks that do not make the same call.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

for ranks in 1 2 $(in_full 4); do
    fresh
    check "$ranks" ./test_mpi_errors "$data"
done
# Ranks that have lost each other leave memory behind that messages under way still use.
export ASAN_OPTIONS="detect_leaks=0:$ASAN_OPTIONS"
for ranks in 2 3; do
    fresh
    MPI_TIMEOUT=20 check "$ranks" ./test_mpi_mismatch "$data"
done
