#!/bin/sh
# deltafs-mpi compact: the same answers as of the source, by every command, with any number of ranks; and nothing is left
# of a compaction that did not end.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

"$PYTHON3" - >"$work/lines" <<'END_OF_PYTHON' || fail python3
import random, struct
random.seed(26)
for label in range(0, 60, 5):
    for key in random.sample(range(1000), 700):
        print(label, key, struct.pack("<fi", random.random(), key % 7).hex())
END_OF_PYTHON
"$put_records" "$work/d" schema=v:f4,n:i4 partitions=3 <"$work/lines" || fail put_records
expect 0 "$deltafs" attr "$work/d" scale=2.5 --unit m
expect 0 "$deltafs" attr "$work/d" 'twice==2*v'

# alike NEW ARGUMENT...: the command's output is the same of both directories.
alike() {
    which=$1
    shift
    command=$1
    shift
    "$deltafs" "$command" "$work/d" "$@" >"$work/wanted" 2>"$work/err" || fail "$command $*: $(cat "$work/err")"
    expect 0 "$deltafs" "$command" "$which" "$@"
    same "$work/wanted" "$work/out" "$command $*"
}
seq 1 13 1000 >"$work/keys"
for ranks in 1 2; do
    new=$work/new.$ranks
    expect 0 mpi $ranks "$deltafs_mpi" compact "$work/d" -o "$new"
    stdout_has "new.$ranks: 8400 records compacted by $ranks rank"
    alike "$new" get --keys "$work/keys" --format csv
    alike "$new" get 7 8 9 --epochs 10:30 --format csv
    alike "$new" scan --format csv
    alike "$new" scan --epochs 15:25 --partition 1 --format json
    alike "$new" select --where 'twice > 1.5 and n != 3' --format csv
    alike "$new" select --top 20 --by 'v * scale' --epochs 5: --format csv
    alike "$new" attr
    expect 0 "$deltafs" verify "$new"
    stdout_has ": 8400 records in "
done
"$deltafs" get "$work/new.1" 8 --format csv --stats >"$work/out" 2>"$work/err" || fail "get --stats"
grep -q '^stats: reads=[1-4] ' "$work/err" || fail "reads: $(cat "$work/err")"

expect 0 "$deltafs" info "$work/new.1"
stdout_has "the first 12 epochs"
expect 0 "$deltafs" cp "$work/new.1" "$work/copy" --epochs 10:20
"$deltafs" scan "$work/d" --epochs 10:20 --format csv >"$work/wanted" || fail scan
expect 0 "$deltafs" scan "$work/copy" --format csv
same "$work/wanted" "$work/out" "a copy"
expect 0 "$deltafs" info "$work/copy"
stdout_has "the first 3 epochs"
expect 1 "$deltafs" cp "$work/new.1" "$work/none" --epochs 1000:

# Later epochs, and all of them compacted again.
"$PYTHON3" -c 'import struct, sys; sys.stdout.buffer.write(b"".join(struct.pack("<Qfi", k, k / 8, 0) for k in range(50)))' \
    >"$work/dump.60" || fail python3
for to in d new.2; do
    expect 0 import 2 --format raw --schema id:u8,v:f4,n:i4 --key id --append -o "$work/$to" "$work/dump.60"
done
expect 0 mpi 2 "$deltafs_mpi" compact "$work/new.2" -o "$work/again"
for new in new.2 again; do
    alike "$work/$new" get --keys "$work/keys" --format csv
    alike "$work/$new" scan --epochs 50: --format csv
    alike "$work/$new" select --where 'twice < 1' --format csv
    expect 0 "$deltafs" verify "$work/$new"
done

# An index of values is of all epochs, too.
expect 0 mpi 2 "$deltafs_mpi" index --by 'half:v/2' "$work/new.1"
"$deltafs" select "$work/d" --epochs :55 --where 'v/2 > 0.49' --fields v --format csv >"$work/wanted" || fail select
expect 0 "$deltafs" select "$work/new.1" --where 'half > 0.49' --fields v --format csv
same "$work/wanted" "$work/out" "select by an index"

# Some epochs.
expect 0 mpi 2 "$deltafs_mpi" compact "$work/d" -o "$work/some" --epochs 10:20 --quiet
[ ! -s "$work/err" ] && [ ! -s "$work/out" ] || fail "--quiet says something"
"$deltafs" scan "$work/d" --epochs 10:20 --format csv >"$work/wanted" || fail scan
expect 0 "$deltafs" scan "$work/some" --format csv
same "$work/wanted" "$work/out" "some epochs"

# Without epochs, onto something, of something else.
expect 1 "$deltafs_mpi" compact "$work/d" -o "$work/none" --epochs 1000:
expect 3 mpi 2 "$deltafs_mpi" compact "$work/d" -o "$work/some"
says "some: exists already"
expect 3 "$deltafs_mpi" compact "$work/lines" -o "$work/none"
expect 3 "$deltafs_mpi" compact "$work/d" -o "$work/missing/none"
expect 2 "$deltafs_mpi" compact "$work/d"
says "-o NEW is missing"
# An index by value would not be written.
expect 2 "$deltafs_mpi" compact "$work/d" -o "$work/none" --index_by 'x:x'
says "unknown option '--index_by'"
[ ! -e "$work/none" ] && [ -z "$(ls -A "$work" | grep deltafs-compact)" ] || fail "something is left: $(ls -A "$work")"

# Damage of the source.
cp -r "$work/d" "$work/bad" || fail cp
"$PYTHON3" - "$work/bad/01/p00000001.data" <<'END_OF_PYTHON' || fail python3
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(5000)
    f.write(b"damage")
END_OF_PYTHON
expect 3 mpi 2 "$deltafs_mpi" compact "$work/bad" -o "$work/none"
says "damaged at offset"
[ ! -e "$work/none" ] && [ -z "$(ls -A "$work" | grep deltafs-compact)" ] || fail "damage leaves $(ls -A "$work")"

# Keys of bytes, values of any size.
printf '1 6262 -\n1 61 0102\n2 61 03\n2 630a 04\n3 61 05\n' | "$put_records" "$work/b" keys=bytes || fail put_records
"$deltafs" scan "$work/b" --format csv >"$work/wanted" || fail scan
expect 0 "$deltafs_mpi" compact "$work/b" -o "$work/bytes"
expect 0 "$deltafs" scan "$work/bytes" --format csv
same "$work/wanted" "$work/out" "keys of bytes"
expect 0 "$deltafs" get "$work/bytes" a --format csv
[ "$(grep -c '^a,' "$work/out")" -eq 3 ] || fail "a key of bytes: $(cat "$work/out")"
