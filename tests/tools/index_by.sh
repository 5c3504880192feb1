#!/bin/sh
# Indexes by value that are written with their directory (the option index_by): by one process and by ranks, with several
# of them, and after a job that died between the two.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

# make_dump LABEL SEED
make_dump() {
    "$PYTHON3" - "$2" >"$work/dump.$1" <<'END_OF_PYTHON' || fail python3
import random, struct, sys
random.seed(int(sys.argv[1]))
for key in random.sample(range(1 << 30), 20000):
    sys.stdout.buffer.write(struct.pack("<Qffi", key, random.choice([float("nan"), 4.0]) if key % 97 == 0 else random.gauss(0, 1), random.random(), key % 7))
END_OF_PYTHON
}
import() {
    ranks=$1
    shift
    mpi "$ranks" "$deltafs_mpi" import -q --format raw --schema key:u8,v:f4,w:f4,n:i4 --key key "$@"
}
both='size:v*v +w;mixed:v + w*n'
# same_rows EXPR INDEX: as without an index.
same_rows() {
    "$deltafs" select "$work/d" --where "$1" --format csv --explain >"$work/got" 2>"$work/err" || fail "select $1"
    grep -qx "index: $2" "$work/err" || fail "$1: not by the index $2: $(cat "$work/err")"
    mv "$work/d/by" "$work/by"
    "$deltafs" select "$work/d" --where "$1" --format csv >"$work/wanted" || fail "select $1"
    mv "$work/by" "$work/d/by"
    same "$work/wanted" "$work/got" "$1"
}

for label in 1 2 3; do
    make_dump $label $label
done
import 3 --index_by "$both" --partitions 4 -o "$work/d" "$work/dump.1" "$work/dump.2" || fail import
same_rows 'v*v > 8' size
same_rows 'size > 8 and w < 0.5' size
same_rows '6 < mixed' mixed
[ "$("$deltafs" attr "$work/d" mixed)" = "mixed==v + w*n" ] || fail "mixed is $("$deltafs" attr "$work/d" mixed)"
expect 0 "$deltafs" verify "$work/d" "$work/d/by/size" "$work/d/by/mixed"
expect 0 mpi 1 "$deltafs_mpi" index --by 'size:v*v +w' "$work/d"
grep -q "0 records of 0 epochs" "$work/out" || fail "not all is indexed: $(cat "$work/out")"

import 2 --index_by 'size:v*v +n' -a -o "$work/d" "$work/dump.3" >"$work/out" 2>"$work/err" && fail "other columns"
says "option index_by: 'size': $work/d/by/size: the columns that it carries are: w:f4; asked for: n:i4; remove it before"
expect 0 "$deltafs" verify "$work/d"
: >"$work/d/by/notes"
expect 3 "$deltafs" verify "$work/d"
says "$work/d/by/notes: a file, and no index by value; remove it"
grep -q "without which all answers" "$work/err" && fail "a file is called an index: $(cat "$work/err")"
rm "$work/d/by/notes"

# A directory that goes back by an epoch under its index, as after a job that died: the epoch is another one then.
cp -R "$work/d" "$work/before"
import 2 --index_by "$both" -a -o "$work/d" "$work/dump.3" || fail "import -a"
same_rows 'v*v > 8' size
mv "$work/d/by" "$work/by"
rm -r "$work/d" "$work/before/by"
mv "$work/before" "$work/d"
mv "$work/by" "$work/d/by"
make_dump 3 33
import 2 --index_by "$both" -a -o "$work/d" "$work/dump.3" || fail "import -a"
"$deltafs" select "$work/d" --where 'v*v > 8' --epochs 1 --explain >"$work/got" 2>"$work/err" || fail select
says "index: none"
same_rows 'v*v > 8' size

# The same, but the job that goes on does not write the index.
cp -R "$work/d" "$work/before"
make_dump 4 4
import 2 --index_by "$both" -a -o "$work/d" "$work/dump.4" || fail "import -a"
mv "$work/d/by" "$work/by"
rm -r "$work/d" "$work/before/by"
mv "$work/before" "$work/d"
mv "$work/by" "$work/d/by"
make_dump 4 44
import 2 -a -o "$work/d" "$work/dump.4" || fail "import -a"
"$deltafs" select "$work/d" --where 'v*v > 8' --epochs 4 --explain >"$work/got" 2>"$work/err" || fail select
says "index: none"
[ -s "$work/got" ] || fail "no rows"

