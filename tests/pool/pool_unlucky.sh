#!/bin/sh
# Clients of a pool that signals interrupt, or that have few descriptors; a server that begins with few.
. "$top_srcdir/tests/pool/pool_lib.sh"

pool_start 1
timeout 60 ./pool_unlucky "$point" connect 300 || fail "signals while a process connects"

timeout 60 ./pool_unlucky "$point" descriptors || fail "few descriptors"

# The server is killed: who waits for it notices.
timeout 60 ./pool_unlucky "$point" lose &
client=$!
sleep 0.1
kill -KILL "$(server_pids)"
wait $client || fail "signals while a process waits for a server that is lost"
wait "$servers"
servers=

# It needs two for each client.
rm -r "$work/local"
ulimit -S -n 64
pool_start 1
ulimit -S -n 1000
timeout 60 ./pool_unlucky "$point" many 40 || fail "many clients"
pool_stop
