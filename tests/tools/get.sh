#!/bin/sh
# deltafs get, scan and info: keys, epochs, formats, on directories made without MPI.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

# x 1.5, y nan, a -1, b 65535, t a"b,c, v 00ff10; inf, -inf, -128, 0, no text; -0.0, 0.1, 127, 1, a line's end, a
# backslash, bytes beyond ASCII; 1e20 as f4, the smallest f8, a text that fills its field.
one=0000c03f000000000000f87fffffff6122622c6300000000ff10
two=0000807f000000000000f0ff8000000000000000000000010203
three=000000809a9999999999b93f7f0100780a795ce9010000ffffff
four=ec78ad600100000000000000000001"3132333435363738"000000
last=18446744073709551615
"$put_records" "$work/d" schema=x:f4,y:f8,a:i1,b:u2,t:S8,v:V3 partitions=3 <<END || fail "put_records"
0 1 $one
5 2 $three
5 1 $two
5 1 $one
9 $last $four
END

header=key,epoch,x,y,a,b,t,v
{
    echo "$header"
    echo '1,0,1.5,nan,-1,65535,"a""b,c",00ff10'
    echo '1,5,inf,-inf,-128,0,,010203'
    echo '1,5,1.5,nan,-1,65535,"a""b,c",00ff10'
} >"$work/csv1"
{
    printf '2,5,-0.0,0.1,127,1,"x\ny\\\351\001",ffffff\n'
} >"$work/csv2"
echo "$last,9,1.0000000200408773e+20,5e-324,0,256,12345678,000000" >"$work/csv3"

# ---- CSV, and the order of the answers

expect 0 "$deltafs" get "$work/d" 1 --format csv
same "$work/csv1" "$work/out" "get 1"
expect 0 "$deltafs" get --format=csv "$work/d" 0x1 0xFFFFFFFFFFFFFFFF 2
cat "$work/csv1" "$work/csv3" "$work/csv2" >"$work/wanted"
same "$work/wanted" "$work/out" "get of three keys"
expect 0 "$deltafs" get "$work/d" 2 2 --format csv
(echo $header && cat "$work/csv2" "$work/csv2") >"$work/wanted"
same "$work/wanted" "$work/out" "get of a key twice"

# ---- Keys from files; keys that are not there; keys that are no keys

printf ' 1\n\t0xffffffffffffffff 2' >"$work/keys"
cat "$work/csv1" "$work/csv3" "$work/csv2" >"$work/wanted"
expect 0 "$deltafs" get "$work/d" --keys "$work/keys" --format csv
same "$work/wanted" "$work/out" "get --keys FILE"
expect 0 "$deltafs" get "$work/d" --keys - --format csv <"$work/keys"
same "$work/wanted" "$work/out" "get --keys -"
expect 0 "$deltafs" get "$work/d" 1 --keys /dev/null --format csv
same "$work/csv1" "$work/out" "get with no keys in the file"
expect 0 "$deltafs" get "$work/d" --keys /dev/null --format csv
[ "$(cat "$work/out")" = $header ] || fail "get of no keys prints more than the header"
expect 1 "$deltafs" get "$work/d" 3 1 4 --format csv
same "$work/csv1" "$work/out" "get where keys are absent"
says "deltafs: get: key 3 not found"
says "deltafs: get: key 4 not found"
[ "$(wc -l <"$work/err")" -eq 2 ] || fail "more messages than two keys that are not there"
for key in 1x x 0x 0xg 1.0 +1 " 1" "1 " "" 18446744073709551616 0x10000000000000000 --1 -1 0x0x1 0x-1; do
    expect 2 "$deltafs" get "$work/d" "$key"
    [ ! -s "$work/out" ] || fail "output for the key '$key'"
    expect 2 "$deltafs" get "$work/d" 1 -- "$key"
    says "key '$key' is no number"
done
echo 1 2 three >"$work/keys"
expect 2 "$deltafs" get "$work/d" --keys "$work/keys"
says "'three'"
# Longer than any number, but made of digits: no other keys come of it.
echo 000000000000000000000000000000000000000000000000000000000000000212 >"$work/keys"
"$deltafs" get "$work/d" --keys "$work/keys" --format csv >"$work/out" 2>"$work/err" && fail "a key of 66 digits is cut"
grep -q '^2,' "$work/out" && fail "a key of 66 digits is cut to another key"
expect 3 "$deltafs" get "$work/d" --keys "$work/missing"
says "$work/missing"
says "No such file"
expect 3 "$deltafs" get "$work/d" --keys "$work"
says "$work"

