#!/bin/sh
# Several directories at a time.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

# With few records all fits the links' buffers; with many, ranks that wait in one directory must serve the other.
for ranks in 1 2 $(in_full 5); do
    fresh
    MPI_TIMEOUT=30 check "$ranks" ./test_mpi_handles "$data" 300
done
many=6000
[ -z "$(in_full yes)" ] || many=20000
for ranks in 3 $(in_full 5); do
    fresh
    MPI_TIMEOUT=60 check "$ranks" ./test_mpi_handles "$data" $many
done
