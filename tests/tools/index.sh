#!/bin/sh
# Keys of rows in files that exist: plain and logical ones, by 1 to 8 ranks, new ones and changed ones; what is wrong.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

make_raw() {
    "$PYTHON3" "$cli/make_raw.py" "$@" || fail "make_raw.py"
}
index() {
    ranks=$1
    shift
    mpi "$ranks" "$deltafs_mpi" index "$@"
}
top_builddir=$(cd "$top_builddir" && pwd)
deltafs_mpi=$top_builddir/deltafs-mpi
schema=x:f4,id:u4,y:f8,c:S3

# right INDEX CSV...: each key's rows are those of the dumps, which have no header.
right() {
    index=$1
    shift
    cut -d , -f 1 "$@" | sort -u >"$work/keys"
    expect 0 "$deltafs" get "$index" --keys "$work/keys" --format csv
    grep -v '^key,' "$work/out" | sort >"$work/rows"
    sort "$@" >"$work/expected"
    same "$work/expected" "$work/rows" "rows of $index differ"
    expect 0 "$deltafs" verify "$index"
    stdout_has "$(wc -l <"$work/expected" | tr -d ' ') rows found under their keys, 0 damages"
}

# Steps in any order, into one index; new files beside old ones, by another number of ranks.
mkdir "$work/d"
for step in 300 20 1000 5; do
    make_raw $schema id 200 "$work/d/dump.$step" --epoch $step --seed $step --skip 7
done
cd "$work/d"
DELTAFS_INDEX_BY='energy:ux*ux' && export DELTAFS_INDEX_BY # of directories, and of no use here
expect 0 index 4 --schema $schema --key id --skip 7 -o all dump.300.bin dump.20.bin
unset DELTAFS_INDEX_BY
stdout_has "all: 400 rows of 2 files indexed by 4 ranks, 0 unchanged"
expect 0 index 8 --schema $schema --key id --skip 7 -o all dump.*.bin
stdout_has "all: 400 rows of 2 files indexed by 8 ranks, 2 unchanged"
expect 0 index 1 -q --schema $schema --key id --skip 7 -o deltafs:all dump.*.bin
[ ! -s "$work/out" ] || fail "not quiet: $(cat "$work/out")"
cd "$OLDPWD"
right "$work/d/all" "$work"/d/dump.*.csv
key=$(head -n 1 "$work/d/dump.20.csv" | cut -d , -f 1)
expect 0 "$deltafs" get "$work/d/all" "$key" --epochs :20 --format json
"$PYTHON3" -c 'import json, sys; sys.exit(json.load(sys.stdin)[0]["epoch"] != 20)' <"$work/out" || fail "json"
expect 0 "$deltafs" get "$work/d/all" "$key" --epochs 20 --format csv
awk -F , 'NR == 1 { print "key,epoch,c,x" } NR > 1 { print $1 "," $2 "," $5 "," $3 }' "$work/out" >"$work/wanted"
expect 0 "$deltafs" get "$work/d/all" "$key" --epochs 20 --fields c,x --format csv
same "$work/wanted" "$work/out" "some columns of a file"
expect 2 "$deltafs" get "$work/d/all" "$key" --fields c,cc
says "get: fields: offset 2: no indexed file has a column 'cc'; the first file has these: x:f4,y:f8,c:S3"
expect 1 "$deltafs" get "$work/d/all" "$key" --epochs 2000:
expect 1 "$deltafs" get "$work/d/all" 4294967296
says "key 4294967296 not found"
expect 0 "$deltafs" info "$work/d/all"
stdout_has "dump.1000.bin"
stdout_has "index of        $(cat "$work"/d/dump.*.csv | wc -l) rows of other files"
for option in "" -l; do
    expect 0 "$deltafs" ls $option "$work/d"
    grep -qE "^index +$(cat "$work"/d/dump.*.csv | wc -l) rows of other files .*all$" "$work/out" ||
        fail "ls $option: $(cat "$work/out")"
