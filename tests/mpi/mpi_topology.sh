#!/bin/sh
# Nodes, and the order that they give to ranks.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

check 1 ./test_mpi_topology 0 "0"
check 4 ./test_mpi_topology 0 "0,1,2,3"
check 4 ./test_mpi_topology 2 "0,1|2,3"
check 5 ./test_mpi_topology 3 "0,1|2,3|4"
check 3 ./test_mpi_topology 3 "0|1|2"
if is_mpich; then
    MPIR_CVAR_NUM_CLIQUES=2
    export MPIR_CVAR_NUM_CLIQUES
    check 4 ./test_mpi_topology 0 "0,2|1,3"
    check 5 ./test_mpi_topology 0 "0,2,4|1,3"
    fresh
    check 5 ./test_mpi_shuffle "$data" 6 2
    unset MPIR_CVAR_NUM_CLIQUES
fi
