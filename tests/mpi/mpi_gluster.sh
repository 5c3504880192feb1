#!/bin/sh
# Two hosts with a file system between them that shows each of them late what the other does: GlusterFS, mounted on both
# as on a cluster, with its default options. It keeps what it knows of names, sizes and bytes for a second or two.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"
. "$top_srcdir/tests/mpi/hosts_lib.sh"

need_python
[ -n "${GLUSTER:-}" ] || rest_on_h1 "$top_srcdir/scripts/on-gluster" --hosts --dir "$work/gluster"

launch h1,h2 2
data=$GLUSTER/data
fresh
check 4 ./test_mpi_shuffle "$data" 0 2

# Of /dev/shm, which may be TMPDIR, each host has its own.
dumps=$GLUSTER/dumps
"$PYTHON3" "$cli/make_vpic.py" "$dumps" --ranks 4 --particles 2000 --steps 1,2,3,4,5,6 || fail "make_vpic.py"
expect 0 import 4 -q --format vpic -o "$GLUSTER/both" "$dumps"/p.*
expect 0 on h2 "$deltafs" verify "$GLUSTER/both"
MPIEXEC=$one_host
expect 0 import 2 -q --format vpic -o "$work/local" "$dumps"/p.*
scan_sorted "$GLUSTER/both" "$work/got"
scan_sorted "$work/local" "$work/expected"
same "$work/expected" "$work/got" "two hosts and one give different records"

# The hosts go on with a directory by turns, each of them just after it has looked at it. With what it had seen then, a
# host wrote over what the other had committed.
host=h1
for step in 1 2 3 4 5 6; do
    for reader in h1 h2; do
        on $reader "$deltafs" scan "$GLUSTER/turns" >/dev/null 2>&1
    done
    expect 0 on $host "$deltafs_mpi" import -q --format vpic --append -o "$GLUSTER/turns" "$dumps"/p.$step.*
    [ $host = h1 ] && host=h2 || host=h1
    expect 0 on $host "$deltafs" verify "$GLUSTER/turns"
    epochs=$(on $host "$deltafs" info "$GLUSTER/turns" | awk '$1 == "epochs" { print $2 }')
    [ "$epochs" = "$step" ] || fail "$epochs epochs on $host, not $step"
done
scan_sorted "$GLUSTER/turns" "$work/got"
same "$work/expected" "$work/got" "hosts by turns and one give different records"

# A file that is deleted and created again is the new one on the other host, which has just read the old.
for i in 1 2 3; do
    seq "$i" $((1000 * i)) >"$work/plain"
    [ $i -eq 1 ] || expect 0 "$deltafs" rm "$GLUSTER/file"
    expect 0 "$deltafs" cp "$work/plain" "deltafs:$GLUSTER/file"
    on h2 "$deltafs" cat "$GLUSTER/file" >"$work/got" 2>"$work/err" || fail "cat: $(cat "$work/err")"
    same "$work/plain" "$work/got" "host h2 has another file"
done

# Both want it at once: one after the other gets it.
for host in h1 h2; do
    on $host "for step in 1 2 3 4 5 6; do
        tries=0
        until $deltafs_mpi import -q --lease 0 --format vpic --append -o $GLUSTER/race $dumps/p.\$step.*; do
            [ \$tries -lt 50 ] || exit 1
            tries=\$((tries + 1))
        done
    done" 2>"$work/race-$host" &
done
wait
expect 0 "$deltafs" verify "$GLUSTER/race"
scan_sorted "$GLUSTER/race" "$work/got"
same "$work/expected" "$work/got" "hosts at once and one give different records: $(cat "$work"/race-h?)"

# The lock of a job is seen on the other host, and gone when the job is killed. What it committed is there.
mkfifo "$work/lines"
"$put_records" "$GLUSTER/held" <"$work/lines" &
holder=$!
exec 3>"$work/lines"
printf '%s\n' "1 5 aabb" "2 5 ccdd" "3 5 eeff" >&3
tries=0
until "$deltafs" get "$GLUSTER/held" 5 2>/dev/null | grep -q .; do
    [ $tries -lt 100 ] || fail "no record is committed"
    sleep 0.1
    tries=$((tries + 1))
done
expect 3 on h2 "$deltafs" repair --apply --lease 0 "$GLUSTER/held"
says "is writing the directory"
kill -9 $holder
wait $holder 2>/dev/null
exec 3>&-
expect 0 on h2 "$deltafs" repair --apply --lease 0 "$GLUSTER/held"
expect 0 on h2 "$deltafs" verify "$GLUSTER/held"
on h2 "$deltafs" get "$GLUSTER/held" 5 >"$work/got" || fail "get"
[ "$(grep -c . "$work/got")" -ge 1 ] || fail "the committed record has gone"
