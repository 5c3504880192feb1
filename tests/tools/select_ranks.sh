#!/bin/sh
# deltafs-mpi select prints the same bytes as deltafs select, whatever the number of ranks.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

"$PYTHON3" - >"$work/lines" <<'END_OF_PYTHON' || fail python3
import random, struct
random.seed(25)
for label in (1, 2, 5, 6):
    for key in random.sample(range(20000), 3000):
        print(label, key, struct.pack("<fi", random.choice([0.0, 1.5, float("nan"), random.random()]), key % 7).hex())
END_OF_PYTHON
"$put_records" "$work/d" schema=v:f4,n:i4 partitions=5 <"$work/lines" || fail put_records
seq 1 3 20000 >"$work/keys"

# both RANKS ARGUMENT...: the same output and exit code as without ranks.
both() {
    ranks=$1
    shift
    "$deltafs" select "$@" >"$work/wanted" 2>"$work/wanted-err"
    code=$?
    mpi "$ranks" "$deltafs_mpi" select "$@" >"$work/got" 2>"$work/err"
    [ $? -eq $code ] || fail "other exit code than $code for $ranks ranks: $* ($(cat "$work/err"))"
    same "$work/wanted" "$work/got" "$ranks ranks: $*"
}
both 1 "$work/d" --where 'v > 0.5 and n != 3' --fields n --epochs 2:5
both 3 "$work/d" --where 'v > 0.5 and n != 3' --fields n --epochs 2:5
both 3 "$work/d" --format csv
both 3 "$work/d" --top 500 --by v --format json
both 3 "$work/d" --top 20000 --by 'v * 0' --fields v --format csv
both 3 "$work/d" --keys "$work/keys" --where 'n == 1' --format keys
both 3 "$work/d" --where 'v > 10' --format csv
[ $code -eq 1 ] || fail "no records: exit code $code"
[ "$(grep -c 'select: no records' "$work/err")" -eq 1 ] || fail "no records: $(cat "$work/err")"
both 3 "$work/d" --where 'v > nothing'
grep -qF "    v > nothing" "$work/err" && [ "$(grep -c 'offset 4' "$work/err")" -eq 1 ] || fail "a mistake: $(cat "$work/err")"
both 3 "$work/none"

# Keys from standard input, which rank 0 has.
"$deltafs" select "$work/d" --keys "$work/keys" --format csv >"$work/wanted" || fail "keys from a file"
for option in keys and; do
    mpi 3 "$deltafs_mpi" select "$work/d" --$option - --format csv <"$work/keys" >"$work/got" 2>"$work/err" ||
        fail "--$option -: $(cat "$work/err")"
    same "$work/wanted" "$work/got" "keys from standard input"
done
mpi 2 "$deltafs_mpi" select "$work/d" --keys - </dev/null >"$work/got" 2>"$work/err"
[ $? -eq 1 ] || fail "no keys from standard input"
says "select: no records"
echo x | mpi 2 "$deltafs_mpi" select "$work/d" --not - >"$work/got" 2>"$work/err"
[ $? -eq 2 ] || fail "a wrong key from standard input"
[ "$(grep -c "select: key 'x' is no number" "$work/err")" -eq 1 ] || fail "a wrong key: $(cat "$work/err")"
mpi 2 "$deltafs_mpi" select "$work/d" --not - --and - <"$work/keys" >"$work/got" 2>"$work/err"
[ $? -eq 2 ] || fail "two readers of standard input"
says "only one of --keys, --and and --not can read standard input"

printf '1 6262 -\n1 61 0102\n2 61 03\n2 630a 04\n' | "$put_records" "$work/b" keys=bytes partitions=3 || fail put_records
both 3 "$work/b" --format csv
both 3 "$work/b" --by epoch --top 3 --hex --format keys

# Damage in the part of another rank than 0: the rest is printed.
log=$(ls -S "$work"/d/00/*.data | head -n 1)
printf '\377\377\377\377' | dd of="$log" bs=1 seek=$(($(wc -c <"$log") - 200)) conv=notrunc 2>"$work/dd" || fail dd
both 3 "$work/d" --format csv
[ $code -eq 3 ] || fail "damage: exit code $code"
says "$(basename "$log")"