# ---- Epochs

# epochs RANGE LABELS: what key 1 has in the range.
epochs() {
    expect 0 "$deltafs" get "$work/d" 1 --format csv --epochs "$1"
    [ "$(sed 1d "$work/out" | cut -d, -f2 | xargs)" = "$2" ] || fail "--epochs $1: not $2: $(cat "$work/out")"
}
epochs 0 "0"
epochs 5 "5 5"
epochs 0x5 "5 5"
epochs 0:5 "0 5 5"
epochs 1:9 "5 5"
epochs 5: "5 5"
epochs :4 "0"
epochs :5 "0 5 5"
epochs 0: "0 5 5"
epochs 0:18446744073709551615 "0 5 5"
for range in 6:8 9 1 10:; do
    expect 1 "$deltafs" get "$work/d" 1 --epochs "$range"
    says "key 1 not found in these epochs"
    expect 0 "$deltafs" scan "$work/d" --epochs "$range" --format csv
done
for range in : "" a 1:a a:1 5:0 1:2:3 -1 1- 0:18446744073709551616 "1 " " 1" 1::2 \
    00000000000000000000000000000000000000000000000001x; do
    expect 2 "$deltafs" get "$work/d" 1 --epochs "$range"
    says "'$range' is no range"
    expect 2 "$deltafs" scan "$work/d" --epochs "$range"
    [ ! -s "$work/out" ] || fail "output for the epochs '$range'"
done

# ---- Ranges of keys, in the order of keys whatever the partition

# range RANGE "WANTED" [OPTION...]: key and epoch of each record.
range() {
    range=$1 pairs=$2
    shift 2
    expect 0 "$deltafs" scan "$work/d" --key-range "$range" --fields a --format csv "$@"
    [ "$(sed 1d "$work/out" | cut -d, -f1,2 | tr '\n' ' ')" = "$pairs" ] || fail "scan --key-range $range: $(cat "$work/out")"
}
range 0: "1,0 1,5 1,5 2,5 $last,9 "
range 1 "1,0 1,5 1,5 "
range 2: "2,5 $last,9 "
range :0x2 "1,5 1,5 2,5 " --epochs 5
range 3:99 ""
range $last: "$last,9 "
expect 0 "$deltafs" scan "$work/d" --key-range 1 --format csv
same "$work/csv1" "$work/out" "scan --key-range 1"
for range in : "" a 1:a 5:0 1:2:3 -1 0:18446744073709551616; do
    expect 2 "$deltafs" scan "$work/d" --key-range "$range"
    says "'$range' is no range of keys"
done
expect 2 "$deltafs" scan "$work/d" --key-range 1 --partition 0
says "give --key-range or --partition, not both"

# ---- JSON, raw bytes, table

expect 0 "$deltafs" get "$work/d" 1 2 $last --format json
"$PYTHON3" - "$work/out" <<'END' || fail "get --format json"
import json, sys
def constant(text):
    sys.exit("no JSON: " + text)
wanted = [
    {"key": 1, "epoch": 0, "x": 1.5, "y": "nan", "a": -1, "b": 65535, "t": 'a"b,c', "v": "00ff10"},
    {"key": 1, "epoch": 5, "x": "inf", "y": "-inf", "a": -128, "b": 0, "t": "", "v": "010203"},
    {"key": 1, "epoch": 5, "x": 1.5, "y": "nan", "a": -1, "b": 65535, "t": 'a"b,c', "v": "00ff10"},
    {"key": 2, "epoch": 5, "x": -0.0, "y": 0.1, "a": 127, "b": 1, "t": {"hex": "780a795ce901"}, "v": "ffffff"},
    {"key": 2**64 - 1, "epoch": 9, "x": 100000002004087734272.0, "y": 5e-324, "a": 0, "b": 256, "t": "12345678", "v": "000000"},
]
got = json.load(open(sys.argv[1]), parse_constant=constant)
for g, w in zip(got, wanted):
    if g != w or list(g) != list(w):
        sys.exit("%r instead of %r" % (g, w))
