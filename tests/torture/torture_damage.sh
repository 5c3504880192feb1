#!/bin/sh
# A short run of the damage campaign; TORTURE_COUNT cases.
. "$top_srcdir/tests/support/lib.sh"

expect 0 timeout -k 5 300 "$top_builddir/torture-damage" --corpus "$top_srcdir/tests/corpus" --seed 5 \
    --count "${TORTURE_COUNT:-3000}"
grep -qx 'torture: damage [0-9]* tried, 0 lost, 0 wrong' "$work/out" || fail "$(cat "$work/out" "$work/err")"
