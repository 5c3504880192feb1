#!/bin/sh
# Random questions about random directories and files, as Python answers them; TORTURE_TIMES as in tests/torture. A seed
# that fails is repeated by QUERY_SEED.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

first=${QUERY_SEED:-26}
for seed in $(seq "$first" $((first + (${TORTURE_TIMES:-1} - 1) / 2))); do
    mkdir "$work/$seed"
    # shellcheck disable=SC2086 # words
    "$PYTHON3" "$cli/query_oracle.py" "$deltafs" "$deltafs_mpi" "$put_records" "$work/$seed" "$seed" $MPIEXEC ||
        fail "repeat it by QUERY_SEED=$seed"
    rm -rf "${work:?}/$seed"
done
