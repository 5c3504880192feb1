#!/bin/sh
# The progress bar of an import: on a terminal, and nowhere else.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python
script --version >/dev/null 2>&1 || skip "script (package bsdutils) is missing: no terminal to look at"

"$PYTHON3" "$cli/make_vpic.py" "$work/dumps" --particles 4001 || fail "make_vpic.py"
SHELL=/bin/sh
export SHELL

# on_terminal NAME COMMAND: its output, as a terminal shows it, goes to $work/out.
on_terminal() {
    script -qefc "$2" /dev/null >"$work/out" 2>"$work/err" </dev/null || {
        cat "$work/out" "$work/err" >&2
        fail "$1: exit code $?"
    }
}

files="$work/dumps/p.*"
on_terminal "one rank" "$deltafs_mpi import --format vpic -o $work/d1 $files"
grep -q '\[#*-*\] *[0-9]*% ' "$work/out" || fail "no bar on a terminal: $(cat "$work/out")"
stdout_has "records in 3 epochs from 9 files"
# It is wiped out before anything else is printed.
tr '\r' '\n' <"$work/out" | grep -v '^ *$' | tail -n 1 | grep -q '^/.* records in' ||
    fail "the bar stays: $(cat "$work/out")"

on_terminal "two ranks" "$MPIEXEC -np 2 $deltafs_mpi import --format vpic -o $work/d2 $files"
grep -q '\[#*-*\] *[0-9]*% ' "$work/out" || fail "no bar on a terminal behind the launcher: $(cat "$work/out")"

on_terminal "quiet" "$deltafs_mpi import -q --format vpic -o $work/d3 $files"
[ ! -s "$work/out" ] || fail "--quiet prints: $(cat "$work/out")"
on_terminal "standard error in a file" "$deltafs_mpi import --format vpic -o $work/d4 $files 2>$work/bar"
[ ! -s "$work/bar" ] || fail "a bar in a file: $(cat "$work/bar")"

for ranks in 1 2; do
    # shellcheck disable=SC2086
    expect 0 import $ranks --format vpic -o "$work/e$ranks" $files
    [ ! -s "$work/err" ] || fail "$ranks ranks: standard error is no terminal, and has: $(cat "$work/err")"
done

# ---- Ctrl-C: what is kept, and how to go on. The file has zeros for some 100 million records.

truncate -s 1200M "$work/big7.bin"
# interrupted PATTERN: the import ends while it reads that file, once the manifest has a line like the pattern.
interrupted() {
    "$deltafs_mpi" import -q --format raw --schema id:u8,x:f4 --key id -o "$work/cut" "$work"/big*.bin 2>"$work/err" &
    pid=$!
    n=0
    until grep -q "$1" "$work/cut/MANIFEST" 2>"$work/grep" || [ $n -eq 200 ]; do
        sleep 0.05
        n=$((n + 1))
    done
    sleep 0.3
    kill -TERM $pid
    wait $pid
    [ $? -eq 143 ] || fail "exit code of an import that was interrupted"
}
printf '123456789012' >"$work/big6.bin"
interrupted '^Epoch number=0'
says "import: interrupted; $work/cut has all epochs up to label 6: import the same files again with --append to continue"
rm -r "$work/cut" "$work/big6.bin"
interrupted .
says "import: interrupted; $work/cut has no epoch yet: import the same files again with --append to continue"
rm "$work/big7.bin"
printf '123456789012' >"$work/small7.bin"
expect 0 import 1 --format raw --schema id:u8,x:f4 --key id --append -o "$work/cut" "$work/small7.bin"

# ---- An export

"$deltafs" scan "$work/d1" --format csv | sed 1d | cut -d , -f 1 | sort -u >"$work/keys"
for keys in "" "--keys $work/keys"; do
    on_terminal "export" "$deltafs export $work/d1 $keys --format csv -f -o $work/x.csv"
    grep -q '\[#*-*\] *[0-9]*% ' "$work/out" || fail "no bar of export $keys: $(cat "$work/out")"
    [ -z "$(tr '\r' '\n' <"$work/out" | tail -n 1 | tr -d ' ')" ] || fail "the bar of export $keys stays"
    expect 0 "$deltafs" export "$work/d1" --format csv -f -o "$work/x.csv"
    [ ! -s "$work/err" ] || fail "export: standard error is no terminal, and has: $(cat "$work/err")"
done

# ---- A scan to a file, and verify

