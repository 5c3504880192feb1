#!/bin/sh
# Import of files of fixed-size records: where the key stands, what it is, what stands around.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

make_raw() {
    "$PYTHON3" "$cli/make_raw.py" "$@" || fail "make_raw.py"
}

# round RANKS SCHEMA KEY OPTION...: two files in, and all their records out.
round() {
    ranks=$1
    schema=$2
    key=$3
    shift 3
    skip=0
    epoch=0
    case " $* " in *" --skip "*) skip=13 ;; esac
    case " $* " in *" --epoch "*) epoch=1200 ;; esac
    make_raw "$schema" "$key" 301 "$work/a" --skip $skip --epoch $epoch --seed 1
    make_raw "$schema" "$key" 88 "$work/b" --skip $skip --epoch $epoch --seed 2
    rm -rf "$work/d"
    expect 0 import "$ranks" --format raw --schema "$schema" --key "$key" "$@" -o "$work/d" "$work/a.bin" "$work/b.bin"
    stdout_has "389 records in 1 epoch from 2 files"
    case " $* " in
    *" --epoch "*) grep -q warning "$work/err" && fail "a warning: $(cat "$work/err")" ;;
    *) says "no file has a number in its name, so that the records of all 2 files become one epoch, with label 0" ;;
    esac
    scan_sorted "$work/d" "$work/sorted"
    sort "$work/a.csv" "$work/b.csv" >"$work/expected"
    same "$work/expected" "$work/sorted" "$schema, key $key: records differ"
}

# json: what the last round made is valid as JSON too.
json() {
    expect 0 "$deltafs" scan "$work/d" --format json
    "$PYTHON3" -c 'import json, sys; sys.exit(len(json.load(sys.stdin)) != 389)' <"$work/out" ||
        fail "$schema: scan --format json"
}

round 1 id:u8,x:f4,y:f8,c:i4 id
round 2 x:f4,id:u8,y:f8,c:i4 id --skip 13
round 3 "x:f4,y:<f8,c:i4,id:<u8" id --epoch 1200
json
grep -q ',1200,' "$work/sorted" || fail "--epoch is not the label"
for type in u1 u2 u4 i1 i2 i4 i8; do
    round 1 a:V3,id:$type,b:i1,c:i2,d:i8,e:u1,f:u2,g:u4,h:u8 id
done
round 2 t:S9,key.1:u4,T_2:S1,v:V1 key.1 --skip 0xD --epoch 0x4B0
json
round 1 id:u8,big:V2000 id

# The bytes of a value are those of the record without its key.
make_raw a:u2,id:u1,b:V2 id 1 "$work/one"
expect 0 import 1 -q --format raw --schema a:u2,id:u1,b:V2 --key id -o "$work/one.d" "$work/one.bin"
expect 0 "$deltafs" scan "$work/one.d" --format raw
[ "$(od -An -tx1 "$work/out" | tr -d ' \n')" = "$(od -An -tx1 "$work/one.bin" | awk '{ print $1 $2 $4 $5 }')" ] ||
    fail "scan --format raw"

# The label of an epoch is the last number in a file's name. An array is one field for each element, also as NumPy has it.
make_raw id:u8,pos_0:f4,pos_1:f4,pos_2:f4 id 200 "$work/dump1200" --epoch 1200 --seed 3
make_raw id:u8,pos_0:f4,pos_1:f4,pos_2:f4 id 100 "$work/dump1300" --epoch 1300 --seed 4
for schema in id:u8,pos:3f4 "[('id', '<u8'), ('pos', '<f4', (3,))]"; do
    rm -rf "$work/d"
    expect 0 import 2 --format raw --schema "$schema" --key id -o "$work/d" "$work/dump1200.bin"
    expect 0 import 2 --format raw --schema "$schema" --key id --append -o "$work/d" "$work"/dump1[23]00.bin
    stdout_has "100 records in 1 epoch from 1 file"
    scan_sorted "$work/d" "$work/sorted"
    sort "$work/dump1200.csv" "$work/dump1300.csv" >"$work/expected"
    same "$work/expected" "$work/sorted" "$schema: records differ"
    "$deltafs" info "$work/d" | grep -q 'pos_0:f4,pos_1:f4,pos_2:f4' || fail "$schema: the schema is stored otherwise"
done

# A file of no records.
: >"$work/empty.bin"
rm -rf "$work/d"
expect 0 import 2 --format raw --schema id:u8,x:f4 --key id -o "$work/d" "$work/empty.bin"
stdout_has "0 records in 1 epoch from 1 file by"

# ---- Files that do not fit. Nothing is made.

