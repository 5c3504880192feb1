#!/bin/sh
# Random operations of several clients on one server, and on three, against a reference in memory; processes that
# disturb each other; and a folder that is renamed by processes that are killed. At the end each server is on a node of
# its own: then they pass requests on.
. "$top_srcdir/tests/pool/pool_lib.sh"

operations=1000 rounds=30 files=60
[ -z "$(in_full many)" ] || operations=100000 rounds=3000 files=3000

# run N PLACEMENT [NODES]: with N servers.
run() {
    pool_start "$1" --placement "$2"
    timeout 600 $client_node ./pool_model "$point" 4 "${POOL_OPERATIONS:-$operations}" "${POOL_SEED:-1}" ${3:-} ||
        fail "operations on $1 servers"
    timeout 600 $client_node ./pool_race "$point" 4 "${POOL_ROUNDS:-$rounds}" || fail "processes on $1 servers"
    timeout 600 $client_node ./pool_twice "$point" "$rounds" || fail "a file that is renamed twice on $1 servers"
    timeout 600 $client_node ./pool_moved "$point" "$files" || fail "a folder that is renamed on $1 servers"
    pool_stop
}
run 1 hash
run 3 hash
run 2 local
if pool_apart; then
    run 3 hash 3
    run 2 local 2
fi
