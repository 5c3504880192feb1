#!/bin/sh
# Namespaces that several ranks have open.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

# namespace RANKS PROGRAM ARGUMENT
namespace() {
    fresh
    mkdir "$data/ns"
    MPI_TIMEOUT=300 check "$1" "./$2" "$data/ns" "$3"
}

namespace 4 test_mpi_namespace calls
namespace 3 test_mpi_namespace thread
namespace 1 test_mpi_namespace calls
[ -x test_mpi_namespace_model ] || exit 0 # without cmocka
namespace 3 test_mpi_namespace_model turns
namespace 2 test_mpi_namespace_model parts
namespace 2 test_mpi_namespace_model private
