#!/bin/sh
# A pool ends, and another one begins at its mount point: they are not mistaken for each other.
. "$top_srcdir/tests/pool/pool_lib.sh"

# A client's handle of the first one does not write into files of the second one.
pool_start 1
mkfifo "$work/fifo"
exec 9<>"$work/fifo"
timeout 60 ./pool_outlive "$point" <&9 >"$work/out" &
client=$!
tries=0
until grep -q ready "$work/out"; do
    [ $tries -lt 1000 ] || fail "a client does not begin"
    tries=$((tries + 1))
    sleep 0.01
done
pool_stop
pool_start 1
echo new >"$work/new"
"$deltafs" pool load -q "$work/new" "$point/new" || fail "pool load"
echo >&9
wait $client || fail "a client of a pool that has ended"
"$deltafs" pool drain -q "$point/new" "$work/back" && cmp "$work/new" "$work/back" || fail "a file has other bytes"

# The servers are killed, and leave their list. It is there until those of the next pool publish theirs; 'wait' waits.
list=$(ls "$DELTAFS_POOL_DIR"/*/servers)
cp "$list" "$work/list"
kill -KILL "$(server_pids)"
wait "$servers"
rm -r "$work/local"
pool_start 2
mv "$list" "$list.new"
cp "$work/list" "$list"
timeout 60 "$deltafs" pool wait "$point" --timeout 30 &
client=$!
sleep 0.1
kill -0 $client 2>/dev/null || fail "'pool wait' is content with a list of servers that were killed"
mv "$list.new" "$list"
wait $client || fail "'pool wait' does not wait beside a list of servers that were killed"
pool_stop