# An epoch that is missing in the middle is added by making the index anew.
expect 0 mpi 2 "$deltafs_mpi" index --by 'size:v*v +w' "$work/d"
grep -q "80000 records of 4 epochs" "$work/out" || fail "not made anew: $(cat "$work/out")"
make_dump 5 5
import 2 -a -o "$work/d" "$work/dump.5" || fail "import -a"
make_dump 6 6
import 2 --index_by "$both" -a -o "$work/d" "$work/dump.6" || fail "import -a"
"$deltafs" select "$work/d" --where 'v*v > 8' --epochs 5 --explain >"$work/got" 2>"$work/err" || fail select
says "index: none"
expect 0 mpi 1 "$deltafs_mpi" index --by 'size:v*v +w' "$work/d"
grep -q "120000 records of 6 epochs" "$work/out" || fail "not made anew: $(cat "$work/out")"
same_rows 'v*v > 8' size

# A job goes on with an index that has other partitions than its directory; and with one that was made by halves, or is
# damaged: then it begins anew.
make_dump 7 7
import 3 --index_by "$both" --partitions 4 -a -o "$work/d" "$work/dump.7" || fail "import -a, other partitions"
rm "$work/d/by/size/MANIFEST" "$work/d/by/size/MANIFEST.copy" "$work"/d/by/mixed/00/*.data
make_dump 8 8
import 2 --index_by "$both" -a -o "$work/d" "$work/dump.8" || fail "import -a, damaged indexes"
"$deltafs" select "$work/d" --where 'v*v > 8' --epochs 8 --explain >"$work/got" 2>"$work/err" || fail select
says "index: size"
expect 0 mpi 2 "$deltafs_mpi" index --by 'mixed:v + w*n' "$work/d"
grep -q "160000 records of 8 epochs" "$work/out" || fail "not made anew: $(cat "$work/out")"
same_rows '6 < mixed' mixed

# One process; and epochs that are discarded, or written again.
printf '1 7 0000a041\n1 8 0000803f\n2 7 00000040\n' | "$put_records" "$work/one" schema=v:f4 'index_by=twice:2*v' || fail put_records
"$deltafs" select "$work/one" --where '2*v > 3' --format csv --explain >"$work/got" 2>"$work/err" || fail select
printf 'key,epoch,v,twice\n7,1,20.0,40.0\n7,2,2.0,4.0\n' >"$work/wanted"
same "$work/wanted" "$work/got" "one process"
says "index: twice"

# What is refused leaves nothing.
refused() {
    printf '1 7 0000a041\n' | "$put_records" "$work/refused" "$@" 2>"$work/err" && fail "not refused: $*"
    [ ! -e "$work/refused" ] || fail "left: $*"
}
refused schema=v:f4 'index_by=x:v*nothing'
says "option index_by: 'x': offset 2: "
refused schema=v:f4 'index_by=x:v +nothing'
says "there is no column 'nothing' to carry"
for text in 'v*2' '..:v' '../x:v'; do
    refused schema=v:f4 "index_by=$text"
    says "index '$text': give NAME:EXPRESSION"
done
refused schema=v:f4 'index_by=x:epoch*2'
says "the epoch of a record is not known"
refused 'index_by=x:v'
says "there is no schema"
refused schema=v:f4 keys=bytes 'index_by=x:v'
says "it needs numbers"
refused schema=v:f4 commit=async 'index_by=x:v'
says "needs commit=wait"
refused schema=v:f4 memory=16M 'index_by=x:v'
says "at least 8M"
import 2 --index_by 'x:v*nothing' -o "$work/refused" "$work/dump.1" >"$work/out" 2>"$work/err" && fail "not refused by ranks"
says "option index_by: 'x': offset 2: "
[ ! -e "$work/refused" ] || fail "ranks have left something"

# Also the only epoch of an index is placed by ranges, though one rank cannot hold back all of it (more than 1 MiB).
import 2 --epoch 1 --partitions 3 -o "$work/ranged" "$work/dump.1" "$work/dump.2" || fail import
for ranks in 1 2; do
    rm -rf "$work/ranged/by"
    expect 0 mpi $ranks "$deltafs_mpi" index --by 'size:v*v +v +w +n' --partitions 8 --memory 8M "$work/ranged"
    [ "$(cut -d ' ' -f 1 "$work/ranged/by/size/MANIFEST" | grep -A 1 Pivots | tail -n 1)" = Epoch ] ||
        fail "no pivots: $(cat "$work/ranged/by/size/MANIFEST")"
    "$deltafs" info "$work/ranged/by/size" | awk '$2 == 40000 { ok = $5 >= 1 && $5 <= 1.3 } END { exit !ok }' ||
        fail "$("$deltafs" info "$work/ranged/by/size")"
    expect 0 "$deltafs" verify "$work/ranged/by/size"
done
