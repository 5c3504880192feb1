#!/bin/sh
# Messages between ranks that break the protocol are an error, and nobody waits for ever.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

check 3 ./test_mpi_malformed