done
expect 0 "$deltafs" ls --json "$work/d"
stdout_has '"kind": "index"'
expect 0 "$deltafs" stat "$work/d/all"
stdout_has "kind            index"
stdout_has "rows of other files"
grep -q "records" "$work/out" && fail "stat: the records of an index: $(cat "$work/out")"
expect 0 "$deltafs" info "$work/d/all"
grep -qE "^bytes stored +[0-9]+ \([0-9.]+ per row\)$" "$work/out" || fail "info: $(cat "$work/out")"
expect 0 "$deltafs" info "$work/d/all" --json
"$PYTHON3" -c 'import json, sys
s = json.load(sys.stdin)["sources"]
sys.exit([t["label"] for t in s] != [5, 20, 300, 1000] or s[0]["schema"] != "x:f4,y:f8,c:S3")' <"$work/out" ||
    fail "info --json"

# Moved together, it is as before; a file that is written to is refused until it is indexed again.
mv "$work/d" "$work/e"
right "$work/e/all" "$work"/e/dump.*.csv
key=$(head -n 1 "$work/e/dump.300.csv" | cut -d , -f 1)
make_raw $schema id 150 "$work/e/dump.300" --epoch 300 --seed 301 --skip 7
expect 3 "$deltafs" get "$work/e/all" "$key"
says "dump.300.bin: was written to since its keys were indexed; index it again"
says "missing from the answer: epoch 300"
grep -q "more faults" "$work/err" && fail "one fault: $(cat "$work/err")"
expect 3 "$deltafs" verify "$work/e/all"
stdout_has "600 rows found under their keys, 0 damages, 1 file not as it was indexed"
mv "$work/e/dump.5.bin" "$work/e/dump.1000.bin" "$work"
expect 3 "$deltafs" verify "$work/e/all"
stdout_has "200 rows found under their keys, 0 damages, 3 files not as they were indexed"
expect 3 "$deltafs" get "$work/e/all" "$key"
says "; there are more faults, which verify lists"
says "missing from the answer: epochs 5, 300, 1000"
expect 3 "$deltafs" get "$work/e/all" "$key" --epochs 20:300
says "missing from the answer: epoch 300"
mv "$work/dump.5.bin" "$work/dump.1000.bin" "$work/e"
expect 3 "$deltafs" scan "$work/e/all"
says "$work/e/all: an index, which has no records of its own"
[ ! -s "$work/out" ] || fail "a scan shows what is inside an index"
expect 3 "$deltafs" verify "$work/e/all"
expect 0 index 2 --schema $schema --key id --skip 7 -o "$work/e/all" "$work"/e/dump.*.bin
stdout_has "150 rows of 1 file indexed by 2 ranks, 3 unchanged"
right "$work/e/all" "$work"/e/dump.*.csv
# A file whose keys have not changed is indexed where it was. (It took its space again.)
epochs=$(grep -c ^Epoch "$work/e/all/MANIFEST")
touch "$work/e/dump.20.bin" "$work/e/dump.1000.bin"
expect 0 index 3 --schema $schema --key id --skip 7 -o "$work/e/all" "$work"/e/dump.*.bin
stdout_has "400 rows of 2 files indexed by 3 ranks, 2 unchanged"
[ "$(grep -c ^Epoch "$work/e/all/MANIFEST")" -eq "$epochs" ] || fail "the same keys were indexed again"
right "$work/e/all" "$work"/e/dump.*.csv
# A wrong label is corrected.
key=$(head -n 1 "$work/e/dump.300.csv" | cut -d , -f 1)
expect 0 index 2 --schema $schema --key id --skip 7 -o "$work/e/all" --again --label 301 "$work/e/dump.300.bin"
stdout_has "150 rows of 1 file indexed by 2 ranks, 0 unchanged"
expect 0 "$deltafs" get "$work/e/all" "$key" --epochs 301 --format csv
expect 1 "$deltafs" get "$work/e/all" "$key" --epochs 300
expect 0 index 2 --schema $schema --key id --skip 7 -o "$work/e/all" --again "$work/e/dump.300.bin"
right "$work/e/all" "$work"/e/dump.*.csv

