#!/bin/sh
# deltafs get, scan, info and verify where keys are bytes: texts, and bytes that are no text.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

# hex TEXT: its bytes in hexadecimal.
hex() {
    printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n'
}

quoted='a"b'
comma='a,b c'
plain=particle/17
number=0x10
empty_line=$(printf 'two\nlines')
{
    echo "1 $(hex "$plain") 0000803f"
    echo "1 $(hex "$quoted") 00000040"
    echo "1 $(hex "$comma") 00004040"
    echo "1 $(hex "$number") 00008040"
    echo "1 $(hex "$empty_line") 0000a040"
    echo "2 $(hex "$plain") 0000c040"
    echo "2 $(hex "$plain") 0000e040"
    echo "2 001b5b33316dff7f 00000041" # NUL, ESC [31m, 0xff, DEL
    echo "2 $(hex 16) 00001041"
} >"$work/records"
"$put_records" "$work/d" keys=bytes schema=x:f4 partitions=3 <"$work/records" || fail "put_records"

# ---- By name

printf 'key,epoch,x\nparticle/17,1,1.0\nparticle/17,2,6.0\nparticle/17,2,7.0\n' >"$work/wanted"
expect 0 "$deltafs" get "$work/d" "$plain" --format csv
same "$work/wanted" "$work/out" "get by name"
printf 'key,epoch,x\nparticle/17,2,6.0\nparticle/17,2,7.0\n' >"$work/wanted"
expect 0 "$deltafs" get "$work/d" "$plain" --format csv --epochs 2
same "$work/wanted" "$work/out" "get by name in some epochs"
expect 1 "$deltafs" get "$work/d" "$quoted" --epochs 2
says "not found in these epochs"
# A number's other spelling is another key.
printf 'key,epoch,x\n0x10,1,4.0\n16,2,9.0\n' >"$work/wanted"
expect 0 "$deltafs" get "$work/d" 0x10 16 --format csv
same "$work/wanted" "$work/out" "keys that look like numbers"
expect 1 "$deltafs" get "$work/d" 0x0010
printf 'key,epoch,x\n"a""b",1,2.0\n"a,b c",1,3.0\n"two\nlines",1,5.0\n' >"$work/wanted"
expect 0 "$deltafs" get "$work/d" "$quoted" "$comma" "$empty_line" --format csv
same "$work/wanted" "$work/out" "keys that CSV must quote"

expect 1 "$deltafs" get "$work/d" particle/1 "$plain" particle/178 --format csv
says "key 'particle/1' not found"
says "key 'particle/178' not found"
[ "$(wc -l <"$work/out")" -eq 4 ] || fail "get where keys are absent: $(cat "$work/out")"
expect 2 "$deltafs" get "$work/d" ""
expect 2 "$deltafs" get "$work/d" "$("$PYTHON3" -c 'print("k" * 256)')"
expect 1 "$deltafs" get "$work/d" "$("$PYTHON3" -c 'print("k" * 255)')"

# ---- A file of keys: a line each, blanks and all

