#!/bin/sh
# Memory errors that Valgrind sees, on one and two ranks.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

[ -n "$VALGRIND" ] || skip "no Valgrind"
has_sanitizers && skip "sanitizers and Valgrind do not go together"

# valgrind RANKS PROGRAM ARGUMENTS...
valgrind() {
    ranks=$1
    shift
    fresh
    check "$ranks" "$top_builddir/libtool" --mode=execute "$VALGRIND" -q --error-exitcode=9 \
        --suppressions="$top_srcdir/tests/mpi/valgrind.supp" "$@"
}
valgrind 1 ./test_mpi_errors "$data"
valgrind 2 ./test_mpi_errors "$data"
valgrind 2 ./test_mpi_shuffle "$data" 0 6 5
DELTAFS_TEST_NODES=2 DELTAFS_ROUTE=3hop
export DELTAFS_TEST_NODES DELTAFS_ROUTE
valgrind 3 ./test_mpi_shuffle "$data" 0 4 5