# Each with an index of its own; of a logical file, in it.
expect 0 "$deltafs" cp "$work/e/dump.20.bin" "deltafs:$work/e/logical.20"
expect 0 index 3 --schema $schema --key id --skip 7 "deltafs:$work/e/logical.20" "$work/e/dump.5.bin"
right "deltafs:$work/e/logical.20" "$work/e/dump.20.csv"
right "$work/e/dump.5.bin" "$work/e/dump.5.csv"
[ -d "$work/e/logical.20/keys" ] && [ -d "$work/e/dump.5.bin.keys" ] || fail "not where it belongs"
expect 0 "$deltafs" verify "$work/e/logical.20"
# What is indexed is said of the file, too. (That of a plain one was refused, and of a logical one left out.)
for file in logical.20 dump.5.bin; do
    label=$(echo "$file" | tr -cd 0-9)
    expect 0 "$deltafs" info "$work/e/$file"
    grep -qE "^kind +(logical|plain) file$" "$work/out" || fail "info: $(cat "$work/out")"
    grep -qE "^ +$label +200  $work/e/$file$" "$work/out" || fail "info: $(cat "$work/out")"
    expect 0 "$deltafs" info "$work/e/$file" --json
    "$PYTHON3" -c 'import json, sys
s = json.load(sys.stdin)
t = s["sources"][0]
sys.exit(s["kind"] not in ("logical", "file") or t["label"] != int(sys.argv[1]) or t["key"] != "id")' "$label" \
        <"$work/out" || fail "info --json: $(cat "$work/out")"
done
rm -r "$work/e/dump.5.bin.keys"
expect 3 "$deltafs" info "$work/e/dump.5.bin"
says "dump.5.bin"
cp "$work/e/logical.20/keys/SOURCES" "$work/sources"
echo x >"$work/e/logical.20/keys/SOURCES"
expect 3 "$deltafs" info "$work/e/logical.20"
says "SOURCES"
grep -qE "^size +[1-9]" "$work/out" || fail "info of a file whose index is damaged: $(cat "$work/out")"
cp "$work/sources" "$work/e/logical.20/keys/SOURCES"
expect 0 "$deltafs" rm "$work/e/logical.20"
[ ! -e "$work/e/logical.20" ] || fail "rm leaves something"

# Types of keys, an empty file, a label.
for type in u1 u2 i1 i4 i8; do
    make_raw "a:V3,id:$type" id 90 "$work/t" --epoch 77 --seed 4
    rm -rf "$work/t.bin.keys"
    expect 0 index 2 --schema "a:V3,id:$type" --key id --label 77 "$work/t.bin"
    right "$work/t.bin" "$work/t.csv"
done
: >"$work/none.9.bin"
expect 0 index 2 --schema $schema --key id -o "$work/e/all" "$work/none.9.bin"
stdout_has "0 rows of 1 file indexed"
right "$work/e/all" "$work"/e/dump.*.csv

# Padding, here each third row, is not indexed, if that is asked for.
"$PYTHON3" -c 'import struct, sys
for i in range(300):
    sys.stdout.buffer.write(struct.pack("<fI", i, i if i % 3 else 0))' >"$work/pad.8.bin"
expect 0 index 3 --schema x:f4,id:u4 --key id --padding 0 -o "$work/pad" "$work/pad.8.bin"
stdout_has "200 rows of 1 file indexed by 3 ranks"
expect 1 "$deltafs" get "$work/pad" 0
expect 0 "$deltafs" get "$work/pad" 200 --format csv
stdout_has "200,8,200"
expect 0 "$deltafs" verify "$work/pad"
stdout_has "200 rows found under their keys, 0 damages"
expect 0 index 2 --schema x:f4,id:u4 --key id --padding 7 -o "$work/pad" --again "$work/pad.8.bin"
stdout_has "299 rows of 1 file indexed"
expect 0 "$deltafs" get "$work/pad" 0 --format csv
[ "$(wc -l <"$work/out")" -eq 101 ] || fail "padding is lost without being asked for"
expect 0 "$deltafs" verify "$work/pad"
touch -r "$work/pad.8.bin" "$work/time"
printf '\001' | dd of="$work/pad.8.bin" bs=1 seek=60 conv=notrunc 2>/dev/null # the key 7
touch -r "$work/time" "$work/pad.8.bin"
expect 3 "$deltafs" verify "$work/pad"
says "lacks the key 1 of row 7"
expect 2 index 1 --schema x:f4,id:u4 --key id --padding no -o "$work/pad" "$work/pad.8.bin"
says "option padding: 'no' is not valid; it takes a key, or none"

