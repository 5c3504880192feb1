#!/bin/sh
# Namespaces that several ranks have open.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

# namespace RANKS ARGUMENT
namespace() {
    fresh
    MPI_TIMEOUT=90 check "$1" ./test_mpi_namespace "$data" "$2"
}

namespace 4 calls
namespace 3 thread
namespace 1 calls
