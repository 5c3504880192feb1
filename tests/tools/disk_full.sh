#!/bin/sh
# Import onto a real file system that gets full: all ranks end with 3 and the cause, and what was committed before is
# whole.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python
MPI_TIMEOUT=60

mkdir "$work/small"
mount -t tmpfs -o size=2M tmpfs "$work/small" 2>"$work/err" || skip "no right to mount: $(cat "$work/err")"
trap 'umount "$work/small"; rm -rf "$work"' EXIT

steps=$(seq -s , 0 10 240)
"$PYTHON3" "$cli/make_vpic.py" "$work/dumps" --particles 3001 --ranks 2 --steps "$steps" || fail "make_vpic.py"
oracle csv "$work"/dumps/p.* | sort >"$work/all" || fail "oracle"

for ranks in 1 2 3; do
    for sync in commit none; do
        expect 3 import $ranks --format vpic --codec none --sync $sync -o "$work/small/d" "$work"/dumps/p.*
        says "No space left"
        says "$work/small/d has all epochs up to label"
        label=$(sed -n 's/.*has all epochs up to label \([0-9]*\);.*/\1/p' "$work/err")
        [ "$label" -ge 0 ] && [ "$label" -lt 240 ] || fail "$ranks ranks: label $label"
        expect 0 "$deltafs" verify "$work/small/d"
        scan_sorted "$work/small/d" "$work/sorted"
        awk -F, -v label="$label" '$2 <= label' "$work/all" >"$work/expected"
        same "$work/expected" "$work/sorted" "$ranks ranks, sync $sync: not the epochs up to label $label"
        rm -r "$work/small/d"
    done

    # Full from the start.
    head -c 3M /dev/zero >"$work/small/filler" 2>/dev/null
    expect 3 import $ranks --format vpic -o "$work/small/d" "$work"/dumps/p.*
    says "No space left"
    [ ! -e "$work/small/d" ] || fail "a directory without epochs is left"
    rm "$work/small/filler"
done

# A compaction onto it leaves nothing.
expect 0 import 2 --format vpic -o "$work/source" "$work"/dumps/p.*
for ranks in 1 2; do
    expect 3 mpi $ranks "$deltafs_mpi" compact "$work/source" --codec none -o "$work/small/new"
    says "No space left"
    [ -z "$(ls -A "$work/small")" ] || fail "$ranks ranks: a compaction leaves $(ls -A "$work/small")"
done