# The last number of dump.STEP.RANK is no timestep: one warning, unless --label says which it is.
for rank in 0 1; do
    make_raw $schema id 20 "$work/dump.1200.$rank" --epoch 1200 --seed $rank
done
expect 0 index 2 --schema $schema --key id -o "$work/ranked" "$work/dump.1200.0.bin" "$work/dump.1200.1.bin"
says "warning: the timestep of $work/dump.1200.0.bin is 0, the last number in its name; if that is the number of a rank, index"
[ "$(grep -c warning "$work/err")" -eq 1 ] || fail "not one warning: $(cat "$work/err")"
expect 0 index 2 --schema $schema --key id -o "$work/ranked" --again --label 1200 "$work"/dump.1200.*.bin
grep -q warning "$work/err" && fail "a warning: $(cat "$work/err")"
right "$work/ranked" "$work"/dump.1200.*.csv
make_raw $schema id 20 "$work/v1.2.0_dump" --seed 1
expect 0 index 1 --schema $schema --key id "$work/v1.2.0_dump.bin"
grep -q warning "$work/err" && fail "a warning: $(cat "$work/err")"

# What is wrong, and that the others are indexed nevertheless.
make_raw $schema id 10 "$work/cut" --seed 1
printf 12345 >>"$work/cut.bin"
make_raw "x:f4,id:i4,y:f8,c:S3" id 10 "$work/negative" --seed 1 --negative 3
make_raw $schema id 10 "$work/good.3" --seed 1 --epoch 3
expect 3 index 3 --schema $schema --key id -o "$work/some" "$work/cut.bin" "$work/nothing" "$work/good.3.bin" "$work"
says "cut.bin: the record at offset 190 is cut: the file ends after 5 of its 19 bytes"
says "nothing: "
stdout_has "10 rows of 1 file indexed"
right "$work/some" "$work/good.3.csv"
expect 3 index 2 --schema x:f4,id:i4,y:f8,c:S3 --key id -o "$work/some" "$work/negative.bin"
says "negative.bin: at offset 61: the key is negative; keys must be 0 or more"
make_raw "x:f4,id:i4,y:f8,c:S3" id 10 "$work/negative" --seed 1 --negative 9
expect 3 index 3 --schema x:f4,id:i4,y:f8,c:S3 --key id -o "$work/some" "$work/negative.bin"
says "rank 2: $work/negative.bin: at offset 175: the key"
right "$work/some" "$work/good.3.csv"
expect 2 index 2 --schema $schema -o "$work/some" "$work/good.3.bin"
says "--key is missing"
expect 2 index 2 --key q -o "$work/some" "$work/cut.bin"
says "--key: 'q' has no '/': give the path of the HDF5 datasets with the IDs, such as '/q' or '/Step#*/*/q'; or,"
[ ! -s "$work/out" ] || fail "a summary after a usage error: $(cat "$work/out")"
expect 3 index 1 --schema $schema --key z -o "$work/some" "$work/cut.bin"
says "the schema has no field 'z'"
expect 2 index 1 --schema $schema --key id
says "no files given"
expect 0 import 1 -q --format raw --schema $schema --key id -o "$work/records" "$work/good.3.bin"
expect 3 index 2 --schema $schema --key id -o "$work/records" "$work/good.3.bin"
! grep -q "0 rows of 0 files" "$work/out" || fail "a summary of nothing: $(cat "$work/out")"
says "is a directory of records, not an index of files"
expect 3 index 2 --schema $schema --key id "$work/records"
says "is a directory of DeltaFS, which has its keys already"
expect 3 import 1 -q --append --epoch 99 --format raw --schema $schema --key id -o "$work/some" "$work/good.3.bin"
says "$work/some: is an index of files, not a directory of records"