sys.exit(len(got) != len(wanted))
END
expect 1 "$deltafs" get "$work/d" 77 --format json
[ "$(tr -d ' \n' <"$work/out")" = "[]" ] || fail "an answer without records is no empty array: $(cat "$work/out")"

echo $three$one$two$one | "$PYTHON3" -c 'import sys
sys.stdout.buffer.write(bytes.fromhex(sys.stdin.read()))' >"$work/wanted"
expect 0 "$deltafs" get "$work/d" 2 1 --format raw
same "$work/wanted" "$work/out" "get --format raw"
expect 1 "$deltafs" get "$work/d" 77 --format raw
[ ! -s "$work/out" ] || fail "bytes of a key that is not there"

expect 0 "$deltafs" get "$work/d" 1 $last
cp "$work/out" "$work/table"
expect 0 "$deltafs" get "$work/d" 1 $last --format table
same "$work/table" "$work/out" "table is not the default"
[ "$(wc -l <"$work/out")" -eq 5 ] || fail "a table of other than five lines: $(cat "$work/out")"
[ "$(awk 'NR == 1 { $1 = $1; print }' "$work/out")" = "$(echo $header | tr , ' ')" ] || fail "the table's header"
awk 'NR == 2' "$work/out" | grep -q '^ *1 *0 *1\.5 *nan *-1 *65535 ' || fail "the table's first line: $(cat "$work/out")"

# ---- Statistics: on standard error, and few

expect 0 "$deltafs" get "$work/d" 1 --stats --format csv
same "$work/csv1" "$work/out" "get --stats"
grep -qE '^stats: reads=[0-9]+ bytes_read=[0-9]+ seconds=[0-9.]+$' "$work/err" || fail "stats: $(cat "$work/err")"
reads=$(sed -n 's/^stats: reads=\([0-9]*\).*/\1/p' "$work/err")
[ "$reads" -le 8 ] || fail "$reads reads for 3 epochs; 8 are the most"

# ---- Scan, whole and by partition

expect 0 "$deltafs" scan "$work/d" --format csv
"$PYTHON3" - "$work/out" <<'END' || fail "scan --format csv"
import csv, sys
rows = list(csv.reader(open(sys.argv[1], encoding="latin-1", newline="")))
keys = sorted((int(r[0]), int(r[1])) for r in rows[1:])
sys.exit(keys != [(1, 0), (1, 5), (1, 5), (2, 5), (2**64 - 1, 9)] or {len(r) for r in rows} != {8})
END
cp "$work/out" "$work/whole"
sed 1q "$work/whole" >"$work/parts"
for partition in 0 1 2; do
    expect 0 "$deltafs" scan "$work/d" --partition $partition --format csv
    sed 1d "$work/out" >>"$work/parts"
done
same "$work/whole" "$work/parts" "the partitions one by one are not the whole"
expect 2 "$deltafs" scan "$work/d" --partition 3
says "there are 0 to 2"
for partition in x -1 "" 4294967296 1x; do
    expect 2 "$deltafs" scan "$work/d" --partition "$partition"
done
expect 0 "$deltafs" scan "$work/d" --format json
"$PYTHON3" -c 'import json, sys; sys.exit(len(json.load(sys.stdin)) != 5)' <"$work/out" || fail "scan --format json"
expect 0 "$deltafs" scan "$work/d" --format raw
[ "$(wc -c <"$work/out")" -eq 130 ] || fail "scan --format raw"
expect 0 "$deltafs" scan "$work/d"

# ---- Info

expect 0 "$deltafs" info "$work/d" --json
"$PYTHON3" - "$work/out" <<'END' || fail "info --json"
import json, sys
i = json.load(open(sys.argv[1]))
epochs = [(e["label"], e["records"], e["bytes"]) for e in i["epochs"]]
sys.exit((i["version"], i["closed"], i["partitions"], i["value_size"], i["schema"], i["records"], i["bytes_raw"], epochs)
         != (1, True, 3, 26, "x:f4,y:f8,a:i1,b:u2,t:S8,v:V3", 5, 170, [(0, 1, 34), (5, 3, 102), (9, 1, 34)]))
