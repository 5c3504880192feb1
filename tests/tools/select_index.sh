#!/bin/sh
# An index by value never changes what a select prints: beside a copy of the directory without one, for conditions of all
# kinds, values of all kinds (NaN, infinities, zeros, one giant, all equal), and after everything that makes it unusable.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

# make_dumps LABEL...: $work/dump.LABEL
make_dumps() {
    (cd "$work" && "$PYTHON3" - "$@") <<'END_OF_PYTHON' || fail python3
import random, struct, sys
special = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e38, -1e38, 1e-45]
for label in map(int, sys.argv[1:]):
    random.seed(label)
    records = []
    for key in random.sample(range(1 << 40), 20000):
        v = random.choice(special) if random.random() < 0.01 else random.gauss(0, 1)
        if label >= 5:  # far from what is larger than all: NaN, or one giant
            v = random.random() if records else float("nan") if label == 5 else 3e30
        if label == 3:  # all equal, but for one
            v = 3e30 if key % 20011 == 7 else 2.5
        records.append((key, v, random.random(), key % 7))
    records += [(77, 9.5, 0.5, 1), (77, 0.5, 0.5, 1)]  # a key with several records
    with open("dump.%d" % label, "wb") as f:
        f.writelines(struct.pack("<Qffi", *r) for r in records)
END_OF_PYTHON
}
import() {
    mpi 1 "$deltafs_mpi" import -q --format raw --schema key:u8,v:f4,w:f4,n:i4 --key key --partitions 3 -o "$@" || fail import
}
make_dumps 1 2 3
import "$work/d" "$work/dump.1" "$work/dump.2" "$work/dump.3"
cp -R "$work/d" "$work/plain"
expect 0 mpi 2 "$deltafs_mpi" index --by 'size:v*v +w' "$work/d"
grep -q "60006 records of 3 epochs indexed by 2 ranks" "$work/out" || fail "$(cat "$work/out" "$work/err")"
[ "$("$deltafs" attr "$work/d" size)" = "size==v*v" ] || fail "size is $("$deltafs" attr "$work/d" size)"
"$deltafs" attr "$work/plain" 'size==v*v' || fail attr

# both INDEX ARGUMENT...: the same rows, by this index.
both() {
    used=$1
    shift
    "$deltafs" select "$work/plain" "$@" >"$work/wanted" 2>"$work/wanted-err"
    code=$?
    "$deltafs" select "$work/d" --explain "$@" >"$work/got" 2>"$work/err"
    [ $? -eq $code ] || fail "other exit code than $code: $* ($(cat "$work/err"))"
    same "$work/wanted" "$work/got" "$*"
    grep -qx "index: $used" "$work/err" || fail "not by the index $used: $* ($(cat "$work/err"))"
}
both size --where 'size > 8' --format csv
both size --where 'size >= 9 and size < 12 and w > 0.5' --fields w,size
both size --where '8 < v*v' --format keys
both size --where '8 < v*v <= 9.25 and not n == 3' --format json
both size --where 'v*v == 90.25'
both size --where 'v*v > 1e30 - 1' --epochs 3
both size --where 'size > 10 + 2*3' --epochs 2:3
both size --where 'size < 0'
both size --where 'size > 0 / 0'
both size --where 'size < 0.0001' --epochs 1
both size --top 5 --by size --format csv
both size --top 5 --by 'v*v' --format keys
both size --top 7 --by 'v*v' --epochs 2
both size --top 3 --by w --where 'v*v > 9'
# What it does not help.
both none --where 'size > 0.01'
both none --where 'size != 2'
both none --where 'size > 8 or w > 0.999'
both none --where 'v**3 > 8'
both none --where 'size > w and w > 0.99'
both none --top 30000 --by size --fields size
both none --top 5 --by size --where 'w > 0.5' --fields size
both none --top 5 --by size --epochs 3 # nearly all are equal
echo 77 >"$work/keys"
both none --where 'size > 8' --keys "$work/keys"
both size --where 'size > 8' --not "$work/keys"
mpi 2 "$deltafs_mpi" select "$work/d" --where 'size > 8' --format csv >"$work/got" 2>"$work/err" || fail "two ranks"
"$deltafs" select "$work/plain" --where 'size > 8' --format csv >"$work/wanted" || fail select
same "$work/wanted" "$work/got" "two ranks"

