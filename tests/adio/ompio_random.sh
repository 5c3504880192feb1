#!/bin/sh
# Random MPI-IO on 1 to 4 ranks against the oracle; what is in the file at the end, by our own reader too.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/adio/ompio_lib.sh"

for seed in ${SEEDS:-1 2 3 4 5 6 7 8}; do
    rm -rf "$work/file"
    export ORACLE_ATOMIC=1
    run $((1 + seed % 4)) ./ompio_oracle "$name" "$seed" 8 "$work/plain"
    [ -d "$work/file" ] || fail "no logical file has been made"
    if "$deltafs" help cat >/dev/null 2>&1; then
        "$deltafs" cat "$work/file" >"$work/read" || fail "deltafs cat, seed $seed"
        cmp "$work/read" "$work/plain" || fail "deltafs cat tells other bytes, seed $seed"
    fi
done
for index in broadcast flatten; do
    rm -rf "$work/file"
    DELTAFS_EXTENTS=$index run 3 ./ompio_oracle "$name" 11 6
done