printf 'a,b c\n\n%s\na"b' "$plain" >"$work/keys"
printf 'key,epoch,x\n"a,b c",1,3.0\nparticle/17,1,1.0\nparticle/17,2,6.0\nparticle/17,2,7.0\n"a""b",1,2.0\n' >"$work/wanted"
expect 0 "$deltafs" get "$work/d" --keys "$work/keys" --format csv
same "$work/wanted" "$work/out" "get --keys FILE"
expect 0 "$deltafs" get "$work/d" --keys - --format csv <"$work/keys"
same "$work/wanted" "$work/out" "get --keys -"
echo " $plain" >"$work/keys"
expect 1 "$deltafs" get "$work/d" --keys "$work/keys"
says "key ' $plain' not found"
# A NUL is a byte of a key like any other.
printf '\0\033[31m\377\177\n' >"$work/keys"
expect 0 "$deltafs" get "$work/d" --keys "$work/keys" --format csv
printf 'key,epoch,x\n\0\033[31m\377\177,2,8.0\n' >"$work/wanted"
same "$work/wanted" "$work/out" "a key that is no text, as CSV"
expect 0 "$deltafs" get "$work/d" --keys "$work/keys" --format json
"$PYTHON3" - "$work/out" <<'END' || fail "a key that is no text, as JSON: $(cat "$work/out")"
import json, sys
sys.exit(json.load(open(sys.argv[1])) != [{"key": {"hex": "001b5b33316dff7f"}, "epoch": 2, "x": 8.0}])
END
# That form can be asked for, alone or among others, on the command line and from a file.
printf 'key,epoch,x\n\0\033[31m\377\177,2,8.0\n16,2,9.0\n' >"$work/wanted"
expect 0 "$deltafs" get "$work/d" --hex 001b5b33316DFF7f "$(hex 16)" --format csv
same "$work/wanted" "$work/out" "get --hex"
printf ' 001b5b33316dff7f\t%s\r\n' "$(hex 16)" >"$work/keys"
expect 0 "$deltafs" get "$work/d" --hex --keys "$work/keys" --format csv
same "$work/wanted" "$work/out" "get --hex --keys"
expect 1 "$deltafs" get "$work/d" --hex 0061
says "key '\x00a' not found"
for key in 0 0g g0 0x00 "00 00" ""; do
    expect 2 "$deltafs" get "$work/d" --hex "$key"
done
expect 2 "$deltafs" get "$work/d" --hex "$("$PYTHON3" -c 'print("00" * 256)')"
says "is not hexadecimal"
expect 1 "$deltafs" get "$work/d" --hex "$("$PYTHON3" -c 'print("00" * 255)')"
# The CR of a file with DOS line ends belongs to the key, and the message shows it.
printf '%s\r\n' "$plain" >"$work/keys"
expect 1 "$deltafs" get "$work/d" --keys "$work/keys"
says "key '$plain\r' not found"
expect 1 "$deltafs" get "$work/d" "$(printf 'a\033[31m\tb\nc')"
says "key 'a\x1b[31m\tb\nc' not found"
printf '\0\033[31m\377\177\n' >"$work/keys"
# What a terminal would take as a command does not reach it.
expect 0 "$deltafs" get "$work/d" --keys "$work/keys"
tr -d '\n' <"$work/out" | LC_ALL=C grep -q '[[:cntrl:]]' && fail "control bytes in a table"
stdout_has "??[31m"
# So do those from U+0080 to U+009F, in UTF-8 or as one byte; a letter that has such a byte stays.
printf '1 c29b33316d9bc59b -\n2 c29b41 -\n' | "$put_records" "$work/c1" keys=bytes || fail "put_records"
expect 0 "$deltafs" scan "$work/c1"
stdout_has "$(printf ' ??31m?\305\233 ')"
stdout_has " ??A "
expect 0 "$deltafs" scan "$work/c1" --epochs 2 --format json
grep -q 'key": "\\u009bA"' "$work/out" || fail "U+009B in JSON: $(cat "$work/out")"
expect 1 "$deltafs" get "$work/c1" "$(printf '\302\233\233\305\233')"
says "key '\xc2\x9b\x9b$(printf '\305\233')' not found"
"$PYTHON3" -c 'print("k" * 256)' >"$work/keys"
expect 2 "$deltafs" get "$work/d" --keys "$work/keys"

# ---- Scan, info, verify

expect 0 "$deltafs" scan "$work/d" --format json
"$PYTHON3" - "$work/records" "$work/out" <<'END' || fail "scan --format json"
import json, struct, sys
wanted = []
for line in open(sys.argv[1]):
    label, key, value = line.split()
    key = bytes.fromhex(key)
    wanted.append((int(label), {"hex": key.hex()} if b"\xff" in key else key.decode(), struct.unpack("<f", bytes.fromhex(value))[0]))
got = [(r["epoch"], r["key"], r["x"]) for r in json.load(open(sys.argv[2]))]
sys.exit(sorted(got, key=str) != sorted(wanted, key=str))
END
expect 0 "$deltafs" scan "$work/d" --format csv
"$PYTHON3" - "$work/out" <<'END' || fail "scan --format csv"
import csv, sys
text = open(sys.argv[1], encoding="latin-1", newline="").read().replace("\0", "NUL")
keys = sorted(r[0] for r in csv.reader(text.splitlines(True)))
sys.exit(keys != sorted(["key", "particle/17"] + ["particle/17"] * 2 + ['a"b', "a,b c", "0x10", "16", "two\nlines",
                                                                       "NUL\x1b[31m\xff\x7f"]))
