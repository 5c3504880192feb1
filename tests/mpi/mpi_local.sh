#!/bin/sh
# Records that stay with their writers: what other tests ask of a job, with layout=local; and the same answers as without,
# by jobs of other numbers of ranks, one after the other.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

# with_local N COMMAND...
with_local() {
    ranks=$1
    shift
    fresh
    check "$ranks" env DELTAFS_LAYOUT=local "$@"
}
with_local 2 ./test_mpi_errors "$data"
with_local 3 ./test_mpi_disk "$data" limit
with_local 2 ./test_mpi_handles "$data" 300
for ranks in 1 3; do
    # Ranks that have lost each other leave memory behind that messages under way still use.
    ASAN_OPTIONS="detect_leaks=0:$ASAN_OPTIONS" with_local $ranks ./test_mpi_async "$data"
done
has_sanitizers || with_local 2 ./test_mpi_memory "$data" 40
has_sanitizers || with_local 2 ./test_mpi_memory "$data" any 1000 64

# minipic writes the same with both; what travels is 16 bytes a record instead of 40.
for layout in partitioned local; do
    fresh
    check 3 ./minipic -o "$data/d" --steps 40 --every 20 -n 5000 -q -O layout=$layout -O "stats=$work/stats.$layout"
    expect 0 "$deltafs" verify "$data/d"
    expect 0 "$deltafs" scan --format csv "$data/d"
    sort "$work/out" >"$work/$layout"
    expect 0 "$deltafs" get --format csv "$data/d" 1234
    cp "$work/out" "$work/$layout.get"
    expect 0 "$deltafs" info "$data/d"
    grep -qx "layout          $layout" "$work/out" || fail "info does not say $layout"
done
cmp "$work/partitioned" "$work/local" || fail "a scan depends on where records are"
cmp "$work/partitioned.get" "$work/local.get" || fail "a trajectory depends on where records are"
[ -n "$PYTHON3" ] || skip "no Python for the rest"
"$PYTHON3" - "$work/stats.partitioned" "$work/stats.local" <<'END' || fail "what travels"
import json, sys

def bytes_each(path):
    hops = json.load(open(path))["hops"].values()
    sums = [sum(hop[what]["mean"] for hop in hops) for what in ("bytes", "records")]
    return sums[0] / sums[1]

shuffle, local = map(bytes_each, sys.argv[1:])
if not (40 <= shuffle < 42 and 16 <= local < 17):
    sys.exit("%f and %f bytes a record" % (shuffle, local))
END
