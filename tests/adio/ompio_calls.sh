#!/bin/sh
# Each call of MPI-IO by itself, and the ways that Open MPI has to keep a shared file pointer.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/adio/ompio_lib.sh"

mkdir "$work/folder"
: >"$work/folder/of another"
for ranks in 1 3; do
    run "$ranks" ./ompio_calls_test "$name" "$work/folder"
done
[ -e "$work/folder/of another" ] || fail "a folder that is no logical file was touched"

# Open MPI alone does not survive a name as long as this.
long=$(printf 'long%.0s' $(seq 50))
mkdir -p "$work/$long/$long"
run 2 ./ompio_calls_test "deltafs:$work/$long/$long/file" "$work/folder"

export ONLY_SHARED=1
for sharedfp in sm lockedfile; do
    run 3 --mca sharedfp "$sharedfp" ./ompio_calls_test "$name" "$work/folder"
done
RELAXED=1 run 3 ./ompio_calls_test "$name" "$work/folder"
left=$(cd "$work" && ls -d file* 2>/dev/null)
[ -z "$left" ] || fail "left behind: $left"
