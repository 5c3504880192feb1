#!/bin/sh
# deltafs verify --continuity: tracks that jump, and those that only cross the edge of a periodic box.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

# Four epochs. Particle 1 moves by 1, 2 crosses the edge of the box (8 wide) in x, 3 and 4 are mixed up in epoch 20.
# Particle 5 is missing in epoch 20. The rest is at rest.
"$PYTHON3" - >"$work/records" <<'END'
import struct
for n, epoch in enumerate((0, 10, 20, 30)):
    place = {1: (1.0 + n, 1, 1), 2: ((6.5 + n) % 8, 2, 2), 3: (1, 1, 0), 4: (5, 5, 0), 5: (n, n, 0)}
    place.update({key: (key % 8, 3, 3) for key in range(100, 3000)})
    if epoch == 20:
        place[3], place[4] = place[4], place[3]
        del place[5]
    for key, p in place.items():
        print(epoch, key, struct.pack("<3f", *p).hex())
END
"$put_records" "$work/d" schema=x:f4,y:f4,z:f4 partitions=3 <"$work/records" || fail put_records

# It needs the times, and the speed of light.
expect 3 "$deltafs" verify --continuity "$work/d"
says "no attribute cvac"
"$deltafs" attr "$work/d" cvac=0.2
expect 3 "$deltafs" verify --continuity "$work/d"
says "no attribute time for epoch 0"
for epoch in 0 10 20 30; do
    "$deltafs" attr "$work/d" time=$epoch --from $epoch
done
# Without a box, the edge is a jump.
expect 3 "$deltafs" verify --continuity "$work/d"
says "key 2 moves by 7 from epoch 10 to 20, in which light moves by 2"
stdout_has "$work/d: 8713 steps of tracks checked, 5 jumps"
for number in x0=0 nx=16 hx=0.5; do
    "$deltafs" attr "$work/d" $number
done
expect 3 "$deltafs" verify --continuity "$work/d"
grep -c "key 3 moves by 5.65685 from epoch [12]0 to [23]0, in which light moves by 2" "$work/err" | grep -qx 2 ||
    fail "key 3: $(cat "$work/err")"
grep -c "key 4 moves" "$work/err" | grep -qx 2 || fail "key 4: $(cat "$work/err")"
stdout_has "8713 steps of tracks checked, 4 jumps"
"$deltafs" attr "$work/d" cvac=0.6
expect 0 "$deltafs" verify --continuity "$work/d"
stdout_has "8713 steps of tracks checked, 0 jumps"
"$deltafs" attr "$work/d" cvac=0.01
expect 3 "$deltafs" verify --continuity "$work/d"
says "and 3 more, which verify --continuity --all names"
expect 3 "$deltafs" verify --continuity --all "$work/d"
[ "$(grep -c "moves by" "$work/err")" -eq 11 ] || fail "not all jumps: $(cat "$work/err")"

# Two records of a key.
printf '1 7 %s\n1 7 %s\n' 000000000000000000000000 000000000000000000000000 |
    "$put_records" "$work/two" schema=x:f4,y:f4,z:f4 || fail put_records
"$deltafs" attr "$work/two" cvac=1
"$deltafs" attr "$work/two" time=1
expect 3 "$deltafs" verify --continuity "$work/two"
says "key 7 has two records in epoch 1"

# An epoch in several parts, each with its own order of keys. With 8M the tracks are read in slices.
"$PYTHON3" - >"$work/records" <<'END'
rest, moved = "0000803f" + "00" * 8, "0000a040" + "00" * 8
for epoch, step in (0, 100), (10, 1):
    for i in range(0, 400000, step):
        print(epoch, i * 0x9E3779B97F4A7C15 % 2**64, moved if epoch and i % 10000 == 0 else rest)
END
"$put_records" "$work/parts" schema=x:f4,y:f4,z:f4 partitions=1 memory=8M <"$work/records" || fail put_records
"$deltafs" scan "$work/parts" --epochs 10 --format csv | sed 1d | cut -d, -f1 | LC_ALL=C sort -c -n 2>/dev/null &&
    fail "an epoch in one part"
"$deltafs" attr "$work/parts" cvac=0.1
"$deltafs" attr "$work/parts" time=0
"$deltafs" attr "$work/parts" time=10 --from 10
for memory in 8M 64M; do
    DELTAFS_MEMORY=$memory expect 3 "$deltafs" verify --continuity --all "$work/parts"
    stdout_has "$work/parts: 4000 steps of tracks checked, 40 jumps"
    [ "$(grep -c "moves by 4 from epoch 0 to 10, in which light moves by 1" "$work/err")" -eq 40 ] ||
        fail "$memory: $(cat "$work/err")"
done

# What has no positions.
printf '1 7 00000000\n' | "$put_records" "$work/none" schema=u:f4 || fail put_records
expect 3 "$deltafs" verify --continuity "$work/none"
says "--continuity needs columns x, y and z"
printf '1 6262 000000000000000000000000\n' | "$put_records" "$work/bytes" keys=bytes schema=x:f4,y:f4,z:f4 || fail put_records
expect 3 "$deltafs" verify --continuity "$work/bytes"
says "is for keys that are numbers"

# Positions that are not set for an epoch.
"$put_records" "$work/late" schema=u:f4 <<'END' || fail put_records
0 1 0000803f
10 1 0000803f
END
for attribute in cvac=0.2 x==u y==u; do
    "$deltafs" attr "$work/late" $attribute
done
for epoch in 0 10; do
    "$deltafs" attr "$work/late" time=$epoch --from $epoch
done
"$deltafs" attr "$work/late" z==u --from 10
expect 3 "$deltafs" verify --continuity "$work/late"
says "verify: --continuity: the column z is not set for epoch 0"

# A real run's tracks are whole.
[ -d "$real" ] && [ -x "$deltafs_mpi" ] || exit 0
expect 0 import 2 --format vpic -o "$work/real" "$real"/eparticle.*
expect 0 "$deltafs" verify --continuity "$work/real"
stdout_has "819200 steps of tracks checked, 0 jumps"