END
expect 0 "$deltafs" scan "$work/d"
[ "$(wc -l <"$work/out")" -eq 10 ] || fail "a table's lines are not its records: $(cat "$work/out")"
expect 0 "$deltafs" info "$work/d"
stdout_has "bytes"
expect 0 "$deltafs" info "$work/d" --json
"$PYTHON3" - "$work/out" <<'END' || fail "info --json: $(cat "$work/out")"
import json, sys
i = json.load(open(sys.argv[1]))
sys.exit((i["keys"], i["records"], i["bytes_raw"]) != ("bytes", 9, 9 * 4 + 3 * 11 + 3 + 5 + 4 + 9 + 8 + 2))
END
expect 0 "$deltafs" verify "$work/d"
stdout_has "9 records"

# ---- JSON text: what is UTF-8 is itself, and what is not is not made to look so

# e-acute, euro, an emoji, U+007F, the last one, quote and backslash; then a lone byte, overlong forms, a surrogate,
# beyond the last, truncated.
"$PYTHON3" - >"$work/records" <<'END'
for key in ("c3a9", "e282ac", "f09f9880", "7f", "f48fbfbf", "225c0a", "ed9fbf", "eebfbf",
            "ff", "80", "c080", "c1bf", "e09fbf", "f08fbfbf", "eda080", "f4908080", "f5808080", "61c3", "e282", "c341"):
    print(1, key, "00")
END
"$put_records" "$work/text" keys=bytes <"$work/records" || fail "put_records"
expect 0 "$deltafs" scan "$work/text" --format json
"$PYTHON3" - "$work/records" "$work/out" <<'END' || fail "keys as JSON: $(cat "$work/out")"
import json, sys
def shown(key):
    try:
        return key.decode()
    except UnicodeDecodeError:
        return {"hex": key.hex()}
wanted = [shown(bytes.fromhex(line.split()[1])) for line in open(sys.argv[1])]
got = [r["key"] for r in json.load(open(sys.argv[2], encoding="utf-8"))]
sys.exit(sorted(map(str, got)) != sorted(map(str, wanted)))
END
grep -qF '"key": "'"$(printf '\303\251')"'"' "$work/out" || fail "a letter of two bytes is not itself: $(cat "$work/out")"
"$put_records" "$work/numbers" </dev/null || fail "put_records"
expect 2 "$deltafs" get "$work/numbers" --hex 10
says "--hex is for keys of bytes"

# ---- Ranges of keys, in the order of keys whatever the partition

# names RANGE "WANTED" [OPTION...]: the keys.
names() {
    range=$1 keys=$2
    shift 2
    expect 0 "$deltafs" scan "$work/words" --key-range "$range" --format csv "$@"
    [ "$(sed 1d "$work/out" | cut -d, -f1 | xargs)" = "$keys" ] || fail "scan --key-range $range: $(cat "$work/out")"
}
printf '%s 00\n' "1 6261" "1 63" "1 61" "1 62" "1 6162" "1 62" "2 61" |
    "$put_records" "$work/words" keys=bytes partitions=3 || fail "put_records"
names a: "a ab b b ba c a"
names :b "a ab b b" --epochs 1
names b "b b"
names aa:b0 "ab b b"
names d: ""
names c:a ""

# ---- A flipped byte of a stored key

log=$(find "$work/d" -name '*.data' -size +1 -exec grep -l 'particle/17' {} + | sed 1q)
[ -n "$log" ] || log=$(find "$work/d" -name '*.data' | sed 1q)
"$PYTHON3" - "$log" <<'END' || fail "no byte to flip"
import sys
b = bytearray(open(sys.argv[1], "rb").read())
b[len(b) - 3] ^= 4
open(sys.argv[1], "wb").write(b)
END
expect 3 "$deltafs" verify "$work/d"
says "$log"
