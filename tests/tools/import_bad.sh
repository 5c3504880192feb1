#!/bin/sh
# Import of files that are damaged or not there, with wrong options, to places that are taken: a message that names the
# cause, the right exit code, nothing made, and no rank left waiting.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python
MPI_TIMEOUT=30

# refused CODE TEXT COMMAND...: which must not make $work/d.
refused() {
    code=$1
    text=$2
    shift 2
    expect "$code" "$@"
    says "$text"
    [ ! -e "$work/d" ] || fail "a directory is made: $*"
    [ "$(grep -c '^deltafs-mpi:' "$work/err")" -le 1 ] || fail "more than one message: $(cat "$work/err")"
}

"$PYTHON3" "$cli/damage_vpic.py" "$work/in" >"$work/list" || fail "damage_vpic.py"
good=$work/in/good
tab=$(printf '\t')

# Each damage, on one rank.
number=0
while IFS=$tab read -r file text; do
    refused 3 "$file: " import 1 --format vpic -o "$work/d" "$file" </dev/null
    says "$text"
    # Some of them on several ranks, as the first file and as the last.
    number=$((number + 1))
    if [ $((number % 24)) -eq 0 ]; then
        refused 3 "$file: " import 2 --format vpic -o "$work/d" "$good" "$good" "$file" </dev/null
        refused 3 "$file: " import 3 --format vpic -o "$work/d" "$file" "$good" "$good" "$good" </dev/null
    fi
done <"$work/list"
[ $number -gt 50 ] || fail "damages are missing"
expect 0 import 1 --format vpic -o "$work/fine" "$good"

# Files that do not belong together, and a set that is not whole.
refused 3 "of the same step and rank" import 1 --format vpic -o "$work/d" "$good" "$good"
refused 3 "of the same step and rank" import 2 --format vpic -o "$work/d" "$good" "$good"
cp "$good" "$work/ions"
printf '\007' | dd of="$work/ions" bs=1 seek=95 conv=notrunc 2>/dev/null
printf '\001' | dd of="$work/ions" bs=1 seek=87 conv=notrunc 2>/dev/null
printf '\002' | dd of="$work/ions" bs=1 seek=91 conv=notrunc 2>/dev/null
expect 0 import 1 --format vpic -o "$work/part" "$work/ions"
says "warning: files of some ranks are missing, in 1 step: of step "
# One warning for all steps.
for step in 1 2 3; do
    cp "$work/ions" "$work/ions.$step"
    printf "\\00$step" | dd of="$work/ions.$step" bs=1 seek=31 conv=notrunc 2>/dev/null
done
expect 0 import 2 --format vpic -o "$work/parts" "$work"/ions.?
says "missing, in 3 steps: of step 1 only those of 1 of 2 ranks are given"
[ "$(grep -c warning "$work/err")" -eq 1 ] || fail "a warning for each step"

# Files that are none.
for ranks in 1 2; do
    vpic="import $ranks --format vpic -o $work/d"
    refused 3 "$work/missing: cannot open: No such file or directory" $vpic "$good" "$work/missing"
    refused 3 "$good/x: cannot open: Not a directory" $vpic "$good/x"
    refused 3 "$work/in: a folder; give the files in it" $vpic "$work/in" "$good"
    refused 3 "/dev/null: not a regular file" $vpic "$good" /dev/null
done
mkfifo "$work/fifo"
MPI_TIMEOUT=10 refused 3 "$work/fifo: not a regular file" import 1 --format vpic -o "$work/d" "$work/fifo"
MPI_TIMEOUT=30
cp "$good" "$work/locked"
chmod 0 "$work/locked"
# Root reads everything.
[ -r "$work/locked" ] || refused 3 "$work/locked: cannot open: Permission denied" import 2 --format vpic -o "$work/d" \
    "$good" "$work/locked"

# ---- Mistakes in the arguments; the valid values are named

for ranks in 1 2; do
    refused 2 "'hdf5' is no format; give vpic or raw" import $ranks --format hdf5 -o "$work/d" "$good"
    refused 2 "--format is missing" import $ranks -o "$work/d" "$good"
    refused 2 "none or snappy" import $ranks --format vpic --codec zip -o "$work/d" "$good"
    refused 2 "frobnicate" import $ranks --format vpic --frobnicate 1 -o "$work/d" "$good"
done
vpic="import 1 --format vpic"
refused 2 "-o DIR is missing" $vpic "$good"
for name in "" deltafs:; do
    refused 2 "import: --output: '$name' is no name of a file or directory" $vpic -o "$name" "$good"
    expect 2 "$deltafs_mpi" index --schema id:u8 --key id -o "$name" "$good"
    says "index: --output: '$name' is no name of a file or directory"
done
refused 2 "no input files" $vpic -o "$work/d"
refused 2 "format" import 1 -o "$work/d" "$good" --format
refused 2 "or more, or auto" $vpic --memory 1M -o "$work/d" "$good"
refused 2 "or more, or auto" $vpic --memory lots -o "$work/d" "$good"
refused 2 "1 to 1048576, or auto" $vpic --partitions 0 -o "$work/d" "$good"
refused 2 "1 to 1048576, or auto" $vpic --partitions 1048577 -o "$work/d" "$good"
refused 2 "256 to 1M" $vpic --block 255 -o "$work/d" "$good"
refused 2 "none, commit or close" $vpic --sync maybe -o "$work/d" "$good"
refused 2 "quiet" $vpic --quiet=1 -o "$work/d" "$good"
refused 2 "value_size" $vpic --value_size 32 -o "$work/d" "$good"
for schema in ux:f4 id:u8~1e-4 ux:f8~1 uxx:f4~1 u:f4~1 ux:f4~1,ux:f4~2; do
    refused 2 "schema:" $vpic --schema $schema -o "$work/d" "$good"
done
for option in --key=id --skip=1 --epoch=3; do
    refused 2 "are for --format raw" $vpic $option -o "$work/d" "$good"
done
DELTAFS_CODEC=zip
export DELTAFS_CODEC
refused 2 "environment variable DELTAFS_CODEC" import 2 --format vpic -o "$work/d" "$good"
unset DELTAFS_CODEC
for word in "" ingest --frobnicate; do
    expect 2 "$deltafs_mpi" $word
    says "there are compact, import, index, ns, pool, route, select, help"
    expect 2 mpi 2 "$deltafs_mpi" $word
    [ "$(grep -c 'there are compact, import, index, ns, pool, route, select, help' "$work/err")" -eq 1 ] || fail "not one message: $(cat "$work/err")"
done

# ---- A place that is taken, or cannot be

# fingerprint PATH: of all that is there.
fingerprint() {
    find "$1" -exec ls -ld --time-style=full-iso {} + | sort
    find "$1" -type f -exec cksum {} + | sort
}
mkdir "$work/folder"
echo precious >"$work/file"
for ranks in 1 2; do
    for place in fine folder file; do
        fingerprint "$work/$place" >"$work/before"
        expect 3 import $ranks --format vpic -o "$work/$place" "$good"
        says "$work/$place"
        fingerprint "$work/$place" >"$work/after"
        same "$work/before" "$work/after" "$place has changed"
    done
    refused 3 "$work/no/folder/here" import $ranks --format vpic -o "$work/no/folder/here" "$good"
    refused 3 "$work/file/d" import $ranks --format vpic -o "$work/file/d" "$good"
done
[ ! -e "$work/no" ] || fail "parents are made"