# refused CODE TEXT ARGUMENT...
refused() {
    code=$1
    text=$2
    shift 2
    rm -rf "$work/d"
    expect "$code" "$@" -o "$work/d"
    says "$text"
    [ "$code" -eq 0 ] || [ ! -e "$work/d" ] || fail "a directory is made: $*"
    [ "$(grep -c '^deltafs-mpi:' "$work/err")" -eq 1 ] || fail "not one message: $(cat "$work/err")"
}
make_raw id:u8,x:f4 id 10 "$work/good"
cp "$work/good.bin" "$work/good.1200.3.bin"
cp "$work/good.bin" "$work/good7.bin"
refused 2 "two numbers end its name" import 1 --format raw --schema id:u8,x:f4 --key id "$work/good.1200.3.bin"
refused 2 "good.bin: has no number in its name" import 2 --format raw --schema id:u8,x:f4 --key id "$work/good7.bin" "$work/good.bin"
refused 2 "a shape of one dimension" import 1 --format raw --schema "[('id', '<u8', (2, 2))]" --key id "$work/good.bin"
head -c 119 "$work/good.bin" >"$work/short.bin"
for ranks in 1 3; do
    raw="import $ranks --format raw --schema id:u8,x:f4 --key id"
    refused 3 "$work/short.bin: the record at offset 108 is cut: the file ends after 11 of its 12 bytes" $raw "$work/good.bin" "$work/short.bin"
    refused 3 "$work/good.bin" $raw --skip 1 "$work/good.bin"
    refused 3 "$work/good.bin" $raw --skip 121 "$work/good.bin"
    refused 3 "$work/good.bin" $raw --skip 18446744073709551614 "$work/good.bin"
    refused 3 "$work/missing: cannot open: No such file" $raw "$work/missing" "$work/good.bin"
    refused 3 "$work: a folder; give the files in it" $raw "$work/good.bin" "$work"
done

# ---- A negative key is found while importing: the message names the file and the place, and nothing is committed.