# Rows from the index alone: nothing is read of the directory, whose logs are empty here.
for dir in carry bare; do
    cp -R "$work/plain" "$work/$dir"
done
expect 0 mpi 2 "$deltafs_mpi" index --by 'size:v*v +w +v' "$work/carry"
expect 0 mpi 1 "$deltafs_mpi" index --by 'size:v*v +w +v' "$work/bare"
cp -R "$work/d" "$work/less" # its index carries w only
for log in "$work"/bare/0?/*.data "$work"/less/0?/*.data; do
    : >"$log"
done
# alone FOLDER ARGUMENT...: the rows of the scan of the whole directory.
alone() {
    folder=$1
    shift
    "$deltafs" select "$work/plain" "$@" >"$work/wanted" 2>"$work/wanted-err"
    code=$?
    "$deltafs" select "$work/$folder" --explain "$@" >"$work/got" 2>"$work/err"
    [ $? -eq $code ] || fail "other exit code than $code: $* ($(cat "$work/err"))"
    same "$work/wanted" "$work/got" "$folder: $*"
    grep -qx "index: size" "$work/err" || fail "not by the index: $* ($(cat "$work/err"))"
}
for where in 'size > 8' '8 < v*v <= 9.25' 'size == 90.25' 'size > 1e30 - 1' 'size < 0.0000001' 'size < 0' 'size == 1 / 0'; do
    alone bare --where "$where" --format keys --epochs 1:2
    alone bare --where "$where and w < 0.7" --fields w,v,size --format csv
    alone bare --where "$where and key % 3 == 1" --fields v --format json
done
alone bare --top 9 --by size --fields v --format csv --epochs 1:2
alone bare --top 9 --by w --where 'size > 5' --fields size --format csv --epochs 1:2
alone bare --where 'size > 8' --not "$work/keys" --format keys
# The condition needs v, which this index does not carry: but its value tells enough.
alone less --where 'size > 8' --format keys
alone less --where '8 < size < 12' --fields w --format csv
alone less --top 9 --by w --where 'size > 8' --fields w --format csv
alone less --where 'size > 2**70' --fields w --format csv
# At the bound it does not, nor for n: these records are looked up.
for where in 'size >= 90.25' 'size > 1e9 and n > 3' 'size > 8 and w > 0.5'; do
    "$deltafs" select "$work/less" --where "$where" --format keys >"$work/got" 2>"$work/err" && fail "not looked up: $where"
    says "damaged at offset 32: the file, of 0 bytes, ends before a block"
    both size --where "$where" --fields w --format csv
done
both size --where 'size >= 90.25' --fields n --format csv

# Random conditions, of which the index answers some alone, some in part, and some not.
"$PYTHON3" - $((10 * ${TORTURE_TIMES:-1})) >"$work/random" <<'END_OF_PYTHON' || fail python3
import random, sys
random.seed(5)
for _ in range(int(sys.argv[1])):
    low = random.choice([0, 6.25, 90.25, 9, random.uniform(4, 20), 1e30, -1])
    where = "size %s %r" % (random.choice(["<", "<=", ">", ">=", "=="]) if low in (0, -1) else random.choice([">", ">=", "=="]), low)
    if random.random() < 0.4:
        where += " and v*v < %r" % random.choice([12, 1e38, 1e60, low])
    if random.random() < 0.3:
        where += " and " + random.choice(["w < 0.5", "n == 2", "v > 0", "key % 2 == 0", "epoch > 1"])
    fields = random.choice(["w", "v", "n", "size", "w,v", "v,w,n"])
    ending = random.choice(["--format keys", "--format csv --fields " + fields, "--format csv"])
    if random.random() < 0.2:
        ending += " --top 6 --by " + random.choice(["w", "v", "size", "n"])
    print("%s|%s" % (where, ending))
END_OF_PYTHON
while IFS='|' read -r where ending; do
    # shellcheck disable=SC2086
    for dir in plain carry; do
        "$deltafs" select "$work/$dir" --where "$where" $ending >"$work/$dir.got" 2>"$work/err"
        echo "$?" >>"$work/$dir.got"
    done
    same "$work/plain.got" "$work/carry.got" "$where $ending"
    # shellcheck disable=SC2086
    "$deltafs" select "$work/d" --where "$where" $ending >"$work/carry.got" 2>"$work/err"
    echo "$?" >>"$work/carry.got"
    same "$work/plain.got" "$work/carry.got" "fewer columns: $where $ending"
done <"$work/random"

# Of several indexes of the expression, that which carries all columns of the rows; otherwise the first by name.
cp -R "$work/carry" "$work/two"
expect 0 "$deltafs" attr "$work/two" 'first==v*v'
expect 0 mpi 1 "$deltafs_mpi" index --by 'first:v*v' "$work/two"
# by INDEX ARGUMENT...
by() {
    used=$1
    shift
    "$deltafs" select "$work/plain" --where 'v*v > 8' --format csv "$@" >"$work/wanted" || fail select
    "$deltafs" select "$work/two" --where 'v*v > 8' --format csv --explain "$@" >"$work/got" 2>"$work/err" || fail select
    same "$work/wanted" "$work/got" "$*"
    grep -qx "index: $used" "$work/err" || fail "not by $used: $* ($(cat "$work/err"))"
}
by first --format keys
by size --fields w,v
by first --fields n

# Epochs that are added are scanned, until they are indexed.
make_dumps 4
import "$work/d" -a "$work/dump.4"
import "$work/plain" -a "$work/dump.4"
import "$work/two" -a "$work/dump.4"
expect 0 mpi 1 "$deltafs_mpi" index --by 'first:v*v' "$work/two"
by first --fields w,v # the other one does not have all epochs
both size --where 'size > 8' --format csv
both none --where 'size > 8' --format csv --epochs 4
expect 0 mpi 2 "$deltafs_mpi" index --by 'size:v*v +w' "$work/d"
grep -q "20002 records of 1 epoch indexed by 2 ranks" "$work/out" || fail "$(cat "$work/out" "$work/err")"
both size --where 'size > 8' --format csv --epochs 4

# The column has become another one from an epoch on: the index tells of the one that it was.
for dir in d plain; do
    "$deltafs" attr "$work/$dir" 'size==v*v*2' --from 2 || fail attr
done
both none --where 'size > 8' --epochs 2:
both size --where 'size > 8' --epochs 1
both size --where 'v*v > 8' --epochs 2:
for dir in d plain; do
    "$deltafs" attr "$work/$dir" size= --from 2 || fail attr
done

import "$work/single" --partitions 1 "$work/dump.1"
# Nearly all rows are taken from the index, batch by batch. Those at the bound are looked up, and come in the order of
# keys, too.
bound=$("$PYTHON3" -c "
import struct, sys
v = sorted(r[1] ** 2 for r in struct.iter_unpack('<Qffi', open(sys.argv[1], 'rb').read()) if r[1] ** 2 < 1e30)
print(repr(v[-1000]))" "$work/dump.1") || fail python3
cp -R "$work/single" "$work/batches"
expect 0 mpi 1 "$deltafs_mpi" index --by 'size:v*v +w' "$work/batches"
for ending in '--fields w --format csv' '--format keys' '--top 900 --by w --fields w --format csv' '--fields w,n --format csv'; do
    # shellcheck disable=SC2086
    "$deltafs" select "$work/single" --where "v*v >= $bound" $ending >"$work/wanted" || fail select
    # shellcheck disable=SC2086
    expect 0 "$deltafs" select "$work/batches" --where "v*v >= $bound" --explain $ending
    says "index: size"
    same "$work/wanted" "$work/out" "$ending"
done
# An attribute that the expression names has another value by now: the index is made again.
cp -R "$work/single" "$work/scaled"
expect 0 "$deltafs" attr "$work/scaled" m=2
expect 0 mpi 1 "$deltafs_mpi" index --by 'e:m*v*v' "$work/scaled"
expect 0 "$deltafs" attr "$work/scaled" m=3
for index in none e; do
    expect 0 "$deltafs" select "$work/scaled" --where 'm*v*v > 24' --fields v --explain
    says "index: $index"
    mv "$work/out" "$work/$index.got"
    expect 0 mpi 2 "$deltafs_mpi" index --by 'e:m*v*v' "$work/scaled"
done
same "$work/none.got" "$work/e.got" "another value of an attribute"

# The largest values are far below NaN, or below one giant.
make_dumps 5 6
for label in 5 6; do
    import "$work/far.$label" "$work/dump.$label"
    for top in 6 900; do
        "$deltafs" select "$work/far.$label" --top $top --by 'v*v' --fields w --format csv >"$work/wanted.$top" || fail select
    done
    expect 0 mpi 1 "$deltafs_mpi" index --by 'size:v*v +w' "$work/far.$label"
    for top in 6 900; do
        expect 0 "$deltafs" select "$work/far.$label" --top $top --by 'v*v' --fields w --format csv --explain
        says "index: size"
        same "$work/wanted.$top" "$work/out" "$top, $label"
    done
done

# Damage of the index, and parts of it that are missing. Verify finds it.
both size --where 'size > 8'
expect 0 "$deltafs" verify "$work/d"
stdout_has "$work/d/by/size: 80008 records"
cp -R "$work/d/by" "$work/by"
for log in "$work"/d/by/size/0?/*.data; do
    head -c $(($(wc -c <"$log") - 40)) /dev/zero | dd of="$log" bs=1 seek=40 conv=notrunc 2>"$work/dd" || fail dd
done
both none --top 5 --by size
expect 3 "$deltafs" verify "$work/d"
says "$work/d/by/size: an index by value, without which all answers are the same"
grep "$work/d: .* 0 damages" "$work/out" >"$work/line" || fail "the directory is damaged, too: $(cat "$work/out")"
expect 0 "$deltafs" repair "$work/d"
rm -r "$work/d/by" && cp -R "$work/by" "$work/d/by" || fail cp
rm "$work/d/by/size/MANIFEST" "$work/d/by/size/MANIFEST.copy"
both none --where 'size > 8'
rm -r "$work/d/by" && cp -R "$work/by" "$work/d/by" || fail cp
# The index of another directory.
rm -r "$work/plain" && cp -R "$work/d" "$work/plain" && rm -r "$work/plain/by" || fail cp
import "$work/other" "$work/dump.1" "$work/dump.2" "$work/dump.3" "$work/dump.4"
cp -R "$work/by" "$work/other/by"
"$deltafs" select "$work/other" --where 'v*v > 8' --explain >"$work/out" 2>"$work/err" || fail select
says "index: none"

# Many keys of one partition, which threads share.
"$deltafs" select "$work/single" --where 'n < 3' --format keys >"$work/keys" || fail select
"$deltafs" select "$work/single" --where 'n < 3' --format csv >"$work/wanted" || fail select
"$deltafs" select "$work/single" --keys "$work/keys" --where 'key != 77 or n < 3' --format csv >"$work/got" || fail select
same "$work/wanted" "$work/got" "many keys"

# Mistakes.
expect 2 "$deltafs" select "$work/d" --fields ''
says "--fields names no column; --format keys prints keys alone"
expect 2 mpi 1 "$deltafs_mpi" index --by size "$work/d"
says "index 'size': give NAME:EXPRESSION"
expect 2 mpi 2 "$deltafs_mpi" index --by 'size:v*v*v' "$work/d"
says "'size' is an attribute already, with another value"
expect 2 mpi 1 "$deltafs_mpi" index --by 'x:v*nothing' "$work/d"
says "index: $work/d: 'x': offset 2: no column or attribute is named 'nothing'"
expect 2 mpi 1 "$deltafs_mpi" index --by 'y:v*2 +nothing' "$work/d"
says "nothing"
expect 2 mpi 1 "$deltafs_mpi" index --by 'y:v' --key v "$work/d"
says "index: --by takes one directory"
expect 2 mpi 2 "$deltafs_mpi" index --by 'size:v*v' "$work/d"
says "$work/d/by/size: the columns that it carries are: w:f4; asked for: none; remove it before: deltafs rm $work/d/by/size"
expect 2 mpi 1 "$deltafs_mpi" index --by 'size:v*v +v +w' "$work/d"
says "the columns that it carries are: w:f4; asked for: v:f4,w:f4; remove it"
# Without an epoch it is made again, with other columns.
"$put_records" "$work/empty" schema=v:f4,w:f4 </dev/null || fail put_records
expect 0 mpi 1 "$deltafs_mpi" index --by 'x:v +w' "$work/empty"
expect 0 mpi 2 "$deltafs_mpi" index --by 'x:v' "$work/empty"
expect 0 "$deltafs" info "$work/empty/by/x"
stdout_has "source_key:u8"
grep -q "w:f4" "$work/out" && fail "it has the columns that were asked for before: $(cat "$work/out")"
printf '1 6162 00000000\n' | "$put_records" "$work/names" keys=bytes schema=v:f4 || fail put_records
expect 3 mpi 1 "$deltafs_mpi" index --by 'y:v*2' "$work/names"
says "its keys are bytes"

# A column that was another one in earlier epochs: only those where it is what is asked for are indexed.
cp -R "$work/plain" "$work/early"
"$deltafs" attr "$work/early" 'late==v*v' && "$deltafs" attr "$work/early" --from 2 'late==v*v+w*w' || fail attr
expect 0 env DELTAFS_KEYS=bytes DELTAFS_INDEX_BY=x:v "$deltafs_mpi" index --by 'late:v*v+w*w' "$work/early"
"$deltafs" select "$work/early" --where 'v*v+w*w > 12' --format csv >"$work/got" || fail select
rm -r "$work/early/by"
"$deltafs" select "$work/early" --where 'v*v+w*w > 12' --format csv >"$work/wanted" || fail select
same "$work/wanted" "$work/got" "a column that was another one"

# It is renamed and removed with its directory.
expect 0 "$deltafs" mv "$work/d" "$work/e"
"$deltafs" select "$work/e" --where 'v*v > 8' --explain >"$work/out" 2>"$work/err" || fail select
says "index: size"
expect 0 "$deltafs" rm "$work/e"
[ ! -e "$work/e" ] || fail "$work/e is still there"

# More keys of one partition than are looked up at once, some of which have another record that does not pass; values
# that are infinite, or beyond the largest number of the index; and records that stay with their writer.
"$PYTHON3" - >"$work/dump.5" <<'END_OF_PYTHON' || fail python3
import random, struct, sys
random.seed(6)
records = [(key, key % 7, random.random(), 10 + random.random() if key < 2000 else random.random()) for key in range(40000)]
records += [(key, 0, 0.5, 0.25) for key in range(0, 2000, 90)]
for i, v in enumerate([1e300, -1e300, float("inf"), float("-inf")] * 20):
    records.append((50000 + i, 0, 0.5, v))
random.shuffle(records)
sys.stdout.buffer.write(b"".join(struct.pack("<Qifd", *r) for r in records))
END_OF_PYTHON
rm -r "$work/plain"
import "$work/plain" --partitions 1 --schema key:u8,n:i4,w:f4,v:f8 "$work/dump.5"
"$deltafs" attr "$work/plain" 'size==v' || fail attr
for layout in partitioned local; do
    rm -rf "$work/d"
    import "$work/d" --partitions 1 --schema key:u8,n:i4,w:f4,v:f8 --layout "$layout" "$work/dump.5"
    expect 0 mpi 1 "$deltafs_mpi" index --by 'size:v' "$work/d"
    for fields in n v w,n; do
        both size --where '9 < v < 1000' --fields "$fields" --format csv
    done
    for where in 'v > 1 / 0' 'v >= 1 / 0' 'v > 1.7e308' 'v < 0 and v > -1 / 0' 'v < -1 / 0' 'v <= -1 / 0' 'v == -1 / 0'; do
        both size --where "$where" --format csv
    done
done
