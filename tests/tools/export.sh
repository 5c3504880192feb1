#!/bin/sh
# deltafs export: trajectories and whole epochs, the file that is made or not, keys of bytes, damage, mistakes.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python
find_numpy
numpy=$python

# ---- Rows, as get and select print them

"$PYTHON3" "$cli/export_records.py" >"$work/made" || fail export_records.py
read -r schema <"$work/made"
sed 1d "$work/made" >"$work/records"
"$put_records" "$work/d" schema="$schema" partitions=3 <"$work/records" || fail put_records
"$deltafs" attr "$work/d" c==a+1 || fail attr

expect 0 "$deltafs" export "$work/d" -o "$work/all.csv"
[ ! -s "$work/out" ] && [ ! -s "$work/err" ] || fail "an export prints: $(cat "$work/out" "$work/err")"
"$deltafs" select "$work/d" --format csv >"$work/wanted"
same "$work/wanted" "$work/all.csv" "all rows as csv"
[ "$(wc -l <"$work/all.csv")" -eq 754 ] || fail "753 rows expected"
[ "$(head -n 1 "$work/all.csv")" = "key,epoch,a,value.epoch,i,u,b,t,h,v,w,x,r,c" ] || fail "columns: $(head -n 1 "$work/all.csv")"
expect 0 "$deltafs" export "$work/d" --epochs 2: --fields u,c --format csv -o -
"$deltafs" select "$work/d" --epochs 2: --fields u,c --format csv >"$work/wanted"
same "$work/wanted" "$work/out" "some rows and columns"

# Trajectories: in the order of the keys as given, each once.
cut -d ' ' -f 2 "$work/records" | sort -u -R --random-source="$work/records" | head -n 200 >"$work/keys"
head -n 3 "$work/keys" >>"$work/keys"
expect 0 "$deltafs" export "$work/d" 9223372036854775808 --keys "$work/keys" --format csv -o "$work/tracks.csv"
{ echo 9223372036854775808 && cat "$work/keys"; } | awk '!seen[$0]++' >"$work/once"
"$deltafs" get "$work/d" --keys "$work/once" --format csv | cut -d , -f 1-12 >"$work/wanted"
cut -d , -f 1-12 "$work/tracks.csv" >"$work/got"
same "$work/wanted" "$work/got" "trajectories"

# The same if the keys are read in several parts, because there are many epochs.
"$PYTHON3" -c 'for epoch in range(200):
    for key in (1, 500, 1000) if epoch % 100 == 7 else (1,):
        print(epoch, key, "00" * 1000)' |
    "$put_records" "$work/parts" sync=none schema=a:u4,b:V996 || fail put_records
{ seq 1000 -1 1 && seq 1 1000; } >"$work/many"
expect 1 "$deltafs" export "$work/parts" --keys "$work/many" --fields a --format csv -o "$work/parts.csv"
says "export: 989 more keys not found"
[ "$(cut -d , -f 1,2 "$work/parts.csv" | head -n 6 | xargs)" = "key,epoch 1000,7 1000,107 500,7 500,107 1,0" ] &&
    [ "$(wc -l <"$work/parts.csv")" -eq 205 ] || fail "keys in several parts: $(cat "$work/parts.csv")"

# And if they have more records than could be known before.
for many in $(in_full 1000000); do
    "$PYTHON3" -c 'import sys
for i in range(int(sys.argv[1])):
    print("1 7 %08x\n1 5 %08x" % (i, i + 1))' "$many" | "$put_records" "$work/dense" sync=none schema=a:u4 || fail put_records
    expect 0 "$deltafs" export "$work/dense" 7 5 --format csv -o "$work/dense.csv"
    [ "$(wc -l <"$work/dense.csv")" -eq $((2 * many + 1)) ] && [ "$(sed -n 2p "$work/dense.csv")" = 7,1,0 ] &&
        [ "$(sed -n $((many + 2))p "$work/dense.csv")" = 5,1,16777216 ] || fail "many records of a key"
    rm -r "$work/dense" "$work/dense.csv"
