#!/bin/sh
# A short run of scripts/torture's campaigns; TORTURE_TIMES times as many cases as the quick tests have.
. "$top_srcdir/tests/support/lib.sh"
times=${TORTURE_TIMES:-1}

# short KIND COUNT: fails unless so many cases were tried and nothing was found.
short() {
    expect 0 timeout -k 5 600 ./torture "$1" --count "$2" --seed 1 --folder "$work"
    grep -qx "torture: $1 $2 tried, 0 lost, 0 wrong" "$work/out" || fail "$(cat "$work/out")"
}

short crash $((25 * times))
short fault $((100 * times))

# alone KIND COUNT: the same for a campaign with a program of its own.
alone() {
    expect 0 timeout -k 5 600 "./torture-$1" --count "$2" --seed 1 --folder "$work"
    grep -qx "torture: $1 $2 tried, 0 lost, 0 wrong" "$work/out" || fail "$(cat "$work/out" "$work/err")"
}

alone files $((20 * times))
alone memory $((15 * times))
alone index $((20 * times))
alone compact $((8 * times))
alone namespace $((10 * times))
