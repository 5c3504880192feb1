#!/bin/sh
# The ways between nodes: MPICH can be told to take ranks of one machine for ranks of several.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

is_mpich || skip "only MPICH can be told to believe in several nodes"
MPIR_CVAR_NUM_CLIQUES=2
export MPIR_CVAR_NUM_CLIQUES
fresh
check 4 ./test_mpi_shuffle "$data" 6 6
fresh
check 3 ./test_mpi_shuffle "$data" 3 2 0
fresh
check 3 ./test_mpi_errors "$data"
