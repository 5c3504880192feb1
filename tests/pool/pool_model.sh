#!/bin/sh
# Random operations of several clients on one server, and on three, against a reference in memory; processes that
# disturb each other; and a folder that is renamed by processes that are killed.
. "$top_srcdir/tests/pool/pool_lib.sh"

operations=1000 rounds=30 files=60
[ -z "$(in_full many)" ] || operations=100000 rounds=3000 files=3000

for servers_number in 1 3 2; do
    pool_start "$servers_number" --placement "$([ "$servers_number" -eq 2 ] && echo local || echo hash)"
    timeout 600 ./pool_model "$point" 4 "${POOL_OPERATIONS:-$operations}" "${POOL_SEED:-1}" ||
        fail "operations on $servers_number servers"
    timeout 600 ./pool_race "$point" 4 "${POOL_ROUNDS:-$rounds}" || fail "processes on $servers_number servers"
    timeout 600 ./pool_moved "$point" "$files" || fail "a folder that is renamed on $servers_number servers"
    pool_stop
done
