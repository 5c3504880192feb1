#!/bin/sh
# deltafs-mpi route: what the shuffle of a job would take; no launcher is needed.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"

# route RANKS PER-NODE OPTION...: the numbers into $work/out.
route() {
    ranks=$1
    per_node=$2
    shift 2
    expect 0 "$deltafs_mpi" route --ranks "$ranks" --per-node "$per_node" --json "$@"
}
# number NAME
number() {
    sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$work/out"
}
# is NAME VALUE
is() {
    [ "$(number "$1")" = "$2" ] || fail "$1 is $(number "$1"), not $2: $(cat "$work/out")"
}

# What the project promises of a million ranks.
route 131072 32
[ "$(number bytes_per_rank)" -le 16777216 ] || fail "$(cat "$work/out")"
is remote_peers 128
is local_peers 31
is hops 3
route 1048576 128
[ "$(number bytes_per_rank)" -le 16777216 ] || fail "$(cat "$work/out")"
is remote_peers 64
is local_peers 127
is nodes 8192
$PYTHON3 -c 'import json, sys; json.load(sys.stdin)' <"$work/out" || fail "no JSON: $(cat "$work/out")"

route 12 4 --route direct
is remote_peers 8
is hops 1
route 12 4 --route 3hop --memory 8M
is nodes 3
[ "$(number bytes_per_rank)" -le 1048576 ] || fail "more than an eighth of memory: $(cat "$work/out")"
route 1 1
is hops 0
is bytes_per_rank "$(number bytes_per_rank)"
[ "$(number bytes_per_rank)" -lt 20000 ] || fail "one rank takes $(number bytes_per_rank)"
DELTAFS_ROUTE=grid expect 0 "$deltafs_mpi" route --ranks 4096 --per-node 1
grep -q '^route  *grid, 2 hops at most' "$work/out" || fail "the environment is not heeded: $(cat "$work/out")"

# The manual's table is what the command says.
sed -n '/^\.\\" ROUTES$/,/^\.fi$/s/^ *\([0-9].*[0-9]\)$/\1/p' "$top_srcdir/man/deltafs-performance.7" >"$work/table"
[ "$(wc -l <"$work/table")" -ge 5 ] || fail "no table of routes in deltafs-performance(7)"
while read -r ranks per_node name hops peers bytes; do
    route "$ranks" "$per_node"
    grep -q "\"route\": \"$name\"" "$work/out" || fail "$ranks on $per_node: not $name but $(cat "$work/out")"
    is hops "$hops"
    is remote_peers "$peers"
    is bytes_per_rank "$bytes"
done <"$work/table"

for words in "4 8 4 on 1 node, 4 each" "5 2 5 on 3 nodes, up to 2 each" "6 3 6 on 2 nodes, 3 each"; do
    rest=${words#* }
    expect 0 "$deltafs_mpi" route --ranks "${words%% *}" --per-node "${rest%% *}"
    grep -q "^ranks  *${rest#* }$" "$work/out" || fail "$words: $(head -n 1 "$work/out")"
done

wrong() {
    text=$1
    shift
    expect 2 "$deltafs_mpi" route "$@"
    says "$text"
    [ ! -s "$work/out" ] || fail "output of: deltafs-mpi route $*"
}
wrong "--ranks and --per-node must be given" --ranks 4
wrong "'x' is no number" --ranks x --per-node 1
wrong "4 ranks, 0 on a node: both must be 1 to 2147483647" --ranks 4 --per-node 0
wrong "3000000000 ranks, 1 on a node: both must be 1 to 2147483647" --ranks 3000000000 --per-node 1
wrong "--per-node needs a value" --ranks 4 --per-node
wrong "unknown option '--nodes'" --ranks 4 --per-node 2 --nodes 2
wrong "must be given, and no arguments" --ranks 4 --per-node 2 more
wrong "auto, direct, 3hop or grid" --ranks 4 --per-node 2 --route 4hop
expect 3 "$deltafs_mpi" route --ranks 131072 --per-node 32 --route direct
says "route=direct takes"
expect 3 "$deltafs_mpi" route --ranks 131072 --per-node 32 --route direct --memory 64M
says "route=direct takes"
says "or route=auto"