done

expect 0 "$deltafs" export "$work/d" --keys "$work/keys" --format jsonl -o "$work/tracks.jsonl"
"$deltafs" get "$work/d" --keys "$work/keys" --format json >"$work/wanted"
"$PYTHON3" - "$work/tracks.jsonl" "$work/wanted" <<'END' || fail "other objects than get prints"
import json, sys
got = [json.loads(line) for line in open(sys.argv[1])]
wanted = json.load(open(sys.argv[2]))
[r.pop("c") for r in got]
[r.pop("c", None) for r in wanted]
wanted = list({(r["key"], r["epoch"], r["u"], r["i"]): r for r in wanted}.values())
if got != wanted or len(got) < 100:
    sys.exit("%d rows instead of %d" % (len(got), len(wanted)))
END

# Values that are missing in an epoch are NaN.
"$put_records" "$work/lacking" schema=a:u4 <<'END' || fail put_records
1 7 01000000
2 7 02000000
END
"$deltafs" attr "$work/lacking" late==a/4 --from 2 || fail attr
expect 0 "$deltafs" export "$work/lacking" --format jsonl -o -
stdout_has '"epoch": 1, "a": 1, "late": null}'
expect 0 "$deltafs" export "$work/lacking" --format npz -o "$work/lacking.npz"
"$numpy" -c 'import numpy, sys; late = numpy.load(sys.argv[1])["late"].tolist(); sys.exit(late[0] == late[0] or late[1] != 0.5)' \
    "$work/lacking.npz" || fail "a missing value in npz"

# ---- Other formats, by their readers

# A directory that needs several blocks.
"$PYTHON3" -c 'for i in range(13000): print(1, i, "2db2953f%08x%0200x" % (i, 3 * i))' |
    "$put_records" "$work/large" schema=a:f4,b:f4,t:V100 || fail put_records
"$deltafs" select "$work/large" --format csv >"$work/large.csv" || fail select
"$deltafs" export "$work/d" --keys "$work/once" --format csv -o "$work/once.csv" || fail export

# read_back FORMAT PYTHON: the file has the same rows.
read_back() {
    expect 0 "$deltafs" export "$work/d" --keys "$work/once" --format $1 -o "$work/once.$1"
    "$2" "$cli/export_check.py" $1 "$work/once.$1" "$work/once.csv" || fail "trajectories as $1"
    expect 0 "$deltafs" export "$work/large" --format $1 -o "$work/large.$1"
    "$2" "$cli/export_check.py" $1 "$work/large.$1" "$work/large.csv" || fail "epochs as $1"
}
if [ -n "$numpy" ]; then
    read_back npy "$numpy"
    read_back npz "$numpy"
else
    echo "npy and npz are not read: there is no NumPy"
fi

read_back parquet "$PYTHON3"
expect 0 "$deltafs" attr "$work/d" m=1,2.5 --unit kg
expect 0 "$deltafs" export "$work/d" 1 --format parquet -o "$work/attributes"
mkdir "$work/no_snappy"
: >"$work/no_snappy/libsnappy.so.1"
expect 3 env LD_LIBRARY_PATH="$work/no_snappy" "$deltafs" export "$work/d" 1 --format parquet -o "$work/no.parquet"
says "export: $work/no.parquet: Parquet needs the library Snappy"
[ ! -f "$work/no.parquet" ] || fail "Parquet without Snappy"
"$PYTHON3" - "$work/attributes" <<'END' || fail "attributes in Parquet"
import json, sys
text = open(sys.argv[1], "rb").read().decode("latin-1")
text = text[text.index("[", text.index("deltafs.attributes")):]
got = {a["name"]: a for a in json.JSONDecoder().raw_decode(text)[0]}
assert got["c"]["value"] == "a+1" and got["m"]["value"] == [1, 2.5] and got["m"]["unitDimension"][1] == 1, got
END

# ---- The file

