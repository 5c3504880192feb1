#!/bin/sh
# Asynchronous commit on one rank and on several.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

# Ranks that have lost each other leave memory behind that messages under way still use.
export ASAN_OPTIONS="detect_leaks=0:$ASAN_OPTIONS"
for ranks in 1 2 $(in_full 4); do
    fresh
    MPI_TIMEOUT=90 check "$ranks" ./test_mpi_async "$data"
done