END
stored=$("$PYTHON3" -c 'import json, sys; print(json.load(sys.stdin)["bytes_stored"])' <"$work/out")
bytes=$(find "$work/d" -type f -exec cat {} + | wc -c)
[ "$stored" -eq "$bytes" ] || fail "info: $stored bytes stored; the files have $bytes"
expect 0 "$deltafs" info "$work/d"
grep -qE '^ +5 +3 +102 +[0-9]+$' "$work/out" || fail "info: $(cat "$work/out")"
stdout_has "x:f4,y:f8,a:i1,b:u2,t:S8,v:V3"

# ---- Values of no schema and any size; a writer that did not close

"$put_records" "$work/any" --abandon <<END || fail "put_records"
3 7 -
3 7 00
3 8 0102030405
4 7 ff
END
printf 'key,epoch,size,value\n7,3,0,\n7,3,1,00\n7,4,1,ff\n8,3,5,0102030405\n' >"$work/wanted"
expect 0 "$deltafs" get "$work/any" 7 8 --format csv
same "$work/wanted" "$work/out" "values of any size: csv"
expect 0 "$deltafs" get "$work/any" 7 8
[ "$(awk 'NR == 5 { print $1, $2, $3, $4 }' "$work/out")" = "8 3 5 0102030405" ] || fail "values of any size: table"
expect 0 "$deltafs" get "$work/any" 8 --format json
"$PYTHON3" -c 'import json, sys
sys.exit(json.load(sys.stdin) != [{"key": 8, "epoch": 3, "size": 5, "value": "0102030405"}])' <"$work/out" ||
    fail "values of any size: json"
expect 0 "$deltafs" get "$work/any" 7 8 --format raw
[ "$(od -An -tx1 "$work/out" | tr -d ' \n')" = 00ff0102030405 ] || fail "values of any size: raw"
expect 0 "$deltafs" verify "$work/any"
stdout_has "4 records"
stdout_has "not closed"
expect 0 "$deltafs" info --json "$work/any"
"$PYTHON3" -c 'import json, sys
i = json.load(sys.stdin)
sys.exit((i["closed"], i["value_size"], i["schema"], i["bytes_raw"]) != (False, None, "", 39))' <"$work/out" ||
    fail "values of any size: info"
expect 0 "$deltafs" info "$work/any"

# ---- Computed columns: behind the stored ones, except in raw bytes; read back exactly; the same as in a select

for format in table csv json raw; do
    expect 0 "$deltafs" scan "$work/d" --format $format
    cp "$work/out" "$work/$format"
done
expect 0 "$deltafs" attr "$work/d" scale=0,3,0.1
expect 0 "$deltafs" attr "$work/d" 'sum==x + b / 3 + key'
expect 0 "$deltafs" attr "$work/d" 'late==scale[a % 2 + 1] * epoch'
expect 0 "$deltafs" scan "$work/d" --format raw
same "$work/raw" "$work/out" "raw bytes have computed columns"
expect 0 "$deltafs" select "$work/d" --format csv
sort "$work/out" >"$work/wanted"
expect 0 "$deltafs" scan "$work/d" --format csv
"$PYTHON3" - "$work/csv" "$work/out" <<'END' || fail "scan: the stored columns before the computed ones"
import csv, sys
before, after = (list(csv.reader(open(f, encoding="latin-1", newline=""))) for f in sys.argv[1:])
sys.exit([r[:8] for r in after] != before or after[0][8:] != ["sum", "late"] or {len(r) for r in after} != {10})
END
sort -o "$work/out" "$work/out"
same "$work/wanted" "$work/out" "scan and select have other computed columns"
expect 0 "$deltafs" get "$work/d" 1 $last --format json
"$PYTHON3" - "$work/out" <<'END' || fail "computed columns in json: $(cat "$work/out")"
import json, sys
rows = json.load(open(sys.argv[1]))
wanted = [(1.5 + 65535 / 3 + 1, 0.0), ("inf", 3.0 * 5), (1.5 + 65535 / 3 + 1, 0.1 * 5),
          (100000002004087734272.0 + 256 / 3 + float(2**64 - 1), 3.0 * 9)]