for type in i1 i2 i4 i8; do
    size=${type#i}
    make_raw x:f4,id:$type,y:f4 id 50 "$work/plus"
    make_raw x:f4,id:$type,y:f4 id 50 "$work/minus" --negative 41
    for ranks in 1 3; do
        [ $ranks -eq 1 ] || [ $type = i4 ] || continue
        rm -rf "$work/d"
        expect 3 import $ranks --format raw --schema x:f4,id:$type,y:f4 --key id -o "$work/d" "$work/plus.bin" \
            "$work/minus.bin"
        says "$work/minus.bin: at offset $((41 * (8 + size) + 4)): the key of record 41 is negative"
        [ ! -e "$work/d" ] || fail "a directory without epochs is left"
    done
done

# ---- Mistakes in the arguments

raw="import 1 --format raw"
file=$work/good.bin
refused 2 "--schema" $raw --key id "$file"
refused 2 "--key" $raw --schema id:u8,x:f4 "$file"
refused 2 "no field 'ID'" $raw --schema id:u8,x:f4 --key ID "$file"
refused 2 "no integer" $raw --schema id:u8,x:f4 --key x "$file"
refused 2 "no integer" $raw --schema id:S8,x:f4 --key id "$file"
refused 2 "no integer" $raw --schema id:V8,x:f4 --key id "$file"
refused 2 "besides the key" $raw --schema id:u8 --key id "$file"
for schema in id id: :u8 id:u3 id:f2 id:q4 id:u id:8 "id:>u8" id:u8,x:f4,x:f4 id:u8, ,id:u8 id:u8,,x:f4 "i d:u8" "id:u8 ,x:f4" \
    id:u8,t:S0 id:u8,t:S id:u8,v:V1048577 id:u-8 id:u8:x "" id:u8,v:V1048570; do
    refused 2 "schema" $raw --schema "$schema" --key id "$file"
done
refused 2 "f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 Sn Vn" $raw --schema id:u8,x:float --key id "$file"
raw="import 1 --format raw --schema id:u8,x:f4 --key id"
for number in "" x -1 1K 0x 1.5 18446744073709551616; do
    refused 2 "--skip: '$number' is no number" $raw --skip "$number" "$file"
    refused 2 "--epoch: '$number' is no number" $raw --epoch "$number" "$file"
done

# A failure before the first epoch leaves nothing, also on volumes; a directory that was there stays.
printf 'a value.\001\000\000\000\000\000\000\000' >"$work/fine.bin"
cat "$work/fine.bin" >"$work/bad.bin"
printf 'a value.\000\000\000\000\000\000\000\377' >>"$work/bad.bin"
negative="--format raw --schema x:S8,id:i8 --key id"
mkdir "$work/v1" "$work/v2"
for ranks in 1 3; do
    for options in "" "--partitions 5 --volumes $work/v1:$work/v2" "--layout local"; do
        # shellcheck disable=SC2086 # words
        expect 3 import $ranks $negative $options -o "$work/none" "$work/bad.bin"
        says "the key of record 1 is negative"
        says "no epoch is imported; $work/none, which was new, is removed"
        [ ! -e "$work/none" ] || fail "a directory without epochs is left"
        [ -z "$(find "$work/v1" "$work/v2" -mindepth 1)" ] || fail "buckets are left on volumes"
    done
done
"$put_records" "$work/none" schema=x:S8 </dev/null || fail "put_records"
# shellcheck disable=SC2086
expect 3 import 1 $negative --append --epoch 0 -o "$work/none" "$work/bad.bin"
says "$work/none has no epoch yet: import the same files again with --append"
# shellcheck disable=SC2086
expect 0 import 1 -q $negative --append --epoch 7 -o "$work/none" "$work/fine.bin"
# shellcheck disable=SC2086
expect 3 import 1 $negative --append --epoch 8 -o "$work/none" "$work/bad.bin"
says "$work/none has all epochs up to label 7; the later ones are missing"

# Another job opens the new directory before it is removed, or writes it and ends: nothing of it is lost.
raced=$work/raced
hooked() {
    (
        RENAME_HOOK=$1
        ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
        LD_PRELOAD=$top_builddir/.libs/librename_hook.so
        export RENAME_HOOK ASAN_OPTIONS LD_PRELOAD
        # shellcheck disable=SC2086
        expect 3 import 1 $negative -o "$raced" "$work/bad.bin"
    ) || exit 1
}
hooked "[ ! -e $raced ] || : >$raced/LEASE"
says "$raced has no epoch yet"
[ -e "$raced/LEASE" ] || fail "what another job has opened is removed"
rm -r "$raced"
hooked "[ ! -e $raced ] || { rm -r $raced && cp -r $work/none $raced; }"
says "$raced has all epochs up to label 7"
[ -e "$raced/MANIFEST" ] || fail "what another job has written is removed"
rm -r "$raced"
# The name is taken when it is to get it back.
hooked "if [ -e $raced ]; then : >$raced/LEASE; else mkdir -p $raced/x; fi"
says "another job has opened $raced, which is named $raced.deltafs-removed-"
[ -e "$raced".deltafs-removed-*/LEASE ] || fail "what another job has opened is removed"

# near EXACT STORED: columns 3 and 4 may differ by 0.5, and some do.
near() {
    "$PYTHON3" - "$1" "$2" <<'END'
import math
import sys

exact, stored = ([line.split(",") for line in open(name)] for name in sys.argv[1:])
assert len(exact) == len(stored) == 301
others = 0
for a, b in zip(exact, stored):
    assert a[:2] + a[4:] == b[:2] + b[4:], (a, b)
    for x, y in zip(map(float, a[2:4]), map(float, b[2:4])):
        assert x == y or (math.isnan(x) and math.isnan(y)) or abs(x - y) <= 0.5, (a, b)
        others += x != y and x == x
assert others > 100
END
}

# Error bounds go with their fields, wherever the key is: two ranks, then compacted, against the exact values.
for schema in "id:u8,pos:2<f4~0.5,w:f8" "pos:2f4~0.5,id:u8,w:f8" "[('pos', '<f4~0.5', (2,)), ('w', '<f8'), ('id', '<u8')]"; do
    rm -rf "$work/near" "$work/compact"
    plain=$(echo "$schema" | sed 's/~0.5//; s/pos:2<*f4/pos_0:f4,pos_1:f4/')
    case $plain in "["*) plain=pos_0:f4,pos_1:f4,w:f8,id:u8 ;; esac
    make_raw "$plain" id 301 "$work/near.1" --skip 0 --epoch 1 --seed 3
    expect 0 import 2 -q --format raw --schema "$schema" --key id --epoch 1 -o "$work/near" "$work/near.1.bin"
    expect 0 "$deltafs" info "$work/near"
    stdout_has "pos_0:f4~0.5,pos_1:f4~0.5,w:f8"
    expect 0 mpi 2 "$deltafs_mpi" compact -q "$work/near" -o "$work/compact"
    expect 0 "$deltafs" info "$work/compact"
    stdout_has "pos_0:f4~0.5,pos_1:f4~0.5,w:f8"
    sort "$work/near.1.csv" >"$work/expected"
    for dir in near compact; do
        scan_sorted "$work/$dir" "$work/sorted"
        near "$work/expected" "$work/sorted" || fail "$dir, $schema: beyond the error bound"
    done
done
