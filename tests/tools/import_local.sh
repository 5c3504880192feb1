#!/bin/sh
# Import with --layout local: the same answers as with the other, by jobs of other numbers of ranks.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

schema=id:u8,x:f4,y:f8,c:i4
for i in 1 2 3; do
    "$PYTHON3" "$cli/make_raw.py" $schema id 700 "$work/$i" --seed $i --epoch $((10 * i)) || fail "make_raw.py"
done
import_with() {
    ranks=$1
    shift
    expect 0 import "$ranks" --format raw --schema $schema --key id "$@"
}
for layout in partitioned local; do
    import_with 3 --layout $layout --epoch 10 -o "$work/$layout" "$work/1.bin"
    import_with 1 --append --epoch 20 -o "$work/$layout" "$work/2.bin"
    import_with 4 --append --epoch 30 -o "$work/$layout" "$work/3.bin"
    expect 0 "$deltafs" verify "$work/$layout"
    scan_sorted "$work/$layout" "$work/$layout.csv"
done
same "$work/partitioned.csv" "$work/local.csv" "what comes out depends on the layout"
[ "$(wc -l <"$work/local.csv")" -eq 2100 ] || fail "not all records"
[ "$(ls "$work"/local/*/*.values | wc -l)" -eq 8 ] || fail "not a log for each writer of each job"
[ ! -e "$work/partitioned/00/v00000000.values" ] || fail "a value log without layout=local"
expect 2 import 2 --format raw --schema $schema --key id --append --layout partitioned --epoch 40 -o "$work/local" "$work/3.bin"
says "local"

# As an application sees it that knows nothing of such logs, one that lost them has damage, and nothing wrong.
rm "$work"/local/00/v00000000.values
expect 3 "$deltafs" verify "$work/local"
says "v00000000.values"
expect 3 "$deltafs" scan "$work/local" --format csv
says "v00000000.values: damaged"
sort "$work/out" >"$work/left"
[ "$(comm -23 "$work/left" "$work/local.csv" | grep -cv '^key')" -eq 0 ] || fail "a scan gives what was not written"
