#!/bin/sh
# Every fuzz target over its inputs, those that once were findings, and FUZZ_RUNS changes of them.
. "$top_srcdir/tests/support/lib.sh"

mkdir "$work/seeds"
expect 0 "$top_builddir/fuzz-seeds" "$top_srcdir/tests/corpus" "$work/seeds"
for folder in "$work"/seeds/*; do
    target=${folder##*/}
    found=$top_srcdir/tests/fuzz/found/$target
    [ -d "$found" ] || found=
    runs=${FUZZ_RUNS:-4000}
    # Each of its files has 4 MiB.
    [ "$target" != logical ] || runs=$((runs / 8 + 1))
    # shellcheck disable=SC2086 # no word where there is no folder
    expect 0 timeout -k 5 120 "$top_builddir/fuzz-$target" --runs "$runs" --seed 3 "$folder" $found
done
