#!/bin/sh
# Two hosts: a simulation writes on both, a second job analyses what it wrote, and all is drained; and files are where
# they were created, if that is asked for.
. "$top_srcdir/tests/pool/hosts_lib.sh"
export DELTAFS_SYNC=none
cd "$work" || exit 99
mpiio=${lost%/*}/pool_mpiio

# step HOSTS RANKS COMMAND...: a job on these hosts, with the pool.
step() {
    launch "$1" 1
    ranks=$2
    shift 2
    mpi "$ranks" "$deltafs" run --pool "$point" -- "$@" 2>"$work/err" || fail "$*: $(cat "$work/err")"
    grep deltafs: "$work/err" && fail "a message"
}

hosts_start
# The simulation: a file of each rank, and some of all.
# shellcheck disable=SC2016
step h1,h2 4 sh -c 'mkdir -p "$0" && seq "$PMI_RANK"00000 "$PMI_RANK"99999 >"$0/rank.$PMI_RANK"' "$point/run"
step h1,h2 4 "$mpiio" "$point/run"
expect 0 on h2 "$deltafs" pool status "$point"
[ "$(grep -c '^server . on h[12]: .* folders, [1-9]' out)" -eq 2 ] || fail "not on both hosts: $(cat out)"

# The analysis: rank 0 on h2, rank 1 on h1; both see the same.
# shellcheck disable=SC2016
step h2,h1 2 sh -c 'cd "$0" && cksum * >"../found.$PMI_RANK.$(hostname)"' "$point/run"
on h1 "$deltafs" pool drain "$point" "$work/all" || fail "drain"
[ "$(cd all && echo found*)" = "found.0.h2 found.1.h1" ] || fail "the analysis ran on $(ls all)"
same_files() { cmp "$1" "$2" || fail "$1 and $2 differ"; }
same_files all/found.0.h2 all/found.1.h1
(cd all/run && cksum ./* | sed 's,\./,,') >expected
same_files expected all/found.0.h2
for rank in 0 1 2 3; do
    seq "$rank"00000 "$rank"99999 | cmp - "all/run/rank.$rank" || fail "the file of rank $rank"
done

# By both hosts, and into a namespace.
launch h1,h2 1
expect 0 mpi 2 "$deltafs_mpi" pool drain -q "$point" "$work/both"
diff -r all both || fail "what both hosts drained differs"
"$deltafs" ns create n || fail "create"
on h2 "$deltafs" pool drain "$point/run" "$work/n:/run" || fail "drain into a namespace"
"$deltafs" ns cp -r n:/run from || fail "ns cp"
diff -r all/run from || fail "what was drained into a namespace differs"

on h2 "$deltafs" pool stop "$point" --drain "$point/run" "$work/last" || fail "exit code $? of 'pool stop'"
wait "$servers" || fail "exit code $? of the servers: $(cat "$work/servers")"
servers=
diff -r all/run last || fail "what was drained at the end differs"
nothing_left h1
nothing_left h2