# A damaged SOURCES is never believed.
printf x | dd of="$work/some/SOURCES" bs=1 seek=100 conv=notrunc 2>/dev/null
expect 3 "$deltafs" get "$work/some" 1
says "SOURCES: damaged at offset"
says "index its files again"

# An index without it is no directory of records. (The index's own records were printed.)
mv "$work/e/all/SOURCES" "$work/sources"
for command in get verify info ls stat scan "repair --apply"; do
    key=
    [ "$command" != get ] || key=1
    expect 3 "$deltafs" $command "$work/e/all" $key
    says "e/all/SOURCES: damaged at offset 0: the file is missing that says which files are indexed; remove the index"
done
expect 3 index 2 --schema $schema --key id --skip 7 -o "$work/e/all" "$work/e/dump.5.bin"
says "the file is missing that says which files are indexed"
mv "$work/sources" "$work/e/all/SOURCES"
expect 0 "$deltafs" verify "$work/e/all"

# Where nothing is indexed yet, nothing is said not to be there.
expect 3 index 2 --schema x:f4,id:i4,y:f8,c:S3 --key id "$work/negative.bin"
expect 3 "$deltafs" get "$work/negative.bin" 1
says "negative.bin.keys: no file is indexed here, or its indexing did not end; index it (deltafs-mpi index)"
expect 3 "$deltafs" verify "$work/negative.bin"
says "no file is indexed here"

# A file whose epoch or whose last line has gone is told, and indexed again without being asked to.
mkdir "$work/l"
for step in 1 2 3; do
    make_raw $schema id 50 "$work/l/dump.$step" --epoch $step --seed $step
done
expect 0 index 2 --schema $schema --key id -o "$work/l/all" "$work"/l/dump.*.bin
cp "$work/l/all/SOURCES" "$work/sources"
truncate -s -1 "$work/l/all/SOURCES"
expect 3 "$deltafs" verify "$work/l/all"
says "l/all: the indexing of $work/l/dump.3.bin did not end; index it again (deltafs-mpi index), or have it forgotten"
expect 3 "$deltafs" get "$work/l/all" 1
says "the indexing of $work/l/dump.3.bin did not end"
expect 0 index 2 --schema $schema --key id -o "$work/l/all" "$work"/l/dump.*.bin
stdout_has "50 rows of 1 file indexed by 2 ranks, 2 unchanged"
right "$work/l/all" "$work"/l/dump.*.csv
sed '/label=4 /d; /^close/d' "$work/l/all/MANIFEST" >"$work/manifest"
cp "$work/manifest" "$work/l/all/MANIFEST"
rm "$work/l/all/MANIFEST.copy"
expect 0 "$deltafs" repair "$work/l/all" --drop-from 4 --apply
expect 3 "$deltafs" get "$work/l/all" 1
says "what it had of $work/l/dump.3.bin, labelled 3, is lost"
expect 0 index 2 --schema $schema --key id -o "$work/l/all" "$work"/l/dump.*.bin
stdout_has "50 rows of 1 file indexed by 2 ranks, 2 unchanged"
right "$work/l/all" "$work"/l/dump.*.csv

# Files that are gone are forgotten when that is wanted: by name, or all of them; on several ranks.
mkdir "$work/l/sub"
for step in 4 5 6; do
    make_raw $schema id 50 "$work/l/sub/dump.$step" --epoch $step --seed $step
done
expect 0 index 2 --schema $schema --key id -o "$work/l/all" "$work"/l/sub/dump.*.bin
right "$work/l/all" "$work"/l/dump.*.csv "$work"/l/sub/dump.*.csv
rm -r "$work/l/sub"
key=$(head -n 1 "$work/l/dump.1.csv" | cut -d , -f 1)
expect 3 "$deltafs" get "$work/l/all" "$key"
says "dump.4.bin: has gone or been renamed since its keys were indexed, or the index was moved away from it; if that is so for good, have it forgotten (deltafs-mpi"
says "index --forget -o $work/l/all)"
says "missing from the answer: epochs 4, 5, 6"
expect 2 index 2 --forget "$work/l/sub/dump.5.bin"
says "--forget needs -o INDEX"
for option in --again --label=4; do
    expect 2 index 1 --forget $option -o "$work/l/all"
    says "--forget removes files from the index"