sys.exit([(r["sum"], r["late"]) for r in rows] != wanted or list(rows[0])[-2:] != ["sum", "late"])
END
expect 0 "$deltafs" get "$work/d" 1
[ "$(awk 'NR == 1 { $1 = $1; print }' "$work/out")" = "$(echo $header,sum,late | tr , ' ')" ] || fail "the table's header"
# An attribute that the expression needs is another one, or none, in some epochs.
expect 0 "$deltafs" attr "$work/d" factor=1.5 --from 5
expect 0 "$deltafs" attr "$work/d" 'twice==2 * factor'
expect 0 "$deltafs" attr "$work/d" 'half==1 / 2' --from 9
expect 0 "$deltafs" attr "$work/d" 'quarter==half / 2'
printf 'twice,half,quarter\n,,\n3.0,,\n3.0,,\n' >"$work/wanted"
for command in get scan select export; do
    key=
    [ $command != get ] || key=1
    [ $command != export ] || key="-o -"
    expect 0 "$deltafs" $command "$work/d" $key --epochs :5 --format csv
    sed -n '/^key,\|^1,/s/.*,\([^,]*,[^,]*,[^,]*\)$/\1/p' "$work/out" >"$work/some"
    same "$work/wanted" "$work/some" "$command: values that are missing in some epochs"
done
expect 0 "$deltafs" get "$work/d" $last --epochs 9 --format csv
grep -q ',3.0,0.5,0.25$' "$work/out" || fail "no value is missing: $(cat "$work/out")"
expect 0 "$deltafs" get "$work/d" 1 --epochs :5 --format json
"$PYTHON3" - "$work/out" <<'END' || fail "missing values in json: $(cat "$work/out")"
import json, sys
rows = json.load(open(sys.argv[1]))
sys.exit([(r["twice"], r["half"], r["quarter"]) for r in rows] != [(None, None, None)] + 2 * [(3.0, None, None)])
END
expect 0 "$deltafs" get "$work/d" 1 --epochs 0
[ "$(sed -n 2p "$work/out" | tail -c 46)" = "$(printf '%45s' '')" ] || fail "missing values in a table: $(cat "$work/out")"

# ---- Some columns, in any order, stored and computed ones, and attributes

printf 'key,epoch,late,a,factor\n' >"$work/wanted"
expect 0 "$deltafs" select "$work/d" --fields late,a,factor --format csv
sed 1d "$work/out" | sort >>"$work/wanted"
expect 0 "$deltafs" scan "$work/d" --fields late,a,factor --format csv
{ sed -n 1p "$work/out" && sed 1d "$work/out" | sort; } >"$work/some"
same "$work/wanted" "$work/some" "scan and select have other fields"
grep '^key,\|^1,' "$work/wanted" >"$work/first"
expect 0 "$deltafs" get "$work/d" 1 --fields late,a,factor --format csv
sort -r "$work/out" >"$work/some"
sort -r "$work/first" >"$work/wanted"
same "$work/wanted" "$work/some" "get and select have other fields"
expect 2 "$deltafs" get "$work/d" 1 --fields late,aa
says "get: fields: offset 5: no column or attribute is named 'aa'; did you mean 'a'?"
printf '    late,aa\n         ^\n' >"$work/wanted"
sed -n '2,3p' "$work/err" >"$work/caret"
same "$work/wanted" "$work/caret" "the place of the field"
expect 2 "$deltafs" scan "$work/d" --fields ''
says "scan: fields: offset 0: "
for command in "get 1" scan; do
    expect 2 "$deltafs" ${command%% *} "$work/d" ${command#*[nt]} --fields a --format raw
    says "${command%% *}: --fields: raw has the values as they are stored"
done

# ---- Nothing in it

"$put_records" "$work/none" schema=x:f4 </dev/null || fail "put_records"
expect 1 "$deltafs" get "$work/none" 0 --format csv
[ "$(cat "$work/out")" = "key,epoch,x" ] || fail "an empty directory: get"
expect 0 "$deltafs" scan "$work/none" --format json
[ "$(tr -d ' \n' <"$work/out")" = "[]" ] || fail "an empty directory: scan"
expect 0 "$deltafs" verify "$work/none"
expect 0 "$deltafs" info "$work/none"
expect 0 "$deltafs" info --json "$work/none"
"$PYTHON3" -c 'import json, sys; sys.exit(json.load(sys.stdin)["epochs"] != [])' <"$work/out" || fail "an empty directory: info"
