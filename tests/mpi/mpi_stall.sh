#!/bin/sh
# Storage that stops on one rank: nobody's memory grows, and that rank hands on what is others'.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

check 4 ./test_mpi_relay
check 8 ./test_mpi_relay
has_sanitizers && skip "sanitizers need memory of their own"
fresh
check 4 ./test_mpi_stall "$data"
