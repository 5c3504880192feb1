#!/bin/sh
# The commands on what is no directory, on damaged ones, and on those of a later version.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

# refused DIR TEXT: all commands end with 3 and say TEXT and nothing else.
refused() {
    for words in "get 1" "scan" "info" "info --json" "verify"; do
        # shellcheck disable=SC2086
        expect 3 "$deltafs" ${words%% *} "$1" $(echo "$words" | cut -s -d' ' -f2)
        says "deltafs: $1"
        says "$2"
        [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$words: more than one line: $(cat "$work/err")"
        [ ! -s "$work/out" ] || fail "$words: output: $(cat "$work/out")"
    done
}

# Some keys in each partition, in each of two epochs.
for label in 10 20; do
    for key in 1 2 3 4 5 6 7 8; do
        echo "$label $key ${label}00000$key"
    done
done >"$work/records"
"$put_records" "$work/sound" schema=x:u4 partitions=2 <"$work/records" || fail "put_records"
for partition in 0 1; do
    "$deltafs" scan "$work/sound" --partition $partition --format csv | grep -q ,20, || fail "partition $partition is empty"
done

mkdir "$work/folder"
echo text >"$work/file"
refused "$work/missing" "No such file or directory"
refused "$work/file" ""
refused "$work/folder" "MANIFEST"
mkdir "$work/folder/MANIFEST"
refused "$work/folder" "MANIFEST"
rmdir "$work/folder/MANIFEST"
: >"$work/folder/MANIFEST"
refused "$work/folder" "not the manifest of a DeltaFS directory"
for text in x Deltafs "Deltafs " "Deltafs version=1" "PK"; do
    echo "$text" >"$work/folder/MANIFEST"
    expect 3 "$deltafs" info "$work/folder"
    says "$work/folder/MANIFEST"
done
head -c 100000 /dev/zero >"$work/folder/MANIFEST"
refused "$work/folder" "not the manifest of a DeltaFS directory"

# A partition of which both logs are gone: verify names both.
cp -r "$work/sound" "$work/gone"
rm "$work/gone/01/p00000001.data" "$work/gone/01/p00000001.index"
expect 3 "$deltafs" verify "$work/gone"
says "$work/gone/01/p00000001.index: damaged at offset 0: the file is missing"
says "$work/gone/01/p00000001.data: damaged at offset 0: the file is missing"
stdout_has "8 records in 2 blocks and 2 leaves read, 2 damages"

# manifest: standard input, sealed, becomes the manifest of a copy.
manifest() {
    rm -rf "$work/copy"
    cp -r "$work/sound" "$work/copy"
    rm "$work/copy/MANIFEST.copy"
    oracle seal >"$work/copy/MANIFEST" || fail "oracle.py seal"
}
lines() {
    sed 's/ ~[0-9a-f]*$//' "$work/sound/MANIFEST"
}

# The checksum of the test's own is the one of the directory.
lines | manifest
same "$work/sound/MANIFEST" "$work/copy/MANIFEST" "the oracle's checksum"

# A later version: refused, not guessed at.
lines | sed 's/version=1 /version=2 /' | manifest
refused "$work/copy" "version 2"
lines | sed '2a Tombstones kind=cruel' | manifest
refused "$work/copy" "Tombstones"
lines | sed 's/keys=u64/keys=pair/' | manifest
refused "$work/copy" "pair"
# A word that may be left alone is.
expect 0 "$deltafs" scan "$work/sound" --format csv
cp "$work/out" "$work/sound.csv"
lines | sed '2a comment on the weather' | sed 's/partitions=2/partitions=2 flavour=sweet/' | manifest
expect 0 "$deltafs" scan "$work/copy" --format csv
same "$work/sound.csv" "$work/out" "a line that may be ignored"
expect 0 "$deltafs" verify "$work/copy"

# Right checksums, wrong facts.
for change in '1d' '2d' '1p' '2p' 's/partitions=2/partitions=0/' 's/partitions=2/partitions=4294967297/' 's/partitions=2//' \
    's/value_size=4/value_size=5/' 's/value_size=4/value_size=any/' 's/value_size=4/value_size=99999999999/' \
    's/x:u4/x:u5/' 's/x:u4//' '3p' 's/label=20/label=10/' 's/number=1/number=2/' '/number=0/d' 's/records=8/records=x/' \
    's/records=8//' 's/close epochs=2/close epochs=3/' 's/tail=[0-9]*/tail=/' 's/uuid=./uuid=-/' 's/uuid=[^ ]*//' \
    's/version=1/version=/' 's/version=1/version=x/' 's/^Directory.*/Directory/'; do
    lines | sed "$change" | manifest
    for words in "scan --format=csv" "verify"; do
        # shellcheck disable=SC2086
        "$deltafs" ${words%% *} "$work/copy" $(echo "$words" | cut -s -d' ' -f2) >"$work/out" 2>"$work/err" </dev/null
        code=$?
        # A wrong number of records is seen when they are counted.
        [ $code -eq 3 ] || fail "$change: $words ends with $code: $(cat "$work/err")"
        says "$work/copy"
    done
done
for change in 's/records=8/records=9/' 's/raw=96/raw=97/'; do
    lines | sed "$change" | manifest
    expect 3 "$deltafs" verify "$work/copy"
    says "$work/copy"
done

# Logs of another directory, and of another partition.
"$put_records" "$work/other" schema=x:u4 partitions=2 <"$work/records" || fail "put_records"
for log in 00/p00000000.data 00/p00000000.index 01/p00000001.data 01/p00000001.index; do
    rm -rf "$work/copy"
    cp -r "$work/sound" "$work/copy"
    cp "$work/other/$log" "$work/copy/$log"
    for words in scan verify; do
        expect 3 "$deltafs" $words "$work/copy"
        says "$work/copy/$log"
        says "offset"
    done
    # The other partition stays readable.
    p=${log%%/*}
    expect 0 "$deltafs" scan "$work/copy" --partition $((1 - ${p#0}))
done

# A truncated manifest: the epochs before are there, and that others were committed is found. Cut at any byte, it is never
# more than a message.
size=$(wc -c <"$work/sound/MANIFEST")
two=$(sed 4q "$work/sound/MANIFEST" | wc -c)
three=$(sed 5q "$work/sound/MANIFEST" | wc -c)
at=$size
rm "$work/copy/MANIFEST.copy"
while [ "$at" -gt 0 ]; do
    at=$((at - 7))
    [ $at -ge 0 ] || at=0
    head -c $at "$work/sound/MANIFEST" >"$work/copy/MANIFEST"
    cp "$work/sound/$log" "$work/copy/$log"
    "$deltafs" scan "$work/copy" --format csv >"$work/out" 2>"$work/err"
    code=$?
    if [ $at -ge "$three" ]; then
        records=16
    elif [ $at -ge "$two" ]; then
        records=8
    elif [ $code -eq 0 ]; then
        records=0
    else
        [ $code -eq 3 ] || fail "manifest cut to $at: exit code $code"
        continue
    fi
    [ $code -eq 0 ] && [ "$(sed 1d "$work/out" | wc -l)" -eq $records ] ||
        fail "manifest cut to $at: $code, $(cat "$work/out" "$work/err")"
    if [ $records -eq 16 ]; then
        expect 0 "$deltafs" verify "$work/copy"
    else
        expect 3 "$deltafs" verify "$work/copy"
        says "says that at least 2 epochs were committed"
    fi
done

# Every part of every file, bit by bit.
"$PYTHON3" - >"$work/lines" <<'END' || fail "python"
for label in (1, 2, 3):
    for i in range(300):
        print(label, (i % 7) << 40 | i, "%08x%08x" % (0x3F000000 + i * 977 * label, i))
END
"$put_records" "$work/large" schema=x:f4,i:u4 partitions=2 block=512 <"$work/lines" || fail "put_records"
"$PYTHON3" "$cli/damage.py" "$deltafs" "$work/large" "$work/damaged" 0 1099511627777 5497558139179 3298534883478 || fail "damages"
