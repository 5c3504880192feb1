#!/bin/sh
# Clients that are killed while they write or remove, and a local disk that is full: nothing wrong is read, and the pool
# goes on.
. "$top_srcdir/tests/pool/pool_lib.sh"

pool_apart || skip "this user may not make namespaces"

# run COMMAND [ARGUMENT...]: pool_lost, which finds no wrong byte and ends soon.
run() {
    timeout -k 5 60 $client_node ./pool_lost "$point" "$@" >"$work/out" || fail "code $? of $*: $(cat "$work/out")"
}

# printed TEXT: the last run did that.
printed() { grep -q "$1" "$work/out" || fail "not '$1': $(cat "$work/out")"; }

pool_start 2
for time in 0.01 0.02 0.03; do
    for command in write remove write; do
        timeout 60 $client_node ./pool_lost "$point" $command 100000 $time
        [ $? -ge 128 ] || fail "$command is not killed"
    done
    run read 100 5
    printed ' 0 failed, '
done
run write 10 100 9
run read 10 5 9
printed '^10 fine, 0 failed, 0 absent, 0 short, 0 zeros; '
expect 0 $client_node "$deltafs" pool status "$point"
printed '^server 0 .* 1 clients'
pool_stop

# The disk of server 1 is full: what needs room there fails, with a message; what is there is read and removed.
unshare --mount mount -t tmpfs tmpfs "$work/local" 2>/dev/null || exit 0
cat >"$work/small" <<'END_OF_SCRIPT'
[ "${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-}}" != 1 ] || mount -t tmpfs -o size=24M tmpfs "$1" || exit 1
shift
exec "$@"
END_OF_SCRIPT
server_node="unshare --mount $server_node sh $work/small $work/local"
pool_start 2
run write 40
printed '^[1-9][0-9]* fine, [1-9][0-9]* failed, .*server 1 on node node.1: .*No space left on device'
run read 40 5
printed ' 0 failed, '
run remove 40
printed ' 0 failed, '
# Nothing is left, also of files that have got a part of their bytes.
expect 0 $client_node "$deltafs" pool status "$point"
[ "$(grep -c '^server .* folders, 0 bytes, ' "$work/out")" = 2 ] || fail "bytes are left: $(cat "$work/out")"
run write 10 100 9
printed '^10 fine, '
run read 10 5 9
printed '^10 fine, 0 failed, 0 absent, 0 short, 0 zeros; '
pool_stop