# left: what an export has left in its folder.
mkdir "$work/f"
left() {
    ls -A "$work/f" | xargs
}
expect 0 "$deltafs" export "$work/d" 1 --format csv -o "$work/f/x"
expect 3 "$deltafs" export "$work/d" 2 --format csv -o "$work/f/x"
says "there is a file of this name; --force replaces it"
ln -s x "$work/f/link"
chmod 640 "$work/f/x"
expect 0 "$deltafs" export "$work/d" 0 --format csv -f -o "$work/f/link"
[ "$(sed -n '2s/,.*//p' "$work/f/x")" = 0 ] || fail "not replaced behind the link: $(cat "$work/f/x")"
[ "$(stat -c %a "$work/f/x")" = 640 ] || fail "the mode of a replaced file"
rm "$work/f/x"
expect 3 "$deltafs" export "$work/d" 2 --format csv -o "$work/f/link"
says "a symbolic link to what is not there"
rm "$work/f/link"
expect 3 "$deltafs" export "$work/d" --format csv -o "$work/f/none/x"
says "cannot be made in $work/f/none: No such file"
expect 3 "$deltafs" export "$work/d" --format csv -f -o "$work/f"
says "not a plain file"
expect 1 "$deltafs" export "$work/d" 5 6 --format csv -o "$work/f/x"
says "export: key 5 not found"
says "export: key 6 not found"
seq 100 120 >"$work/none"
expect 1 "$deltafs" export "$work/d" --keys "$work/none" --format csv -o "$work/f/x"
says "export: key 107 not found"
says "export: 13 more keys not found"
[ "$(wc -l <"$work/err")" -eq 9 ] || fail "messages about 21 keys: $(cat "$work/err")"
expect 1 "$deltafs" export "$work/d" --epochs 2 --format csv -o "$work/f/x"
says "export: no records"
for full in "csv d 1" "jsonl d 1" "npy d 1" "npz d 1" "npz large 3050" "parquet d 1"; do
    # shellcheck disable=SC2086 # three words
    set -- $full
    format=$1 d=$2
    (
        trap '' XFSZ
        ulimit -f "$3"
        exec "$deltafs" export "$work/$d" --format $format -o "$work/f/x" 2>"$work/err"
    )
    [ $? -eq 3 ] || fail "$format: a full disk"
    says "cannot write to $work/f/x: File too large"
done
# Terminated while it writes, unless it is faster than that.
code=0
for try in 1 2 3 4 5 6 7 8 9 10; do
    [ $code -eq 0 ] || break
    rm -f "$work/f/x"
    "$deltafs" export "$work/large" --format csv -o "$work/f/x" &
    n=0
    while [ -z "$(left)" ] && [ $n -lt 1000 ]; do
        n=$((n + 1))
        sleep 0.01
    done
    kill -TERM $!
    wait $!
    code=$?
done
[ $code -eq 143 ] || fail "an export that was terminated: $code"
[ -z "$(left)" ] || fail "an export that failed has left: $(left)"
expect 1 "$deltafs" export "$work/d" 5 1 --format csv -o "$work/f/x"
says "export: key 5 not found"
[ "$(sed -n '2s/,.*//p' "$work/f/x")" = 1 ] || fail "the key that is there: $(cat "$work/f/x")"
expect 1 "$deltafs" export "$work/d" 1 --epochs 4:5 --format csv -o -
says "export: key 1 not found in these epochs"
rm "$work/f/x"

# ---- Keys of bytes, no schema

printf '1 6262 -\n1 61 0102\n2 61 03\n2 630a 04\n' | "$put_records" "$work/b" keys=bytes partitions=3 || fail put_records
printf 'key,epoch,size,value\n"c\n",2,1,04\na,1,2,0102\na,2,1,03\n' >"$work/wanted"
expect 0 "$deltafs" export "$work/b" --hex 630a 61 --format csv -o -
same "$work/wanted" "$work/out" "keys of bytes"
printf '{"key": "bb", "epoch": 1, "size": 0, "value": ""}\n' >"$work/wanted"
expect 0 "$deltafs" export "$work/b" bb --format jsonl -o -
same "$work/wanted" "$work/out" "keys of bytes as jsonl"

