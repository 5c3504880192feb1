#!/bin/sh
# deltafs select: the same as Python selects; sets of keys, formats, keys of bytes, no schema, mistakes with their place.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

for seed in 1 $(in_full 2 3); do
    mkdir "$work/$seed"
    "$PYTHON3" "$cli/select_oracle.py" "$deltafs" "$put_records" "$work/$seed" $seed || fail "seed $seed"
done

# The same from a directory that is open, and with one thread or none.
printf '1 5 0000803f00000040\n1 6 000000bf00000041\n2 6 0000c07f00000000\n' |
    "$put_records" "$work/d" schema=ux:f4,uy:f4 --abandon || fail put_records
for threads in 0 1 64; do
    DELTAFS_READ_THREADS=$threads "$deltafs" select "$work/d" --where 'ux < 1 or uy == 0' --format csv >"$work/out" ||
        fail "select with read_threads=$threads"
    printf 'key,epoch,ux,uy\n6,1,-0.5,8.0\n6,2,nan,0.0\n' >"$work/wanted"
    same "$work/wanted" "$work/out" "read_threads=$threads"
done
expect 0 "$deltafs" select "deltafs:$work/d"
[ "$(wc -l <"$work/out")" -eq 4 ] || fail "the table does not have three rows and a heading"
expect 0 "$deltafs" select "$work/d" --format keys
[ "$(xargs <"$work/out")" = "5 6" ] || fail "keys: $(cat "$work/out")"
expect 0 "$deltafs" select "$work/d" --top 3 --by uy --format keys
[ "$(xargs <"$work/out")" = "6 5" ] || fail "keys of the largest values: $(cat "$work/out")"
echo 6 >"$work/keys"
expect 0 "$deltafs" select "$work/d" --keys - --epochs 2 --format keys <"$work/keys"
[ "$(xargs <"$work/out")" = 6 ] || fail "--keys -: $(cat "$work/out")"
expect 1 "$deltafs" select "$work/d" --where 'ux > 100' --format json
says "select: no records"
[ "$(xargs <"$work/out")" = "[]" ] || fail "JSON without records: $(cat "$work/out")"
expect 1 "$deltafs" select "$work/d" --epochs 3:
expect 1 "$deltafs" select "$work/d" --keys /dev/null

# ---- Mistakes

# wrong MESSAGE TEXT PLACE ARGUMENT...: the caret is below column PLACE of the text.
wrong() {
    message=$1
    printf '    %s\n    %*s^\n' "$2" "$3" '' >"$work/wanted"
    shift 3
    expect 2 "$deltafs" select "$work/d" "$@"
    says "deltafs: select: $message"
    [ ! -s "$work/out" ] || fail "output of: $*"
    sed -n '2,3p' "$work/err" >"$work/caret"
    same "$work/wanted" "$work/caret" "the place of the mistake in $*"
}
wrong "where: offset 9: no column or attribute is named 'uz'" 'ux > 1 + uz' 9 --where 'ux > 1 + uz'
wrong "where: offset 5: " 'ux > ' 5 --where 'ux > '
wrong "by: offset 0: no column or attribute is named 'energy'" 'energy' 0 --by energy --top 3
wrong "fields: offset 3: no column or attribute is named 'vy'" 'ux,vy' 3 --fields ux,vy
long=$(printf 'ux + %.0s' $(seq 40))
expect 2 "$deltafs" select "$work/d" --where "$long uz > 1"
says "where: offset 201"
expect 2 "$deltafs" select "$work/d" --top 3
says "deltafs: select: top needs by, the value to order by ('--by EXPR' of a command)"
for top in '' '--top 0'; do
    # shellcheck disable=SC2086 # words, or none
    expect 2 "$deltafs" select "$work/d" --by ux $top
    says "deltafs: select: by needs top, a number of rows above 0 ('--top N' of a command)"
done
for format in raw xml ''; do
    expect 2 "$deltafs" select "$work/d" --format "$format"
    says "'$format' is no format; give table, csv, json or keys"
