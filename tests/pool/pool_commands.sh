#!/bin/sh
# The commands of pools, and what they say when something is wrong.
. "$top_srcdir/tests/pool/pool_lib.sh"

expect 1 "$deltafs" pool wait "$point" --timeout 0
grep -q 'no pool is mounted here' "$work/err" || fail "the message of 'wait'"
expect 1 "$deltafs" pool status "$point"
expect 1 "$deltafs" pool stop "$point"
expect 2 "$deltafs" pool wait
expect 2 mpi 1 "$deltafs_mpi" pool --mount "$point"
for size in much 1KM -1 +1 16777216T 99999999999999999999 ''; do
    expect 2 "$deltafs_mpi" pool report --servers 1 --memory "$size"
    says "is no number of bytes"
done

expect 2 mpi 1 "$deltafs_mpi" pool --mount "$point" --dir "$work/x" --memory 1M
says "memory for clients: at least"

pool_start 2
expect 0 "$deltafs" pool status "$point"
grep -q '^all: 2 servers, 0 files, 1 folders, 0 bytes' "$work/out" || fail "what 'status' prints"
expect 0 "$deltafs" pool status "$point" --json
"$PYTHON3" -c 'import json, sys; s = json.load(open(sys.argv[1]))["servers"]; assert len(s) == 2 and s[0]["folders"] == 1' \
    "$work/out" || fail "the JSON of 'status'"
[ "$(grep -o '"clients": 1' "$work/out" | wc -l)" -eq 2 ] || fail "a client does not ask each server of its node directly"
# There is one at the mount point; and its folder is used.
expect 3 mpi 1 "$deltafs_mpi" pool --mount "$point" --dir "$work/local/other"
grep -q "$point: another pool is mounted here; 'deltafs pool stop' ends it" "$work/err" || fail "the message of a second pool"
expect 3 mpi 1 "$deltafs_mpi" pool --mount "$work/other" --dir "$work/local/0"
grep -q 'is no empty folder' "$work/err" || fail "the message of a folder that is used"
expect 0 "$deltafs" pool status "$point"
pool_stop

# A folder that others can enter.
chmod 755 "$DELTAFS_POOL_DIR"
expect 3 "$deltafs" pool status "$point"
grep -q 'is no folder of this user with mode 700' "$work/err" || fail "the message of an open folder"
chmod 700 "$DELTAFS_POOL_DIR"

# A pool that is ended by a signal leaves nothing, too.
pool_start 1
kill -TERM "$(server_pids)"
wait "$servers"
servers=
[ -z "$(ls -A "$work/local")" ] || fail "servers that were ended by a signal left files"