expect 0 "$deltafs" export "$work/b" --format csv -o "$work/b.csv"
expect 0 "$deltafs" export "$work/b" --format parquet -o "$work/b.parquet"
sed 's/,size,value/,value/; s/,[0-9]*\(,[^,]*\)$/\1/' "$work/b.csv" >"$work/wanted"
"$PYTHON3" "$cli/export_check.py" parquet "$work/b.parquet" "$work/wanted" || fail "keys of bytes as parquet"
for format in npy npz; do
    expect 2 "$deltafs" export "$work/b" --format $format -o "$work/f/x"
    says "export: $format has no place for keys of bytes; use csv"
done
printf '1 1 0102\n1 2 03\n' | "$put_records" "$work/v" || fail put_records
expect 2 "$deltafs" export "$work/v" --format npz -o "$work/f/x"
says "export: npz has no place for values of different sizes; use csv"
[ -z "$(left)" ] || fail "an export that failed has left: $(left)"
printf '1 1 0102\n1 2 0304\n' | "$put_records" "$work/w" value_size=2 || fail put_records
expect 0 "$deltafs" export "$work/w" --format npy -o "$work/w.npy"
[ -z "$numpy" ] || "$numpy" -c 'import numpy, sys
a = numpy.load(sys.argv[1])
assert a.dtype == [("key", "u8"), ("epoch", "u8"), ("value", "V2")], a.dtype
assert a["value"].tobytes() == bytes([1, 2, 3, 4]), a' "$work/w.npy" || fail "values without a schema"

# ---- Damage: the rest is exported

printf '1 5 00000001\n2 6 00000002\n' | "$put_records" "$work/damaged" schema=a:u4 codec=none || fail put_records
size=$(wc -c <"$work/damaged/00/p00000000.data")
printf '\377' | dd of="$work/damaged/00/p00000000.data" bs=1 seek=$((size - 1)) conv=notrunc 2>"$work/dd" || fail dd
printf 'key,epoch,a\n5,1,16777216\n' >"$work/wanted"
for keys in '' '5 6'; do
    # shellcheck disable=SC2086 # two words
    expect 3 "$deltafs" export "$work/damaged" $keys --format csv -f -o "$work/f/x"
    says "p00000000.data"
    says "export: $work/f/x has the rows that can be read, but not all"
    same "$work/wanted" "$work/f/x" "what is not damaged"
done
rm "$work/f/x"
expect 3 "$deltafs" export "$work/damaged" --epochs 2 --format csv -o "$work/f/x"
[ -z "$(left)" ] || fail "nothing can be read, but there is: $(left)"

# ---- Mistakes

wrong() {
    text=$1
    shift
    expect 2 "$deltafs" export "$@"
    says "$text"
    [ -z "$(left)" ] || fail "a mistake has left: $(left)"
}
wrong "DIR is missing" --format csv -o "$work/f/x"
wrong "--format is missing; give csv, jsonl, npy, npz, openpmd, vtkhdf or parquet" "$work/d" -o "$work/f/x.txt"
wrong "--format is missing; give csv" "$work/d"
wrong "--format is missing: $work/f/x.h5 may be openpmd or vtkhdf" "$work/d" -o "$work/f/x.h5"
wrong "--output is missing" "$work/d" --format csv
wrong "'xml' is no format; give csv, jsonl, npy" "$work/d" --format xml
wrong "npy cannot be written to standard output; give a file" "$work/d" --format npy -o -
wrong "key 'x' is no number" "$work/d" x --format csv -o "$work/f/x"
wrong "the file is a plain one" "$work/d" --format csv -o "deltafs:$work/f/x"
wrong "--hex is for keys of bytes" "$work/d" --hex --format csv -o "$work/f/x"
wrong "fields: offset 2: no column or attribute is named 'vy'" "$work/d" --fields u,vy --format csv -o "$work/f/x"
expect 3 "$deltafs" export "$work/nothing" --format csv -o "$work/f/x"
