#!/bin/sh
# Damage in two blocks of one epoch of one partition: verify names both, and verify, scan and get go on behind them. (They
# once stopped at the first, and a user could think that all the rest was lost.)
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"

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
says "which verify lists"
[ "$(wc -l <"$work/out")" -eq $((1 + records - 128)) ] || fail "scan gives $(wc -l <"$work/out") lines"

expect 0 "$deltafs" get "$work/d" 1999
expect 3 "$deltafs" get "$work/d" 0 1999 --format raw
[ "$(wc -c <"$work/out")" -eq 8 ] || fail "get does not go on"
says "missing from the answer: epoch 5; verify lists"
expect 0 "$deltafs" info "$work/d"
[ ! -s "$work/err" ] || fail "info: $(cat "$work/err")"

# A truncated log: said once; the blocks that it misses in their order, a few of them. (Once it was all of them,
# by key, tens of thousands.)
for label in 10 20 30; do
    awk -v n=$records -v l=$label 'BEGIN { for (i = 0; i < n; i++) printf "%d %d %08x%08x\n", l, i, i, 7 * i }'
done | "$put_records" "$work/cut" schema=a:u4,b:u4 block=256 codec=none partitions=2 || fail "put_records"
for partition in 0 1; do
    data=$work/cut/0$partition/p0000000$partition.data
    dd if=/dev/null of="$data" bs=1 seek=9000 2>/dev/null
done
expect 3 "$deltafs" verify "$work/cut"
[ "$(wc -l <"$work/err")" -eq 18 ] || fail "verify: not 9 lines a file: $(cat "$work/err")"
sed -n 1p "$work/err" | grep -q "00000.data: truncated at offset 9000: the file has 9000 bytes, at least [0-9]* expected" ||
    fail "verify does not begin with a log's length: $(cat "$work/err")"
sed -n 9p "$work/err" | grep -qE "00000.data: and [0-9]+ more, which verify --all names" || fail "verify: $(cat "$work/err")"
sed -n 10p "$work/err" | grep -q "00001.data: truncated" || fail "verify does not go file by file: $(cat "$work/err")"
expect 3 "$deltafs" verify "$work/cut" --all
damages=$(sed -n 's/.* \([0-9]*\) damages$/\1/p' "$work/out")
[ "$(wc -l <"$work/err")" -eq "$damages" ] || fail "verify --all: not $damages lines"
sed -n 's/.*\(p0.*\): damaged at offset \([0-9]*\):.*/\1 \2/p' "$work/err" >"$work/offsets"
sort -k1,1 -k2,2n "$work/offsets" >"$work/sorted"
same "$work/sorted" "$work/offsets" "verify --all is not in order"
expect 3 "$deltafs" get "$work/cut" 1990 --format raw
says "missing from the answer: epochs 20, 30; verify lists"
expect 0 "$deltafs" info "$work/cut"
says "a file is truncated; run 'deltafs verify $work/cut'"
expect 0 "$deltafs" info "$work/cut" --json
says "deltafs verify"
