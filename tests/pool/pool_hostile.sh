#!/bin/sh
# Clients that break the rules or die, and servers that die: the others go on, or get an error soon.
. "$top_srcdir/tests/pool/pool_lib.sh"

pool_start 2
timeout 60 ./pool_hostile "$point" garbage 10 || fail "after garbage"
timeout 60 ./pool_hostile "$point" killed 5 || fail "after clients were killed"
timeout 60 ./pool_hostile "$point" mute 2 || fail "beside a client that was stopped"
if [ "$(id -u)" -eq 0 ]; then # which can be another user
    chmod 777 "$DELTAFS_POOL_DIR"/*/0
    timeout 60 ./pool_hostile "$point" other 1 || fail "another user"
fi
pool_stop

# A server is killed: its clients get an error that names it.
pool_start 2
timeout 60 ./pool_race "$point" 2 1000000 2>"$work/err" &
race=$!
sleep 0.2
kill -KILL "$(server_pids | head -1)"
wait "$race"
[ $? -eq 1 ] || fail "clients of a server that was killed do not end"
grep -q 'on node .* \(has ended\|does not answer\)' "$work/err" || fail "the message of a server that was killed"
wait "$servers"
servers=

pool_apart || exit 0
rm -r "$work/local"
pool_start 3
timeout 60 $client_node ./pool_hostile "$point" grow 1 || fail "requests that are passed on as one"
pool_stop
