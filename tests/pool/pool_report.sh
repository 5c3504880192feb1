#!/bin/sh
# What 'deltafs-mpi pool report' says about requests, and what servers count.
. "$top_srcdir/tests/pool/pool_lib.sh"
[ -n "${PYTHON3:-}" ] || skip "no Python"

expect 2 "$deltafs_mpi" pool report
expect 2 "$deltafs_mpi" pool report --servers 4096 x
expect 2 "$deltafs_mpi" pool report --servers 4096 --memory much
expect 2 "$deltafs_mpi" pool report --servers 0
expect 2 "$deltafs_mpi" pool report --servers 32769
says "a pool has 1 to 32768"
expect 0 "$deltafs_mpi" pool report --servers 4096 --memory 100M
grep -q '^  clients  *49 at most' "$work/out" || fail "the number of clients: $(cat "$work/out")"

# With each server on a node of its own most requests are to other nodes.
pool_apart || skip "this user may not make namespaces"
for n in 1 3; do
    expect 0 "$deltafs_mpi" pool report --servers $n --json
    mv "$work/out" "$work/report"
    pool_start $n
    $client_node ./pool_count "$point" >"$work/counted" || fail "counting"
    pool_stop
    "$PYTHON3" - "$work/report" "$work/counted" <<'END_OF_PROGRAM' || fail "$n servers"
import json, sys
report, counted = (json.load(open(f)) for f in sys.argv[1:])
wrong = {k: (report[k], n) for k, n in counted.items() if n > report[k] or n < report[k] / 2}
if report["servers"] > 1:
    wrong.update((k, (report[k], counted[k])) for k in ("first_create", "create", "stat", "renamed_stat", "list")
                 if report[k] != counted[k])
if wrong:
    sys.exit("reported and counted: %s" % wrong)
END_OF_PROGRAM
done