"$PYTHON3" -c 'for key in range(20000): print(1, key, "00000000" * 4)' | "$put_records" "$work/long" schema=a:4f4 || fail put_records
on_terminal "scan" "$deltafs scan $work/long --format csv >$work/long.csv"
grep -q '\[#*-*\] *[0-9]*%  [0-9.]* [kM]*/s, [0-9]* s left' "$work/out" || fail "no bar of scan: $(cat "$work/out")"
[ "$(wc -l <"$work/long.csv")" -eq 20001 ] || fail "a scan of $(wc -l <"$work/long.csv") lines"
expect 0 "$deltafs" scan "$work/long" --format raw
[ ! -s "$work/err" ] || fail "scan: standard error is no terminal, and has: $(cat "$work/err")"
on_terminal "verify" "$deltafs verify $work/long"
grep -q '\[#*-*\] *[0-9]*% ' "$work/out" || fail "no bar of verify: $(cat "$work/out")"
tr '\r' '\n' <"$work/out" | grep -v '^ *$' | tail -n 1 | grep -q '20000 records' || fail "the bar of verify stays"
on_terminal "repair" "$deltafs repair $work/long"
grep -q '\[#*-*\] *[0-9]*% ' "$work/out" || fail "no bar of repair: $(cat "$work/out")"
tr '\r' '\n' <"$work/out" | grep -v '^ *$' | tail -n 1 | grep -q 'nothing to repair' || fail "the bar of repair stays"
expect 0 "$deltafs" repair "$work/long"
[ ! -s "$work/err" ] || fail "repair: standard error is no terminal, and has: $(cat "$work/err")"

# ---- A select, which shows no bar beside the rows

select_shows() {
    on_terminal "select" "$1 >$work/selected"
    grep -q '\[#*-*\] *[0-9]*% ' "$work/out" || fail "no bar of $1: $(cat "$work/out")"
    [ -z "$(tr '\r' '\n' <"$work/out" | tail -n 1 | tr -d ' ')" ] || fail "the bar stays: $1"
    [ "$(wc -l <"$work/selected")" -eq "$2" ] || fail "$(wc -l <"$work/selected") lines of $1"
}
select_shows "$deltafs select $work/long --format csv" 20001
select_shows "$deltafs select $work/long --top 3 --by key --format keys" 3
select_shows "$MPIEXEC -np 2 $deltafs_mpi select $work/long --format csv" 20001
on_terminal "select" "$deltafs select $work/long --top 3 --by key"
tr '\r' '\n' <"$work/out" | grep -v '^ *$' | tail -n 4 | grep -q '\[#*-*\]' && fail "a bar beside rows: $(cat "$work/out")"
for command in "$deltafs" "$deltafs_mpi"; do
    expect 0 "$command" select "$work/long" --where 'key > 1' --format csv
    [ ! -s "$work/err" ] || fail "select: standard error is no terminal, and has: $(cat "$work/err")"
done

# ---- An index of files, of which one is logical

"$PYTHON3" -c 'import struct, sys
for key in range(3000): sys.stdout.buffer.write(struct.pack("<Qf", key, 1))' >"$work/rows.5"
"$deltafs" cp "$work/rows.5" "deltafs:$work/logical.6" || fail cp
rows="--schema id:u8,x:f4 --key id $work/rows.5 deltafs:$work/logical.6"
on_terminal "index" "$deltafs_mpi index $rows -o $work/keys.1"
grep -q '\[#*-*\] *[0-9]*% ' "$work/out" || fail "no bar of index: $(cat "$work/out")"
tr '\r' '\n' <"$work/out" | grep -v '^ *$' | tail -n 1 | grep -q '6000 rows of 2 files' || fail "the bar of index stays"
on_terminal "index on two ranks" "$MPIEXEC -np 2 $deltafs_mpi index $rows -o $work/keys.2"
grep -q '\[#*-*\] *[0-9]*% ' "$work/out" || fail "no bar of index: $(cat "$work/out")"
on_terminal "index" "$deltafs_mpi index -q $rows -o $work/keys.3"
[ ! -s "$work/out" ] || fail "index --quiet prints: $(cat "$work/out")"
# shellcheck disable=SC2086
expect 0 "$deltafs_mpi" index $rows
[ ! -s "$work/err" ] || fail "index: standard error is no terminal, and has: $(cat "$work/err")"

# ---- A check of tracks

on_terminal "verify" "$deltafs verify --continuity $work/d1; :"
grep -q '\[#*-*\] *[0-9]*% ' "$work/out" || fail "no bar of verify --continuity: $(cat "$work/out")"
tr '\r' '\n' <"$work/out" | grep -v '^ *$' | tail -n 1 | grep -q 'of tracks checked' ||
    fail "the bar of verify --continuity stays: $(cat "$work/out")"