done
expect 2 "$deltafs" select "$work/d" --hex
says "--hex is for keys of bytes"
echo x >"$work/keys"
expect 2 "$deltafs" select "$work/d" --not - <"$work/keys"
says "select: key 'x' is no number"
expect 3 "$deltafs" select "$work/d" --and "$work/none"
expect 3 "$deltafs" select "$work/none"
if [ -c /dev/full ]; then
    "$deltafs" select "$work/d" >/dev/full 2>"$work/err"
    [ $? -eq 3 ] || fail "a full device"
fi

# ---- Keys of bytes; values of any size

printf '1 6262 -\n1 61 0102\n2 61 03\n2 630a 04\n' | "$put_records" "$work/b" keys=bytes partitions=3 || fail put_records
printf 'key,epoch,size,value\na,1,2,0102\nbb,1,0,\na,2,1,03\n"c\n",2,1,04\n' >"$work/wanted"
expect 0 "$deltafs" select "$work/b" --format csv
same "$work/wanted" "$work/out" "keys of bytes"
printf 'key,epoch,size,value\na,2,1,03\n' >"$work/wanted"
printf 'a\nzz\n' >"$work/keys"
expect 0 "$deltafs" select "$work/b" --where 'epoch > 1' --keys "$work/keys" --format csv
same "$work/wanted" "$work/out" "keys of bytes from a file"
expect 0 "$deltafs" select "$work/b" --by epoch --top 1 --format csv
same "$work/wanted" "$work/out" "the first of keys of bytes"
expect 3 "$deltafs" select "$work/b" --format keys
says "add --hex"
expect 0 "$deltafs" select "$work/b" --format keys --hex
[ "$(xargs <"$work/out")" = "61 6262 630a" ] || fail "keys in hexadecimal: $(cat "$work/out")"
cp "$work/out" "$work/keys"
expect 1 "$deltafs" select "$work/b" --hex --not "$work/keys"
expect 2 "$deltafs" select "$work/b" --where 'key > 3'
says "where: offset 0: expected a number, but the column 'key' holds bytes"

# ---- Damage: the rest is printed

printf '1 5 00000001\n2 6 00000002\n' | "$put_records" "$work/damaged" schema=a:u4 codec=none || fail put_records
size=$(wc -c <"$work/damaged/00/p00000000.data")
printf '\377' | dd of="$work/damaged/00/p00000000.data" bs=1 seek=$((size - 1)) conv=notrunc 2>"$work/dd" || fail dd
expect 3 "$deltafs" select "$work/damaged" --format csv
printf 'key,epoch,a\n5,1,16777216\n' >"$work/wanted"
same "$work/wanted" "$work/out" "what is not damaged"
says "p00000000.data"
expect 3 "$deltafs" select "$work/damaged" --format keys
echo 5 >"$work/wanted"
same "$work/wanted" "$work/out" "keys that are not damaged"

# ---- scan prints the same columns, of more and larger records than it prints at once

for bytes in 4 100 20000 40000; do
    "$PYTHON3" -c 'import sys
bytes = int(sys.argv[1])
for key in range(4000 if bytes < 1000 else 7):
    print(1, key, (key % 256).to_bytes(1, "little").hex() + "ff" * (bytes - 1))' $bytes |
        "$put_records" "$work/r$bytes" "schema=a:u1,b:V$((bytes - 1))" sync=none || fail put_records
    "$deltafs" attr "$work/r$bytes" twice==2*a || fail attr
    expect 0 "$deltafs" scan "$work/r$bytes" --fields twice,a --format csv
    mv "$work/out" "$work/wanted"
    expect 0 "$deltafs" select "$work/r$bytes" --fields twice,a --format csv
    same "$work/wanted" "$work/out" "scan and select of values of $bytes bytes"
    awk -F , 'NR > 1 && ($1 != NR - 2 || $3 != 2 * ($1 % 256) || $4 != $1 % 256) { exit 1 }' "$work/out" ||
        fail "rows of values of $bytes bytes"
    [ "$(wc -l <"$work/out")" -gt 7 ] || fail "too few rows of values of $bytes bytes"
done
