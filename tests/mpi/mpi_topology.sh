#!/bin/sh
# Nodes and packages, and the order that they give to ranks. PMIx is played by fake_pmix.c.
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

    # Under MPICH's launcher there is no PMIx but ours.
    [ -e .libs/libfake_pmix.so ] || exit 0
    ln -s "$(pwd)/.libs/libfake_pmix.so" "$work/libpmix.so.2"
    # domains ORDER NODES DOMAIN...: a rank for each domain.
    domains() {
        order=$1
        nodes=$2
        shift 2
        command=
        for domain in "$@"; do
            command="$command : -np 1 -env FAKE_PMIX $domain ./test_mpi_topology $nodes $order"
        done
        # shellcheck disable=SC2086 # words
        timeout -k 5 60 $MPIEXEC -genv LD_LIBRARY_PATH "$work:${LD_LIBRARY_PATH:-}" -genv PMIX_NAMESPACE x \
            -genv PMIX_RANK 0 ${command# : } || fail "domains $*"
    }
    domains "0,2,1,3" 0 SK0:NM0 SK1:NM0 SK0:NM0 SK1:NM0
    domains "0,2,1,3" 0 SK1:NM1 L30:SK0:NM0 SK1:L20:NM1 SK0:NM0
    domains "0,3,1,2" 0 SK0:NM1 NM2:SK0 SK0:NM2 SK0:NM1
    domains "0,1,2,3" 0 SK0:NM1 SK0:NM1 SK0:NM1 SK0:NM1
    domains "0,1|2,3" 2 SK0:NM1 SK1:NM1 SK1:NM1 SK1:NM2
    domains "0,2,1" 0 nonsense SK1 L2
fi
