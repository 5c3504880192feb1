#!/bin/sh
# Damage in two blocks of one epoch of one partition: verify names both, and verify, scan and get go on behind them. (They
# once stopped at the first, and a user could think that all the rest was lost.)
. "$top_srcdir/tests/lib.sh"
. "$top_srcdir/tests/cli/cli_lib.sh"

records=2000
awk -v n=$records 'BEGIN { for (i = 0; i < n; i++) printf "5 %d %08x%08x\n", i, i, 7 * i }' |
    "$put_records" "$work/d" schema=a:u4,b:u4 block=256 codec=none || fail "put_records"
expect 0 "$deltafs" verify "$work/d"
data=$work/d/00/p00000000.data
for offset in 100 10000; do
    printf '\377' | dd of="$data" bs=1 seek=$offset conv=notrunc 2>/dev/null
done

expect 3 "$deltafs" verify "$work/d"
[ "$(grep -c "$data: damaged at offset" "$work/err")" -eq 2 ] || fail "verify: $(cat "$work/err")"
stdout_has "2 damages"

# A block has 64 records of 8 bytes; two blocks are left out, and nothing else.
expect 3 "$deltafs" scan "$work/d" --format csv
says "$data: damaged at offset"
says "verify names"
[ "$(wc -l <"$work/out")" -eq $((1 + records - 128)) ] || fail "scan gives $(wc -l <"$work/out") lines"

expect 0 "$deltafs" get "$work/d" 1999
expect 3 "$deltafs" get "$work/d" 0 1999 --format raw
[ "$(wc -c <"$work/out")" -eq 8 ] || fail "get does not go on"
