#!/bin/sh
# Random operations of several clients on one server, and on three, against a reference in memory; and processes that
# disturb each other.
. "$top_srcdir/tests/pool/pool_lib.sh"

for servers_number in 1 3; do
    pool_start "$servers_number"
    timeout 100 ./pool_model "$point" 4 "${POOL_OPERATIONS:-4000}" "${POOL_SEED:-1}" ||
        fail "operations on $servers_number servers"
    timeout 100 ./pool_race "$point" 4 "${POOL_ROUNDS:-100}" || fail "processes on $servers_number servers"
    pool_stop
done