done
expect 3 index 2 --forget -o "$work/l/other"
says "l/other: there is no index of keys"
[ ! -e "$work/l/other" ] || fail "forgetting makes an index"
expect 3 index 2 --forget -o "$work/l/all" "$work/l/sub/dump.7.bin"
says "dump.7.bin: is not indexed in $work/l/all"
[ ! -s "$work/out" ] || fail "says $(cat "$work/out")"
(cd "$work/l" && expect 3 index 2 --forget -o all sub/dump.7.bin ./sub/dump.5.bin && stdout_has "all: 1 file forgotten") ||
    fail "not forgotten by its relative name"
expect 0 index 3 --forget -o "$work/l/all"
stdout_has "l/all: 2 files forgotten"
right "$work/l/all" "$work"/l/dump.*.csv
expect 0 index 2 --schema $schema --key id -o "$work/l/all" "$work"/l/dump.*.bin
stdout_has "0 rows of 0 files indexed by 2 ranks, 3 unchanged"

# Compaction: the same answers in less space, by any number of ranks; not while something is in the way.
for round in 1 2; do
    expect 0 index 4 --again --schema $schema --key id -o "$work/l/all" "$work"/l/dump.*.bin
done
# bytes_of FOLDER: of its files; how many a folder itself has depends on the file system.
bytes_of() {
    find "$1" -type f -exec cat {} + | wc -c
}
ln -s l/all "$work/link"
partitions=$("$deltafs" info "$work/l/all" | grep partitions)
before=$(bytes_of "$work/l/all")
expect 0 index 3 --compact -o "$work/link"
stdout_has " bytes freed"
after=$(bytes_of "$work/l/all")
[ "$after" -lt $((before / 2)) ] || fail "$before bytes are $after after --compact"
[ -L "$work/link" ] && [ ! -e "$work/link.compact" ] && [ ! -e "$work/l/all.compact" ] || fail "not by the index's own name"
right "$work/l/all" "$work"/l/dump.*.csv
[ "$partitions" = "$("$deltafs" info "$work/l/all" | grep partitions)" ] || fail "other partitions than $partitions"
expect 0 index 2 --schema $schema --key id -o "$work/l/all" "$work"/l/dump.*.bin
stdout_has "0 rows of 0 files indexed by 2 ranks, 3 unchanged"
mkdir "$work/l/all.compact"
expect 3 index 2 --compact -o "$work/l/all"
says "l/all.compact: exists already; if it is left of a compaction that did not end, remove it"
rmdir "$work/l/all.compact" || fail "it has touched what is not its own"
[ ! -e "$work/l/all/LEASE" ] || fail "it keeps the lease"
expect 3 index 2 --compact -o "$work/l/other"
says "l/other: there is no index of keys"
[ ! -e "$work/l/other" ] && [ ! -e "$work/l/other.compact" ] || fail "compacting makes an index"
expect 2 index 2 --compact
says "--compact needs -o INDEX"
expect 2 index 2 --compact -o "$work/l/all" "$work/l/dump.2.bin"
says "it cannot be combined with files"
for action in --compact --forget; do
    for option in "--schema $schema" "--key id" "--skip 8" "--epoch 3"; do
        # shellcheck disable=SC2086
        expect 2 index 1 $action -o "$work/l/all" $option
        says "and the options of rows, such as --key"
    done
done
DELTAFS_KEY=id expect 0 index 1 --compact -o "$work/l/all"

# One that was changed and given its time again has another key where the index has one: said, with all that is missing.
key=$(head -n 1 "$work/l/dump.1.csv" | cut -d , -f 1)
touch -r "$work/l/dump.1.bin" "$work/time"
printf '\377' | dd of="$work/l/dump.1.bin" bs=1 seek=7 conv=notrunc 2>/dev/null
touch -r "$work/time" "$work/l/dump.1.bin"
echo >>"$work/l/dump.3.bin"
expect 3 "$deltafs" get "$work/l/all" "$key"
says "the index in $work/l/all says 1; run deltafs-mpi index --again on this file"
says "missing from the answer: epochs 1, 3"
