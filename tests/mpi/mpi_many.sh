#!/bin/sh
# A small job of many ranks: right answers, and memory as `deltafs-mpi route` tells it. By hand, with memory for it:
# DELTAFS_TEST_RANKS=256 MPI_TIMEOUT=900 make check TESTS=tests/mpi/mpi_many.sh
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

ranks=${DELTAFS_TEST_RANKS:-24}
records=${DELTAFS_TEST_RECORDS:-1000}
nodes=$((ranks >= 64 ? 16 : 6))

has_sanitizers && skip "sanitizers need memory of their own"
fresh
check "$ranks" ./test_mpi_many "$data" auto 0 "$records"
check "$ranks" ./test_mpi_many "$data" 3hop "$nodes" "$records"
check "$ranks" ./test_mpi_promise 3hop "$nodes" 8M
