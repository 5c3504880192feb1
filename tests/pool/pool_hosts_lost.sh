#!/bin/sh
# A pool on two hosts that loses one: calls fail soon, with a message that names it; the other goes on, and ends.
. "$top_srcdir/tests/pool/hosts_lib.sh"

# reads HOST SECONDS: read all files there; no call takes longer than that, and no byte is wrong.
reads() {
    on "$1" "$lost" "$point" read 20 "$2" >"$work/read.$1" || fail "on $1, code $?: $(cat "$work/read.$1")"
}

# read_is HOST TEXT: reading there said this.
read_is() { grep -q "$2" "$work/read.$1" || fail "on $1, not said: $2: $(cat "$work/read.$1")"; }

some='^[1-9][0-9]* fine, [1-9][0-9]* failed, 0 absent, 0 short, 0 zeros; '

# The launcher lets the other server go on: what is on that one can be read, written and removed.
hosts_start -disable-auto-cleanup
on h1 "$lost" "$point" write 20 || fail "write"
kill -KILL "$(server_on h2)"
reads h1 5
read_is h1 "$some"'.*server 1 on node h2: does not answer'
expect 3 "$deltafs" pool drain "$point" "$work/some"
says 'server 1 on node h2: does not answer'
[ -n "$(find "$work/some" -size 640000c)" ] || fail "what is on h1 is not drained: $(cat "$work/err")"
expect 3 on h2 "$deltafs" pool status "$point"
grep -q 'no server of the pool answers on this node (h2)' "$work/err" || fail "the message on h2"
expect 3 "$deltafs" pool stop "$point"
grep -q 'server 1 on node h2: does not answer' "$work/err" || fail "the message of 'stop': $(cat "$work/err")"
wait "$servers"
servers=
nothing_left h1
grep -q 'other servers of the pool do not end' "$work/servers" || fail "the server's message: $(cat "$work/servers")"
on h2 "rm -r $local $DELTAFS_POOL_DIR"

# The launcher ends the other server, too.
hosts_start
on h1 "$lost" "$point" write 20 || fail "write"
kill -KILL "$(server_on h2)"
wait "$servers"
servers=
expect 3 "$deltafs" pool status "$point"
grep -q 'no server of the pool answers on this node (h1)' "$work/err" || fail "the message on h1"
for host in h1 h2; do
    on $host "rm -r $local $DELTAFS_POOL_DIR"
done

# The network is cut, and comes back. A client that has locks on both servers is killed meanwhile.
hosts_start
on h1 "$lost" "$point" write 20 || fail "write"
on h1 "$lost" "$point" hold 20 40 >"$work/held" &
holder=$!
tries=0
until [ -s "$work/held" ]; do
    [ $tries -lt 50 ] || fail "no locks"
    tries=$((tries + 1))
    sleep 0.1
done
grep -q '^20 locked' "$work/held" || fail "locks: $(cat "$work/held")"
ip link set eth0 down || fail "ip link"
reads h2 35 &
other=$!
reads h1 35
read_is h1 "$some"'.*server 1 on node h2: does not answer'
wait $other || exit 1
read_is h2 '20 failed, .*server 0 on node h1: does not answer'
wait $holder
[ $? -ge 128 ] || fail "the client with locks is not killed"
reads h1 1
ip link set eth0 up || fail "ip link"
tries=0
until reads h1 35 && reads h2 35 && grep -q '^20 fine' "$work/read.h1" && grep -q '^20 fine' "$work/read.h2"; do
    [ $tries -lt 10 ] || fail "the network is back, and the pool is not"
    tries=$((tries + 1))
    sleep 1
done

# does HOST COMMAND: it does it with all files. Locks of the client that was killed are soon released.
does() {
    tries=0
    until on "$1" "$lost" "$point" "$2" 20 >"$work/done" && grep -q '^20 fine' "$work/done"; do
        [ $tries -lt 5 ] || fail "on $1, $2: $(cat "$work/done")"
        tries=$((tries + 1))
        sleep 1
    done
}
does h1 lock
does h2 lock
does h2 write
reads h1 5
read_is h1 '^20 fine, 0 failed, 0 absent, 0 short, 0 zeros; '
does h1 remove
reads h2 5
read_is h2 '^0 fine, 0 failed, 20 absent'
"$deltafs" pool stop "$point" || fail "exit code $? of 'pool stop'"
wait "$servers" || fail "exit code $? of the servers: $(cat "$work/servers")"
servers=
nothing_left h1
nothing_left h2
