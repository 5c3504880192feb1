#!/bin/sh
# The deltafs command: help, versions, mistakes in the arguments, output that cannot be written.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"

# ---- Help and version

for words in help --help -h; do
    expect 0 "$deltafs" $words
    for command in get scan select export plot info attr verify repair ls stat cat cp flatten rm ns run doctor help; do
        stdout_has "deltafs $command"
    done
    [ ! -s "$work/err" ] || fail "help on standard error"
done
for command in get scan select export plot info attr verify repair ls stat cat cp flatten rm ns run doctor; do
    expect 0 "$deltafs" help $command
    stdout_has "deltafs $command"
done
expect 0 "$deltafs" help options
for option in block codec memory partitions schema sync value_size; do
    grep -q "^  $option " "$work/out" || fail "help options does not list $option"
done
[ "$(grep -c '^  [a-z]' "$work/out")" -eq "$(grep -c "takes .*; default '.*'" "$work/out")" ] || fail "help options"
expect 2 "$deltafs" help nonsense
says "no help on 'nonsense'; there is help on get, scan, select, export, plot, info, attr, verify, repair, ls, stat, cat, cp, mv, flatten, rm, ns, snapshot, pool, run, doctor, options"
expect 0 "$deltafs" --version
grep -qE '^deltafs [0-9]+\.[0-9]+\.[0-9]+$' "$work/out" || fail "--version: $(cat "$work/out")"
# A command answers --help itself.
for command in get scan select export plot info attr verify repair ls stat cat cp flatten rm ns run doctor; do
    expect 0 "$deltafs" $command --help
    grep -q "^deltafs $command " "$work/out" || fail "no usage of $command"
done

# ---- Mistakes

"$put_records" "$work/d" schema=x:u4 <<END || fail "put_records"
1 1 00000001
END
# wrong TEXT ARGUMENT...: exit code 2, TEXT on standard error, nothing on standard output.
wrong() {
    text=$1
    shift
    expect 2 "$deltafs" "$@"
    says "$text"
    [ ! -s "$work/out" ] || fail "output of: deltafs $*"
}
wrong "there are get, scan, select, export, plot, info, attr, verify, repair, ls, stat, cat, cp, mv, flatten, rm, ns, snapshot, pool, run, doctor, help"
wrong "no command ''; there are get, scan, select, export, plot, info, attr, verify, repair, ls, stat, cat, cp, mv, flatten, rm, ns, snapshot, pool, run, doctor, help" ""
wrong "no command 'fetch'; there are get, scan, select, export, plot, info, attr, verify, repair, ls, stat, cat, cp, mv, flatten, rm, ns, snapshot, pool, run, doctor, help" fetch "$work/d"
wrong "no command '--json'" --json
wrong "no command 'slect'; did you mean 'select'? There are get, scan" slect "$work/d"
wrong "no command 'gte'; there are get" gte
wrong "no help on 'exprot'; did you mean 'export'? There is help on get, scan" help exprot
wrong "get: unknown option '--fromat'; did you mean '--format'?" get "$work/d" 1 --fromat csv
wrong "no command 'lss'; did you mean 'ls'? There are create" ns lss n:/
wrong "there are create, ls, stat, cat, cp, mkdir, rm, mv, find, du, compact, help" ns
wrong "get: unknown option '--frobnicate'" get "$work/d" 1 --frobnicate
grep -q "did you mean" "$work/err" && fail "a guess at --frobnicate"

# Completion, by what the programs themselves list.
for program in "$deltafs" "$deltafs_mpi"; do
    [ -x "$program" ] || continue
    "$program" --list >"$work/commands"
    "$program" help | sed 1d | sed -n "s/^${program##*/} \\([a-z]*\\) .*/\\1/p" | sort -u >"$work/wanted"
    sort -u "$work/commands" | cmp - "$work/wanted" || fail "--list has other commands than help"
    while read -r command; do
        "$program" --list "$command" </dev/null | sort >"$work/options"
        [ -z "$(uniq -d "$work/options")" ] || fail "--list $command repeats $(uniq -d "$work/options")"
    done <"$work/commands"
done
if command -v bash >/dev/null; then
    # complete WORD...: what bash offers for the last word.
    complete() {
        # shellcheck disable=SC2016
        bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _deltafs "$1"; echo "${COMPREPLY[*]}"' \
            "$top_srcdir/src/tools/completion.bash" "$deltafs" "$@"
    }
    [ "$(complete sel)" = select ] || fail "completion of sel: $(complete sel)"
    [ "$(complete get d --form)" = --format ] || fail "completion of get --form: $(complete get d --form)"
    [ "$(complete export d --format par)" = parquet ] || fail "completion of a format"
    [ "$(complete help opt)" = options ] || fail "completion of help opt"
    [ "$(complete ns mk)" = mkdir ] || fail "completion of ns mk: $(complete ns mk)"
    [ "$(complete ns ls n:/ --rec)" = --recursive ] || fail "completion of ns ls --rec"
    [ -z "$(complete get d)" ] || fail "completion of a file"
fi

for command in get scan; do
    wrong "'xml' is no format; give table, csv, json or raw" $command "$work/d" 1 --format xml
    wrong "'' is no format" $command "$work/d" --format ""
    wrong "'CSV' is no format" $command "$work/d" --format CSV
    wrong "'x' is no range" $command "$work/d" 1 --epochs x
done
for command in get scan info verify repair; do
    wrong "deltafs help $command" $command
    wrong "deltafs help $command" $command "$work/d" 1 --frobnicate
    wrong "frobnicate" $command "$work/d" 1 --frobnicate
    wrong "deltafs help $command" $command "$work/d" 1 -x
done
wrong "KEY is missing" get "$work/d"
wrong "--format needs a value" get "$work/d" 1 --format
wrong "--keys needs a value" get "$work/d" --keys
wrong "--partition needs a value" scan "$work/d" --partition
wrong "--json takes no value" info "$work/d" --json=yes
wrong "--stats takes no value" get "$work/d" 1 --stats=yes
wrong "unknown option '-x'" ls -lx
# (getopt took a key for an option, and printed control characters as they were.)
wrong "key '-5' is no number" get "$work/d" -5
wrong "unknown option '--\x1b[31m'" get "$work/d" "$(printf -- '--\033[31m')"
wrong "one DIR must be given" scan "$work/d" "$work/d"
for command in info repair; do
    wrong "one DIR, FILE or NS must be given" $command "$work/d" "$work/d"
done
wrong "DIR, FILE, NS or REG@NAME is missing" verify
for command in stat cat cp flatten rm run; do
    wrong "deltafs help $command" $command
    wrong "deltafs help $command" $command "$work/d" --frobnicate
done
wrong "frobnicate" ls --frobnicate
wrong "FROM and TO must be given" cp "$work/d"
wrong "FROM and TO must be given" cp "$work/d" "$work/d" "$work/d"
wrong "cannot both be -" cp - -
for option in offset size; do
    wrong "--$option: '1k' is no number" cat "$work/d" --$option 1k
    wrong "--$option: '-1' is no number" cat "$work/d" --$option=-1
done
for key in one 1e3 0x 18446744073709551616 ""; do
    wrong "key '$key' is no number" get "$work/d" "$key"
done
wrong "--label: 'x' is no number" repair "$work/d" --label x
wrong "--lease: 'x' is no number" repair "$work/d" --lease x
expect 3 "$deltafs" info ""
# Mistakes are found before anything is looked for.
wrong "key 'x' is no number" get "$work/d" x
wrong "is no format" scan "$work/missing" --format xml

# ---- Output that cannot be written

if [ -c /dev/full ]; then
    for words in "get $work/d 1" "get $work/d 1 --format=raw" "scan $work/d" "scan $work/d --format=json" "info $work/d" \
        "info $work/d --json" "verify $work/d" "repair $work/d" "help" "help get" "help options" "--version"; do
        # shellcheck disable=SC2086
        "$deltafs" $words >/dev/full 2>"$work/err"
        code=$?
        [ $code -eq 3 ] || fail "exit code $code on a full device: $words"
        says "cannot write to standard output: No space left on device"
    done
    # A key that is not there does not hide it.
    "$deltafs" get "$work/d" 1 2 >/dev/full 2>"$work/err"
    [ $? -eq 3 ] || fail "a key not found hides a full device"
    # More than any buffer holds.
    i=0
    while [ $i -lt 3000 ]; do
        i=$((i + 1))
        echo "1 $i 00000000"
    done | "$put_records" "$work/many" schema=x:u4 || fail "put_records"
    for format in table csv json raw; do
        "$deltafs" scan "$work/many" --format $format >/dev/full 2>"$work/err"
        [ $? -eq 3 ] || fail "scan --format $format on a full device"
        says "No space left on device"
    done
    if [ -x "$deltafs_mpi" ]; then
        for words in help --version; do
            "$deltafs_mpi" $words >/dev/full 2>"$work/err"
            code=$?
            [ $code -eq 3 ] || fail "exit code $code on a full device: deltafs-mpi $words"
        done
    fi
fi
"$deltafs" get "$work/d" 1 >&- 2>"$work/err"
[ $? -eq 3 ] || fail "a closed standard output is not noticed"

# Closed in the middle: ended by the signal, or by the error where that is ignored; nothing else.
("$deltafs" scan "$work/many" 2>"$work/err"; echo $? >"$work/code") | head -n 1 >"$work/out"
case $(cat "$work/code") in
0 | 3 | 141) ;;
*) fail "a closed pipe ends it with $(cat "$work/code")" ;;
esac
(trap '' PIPE; "$deltafs" scan "$work/many" 2>"$work/err"; echo $? >"$work/code") | true
case $(cat "$work/code") in
0 | 3) ;;
*) fail "a closed pipe ends it with $(cat "$work/code"), with the signal ignored" ;;
esac

# ---- deltafs-mpi, where there is one

[ -x "$deltafs_mpi" ] || exit 0
for words in help --help -h; do
    expect 0 "$deltafs_mpi" $words
    stdout_has "deltafs-mpi import"
done
expect 0 "$deltafs_mpi" --version
grep -qE '^deltafs-mpi [0-9]+\.[0-9]+\.[0-9]+$' "$work/out" || fail "--version: $(cat "$work/out")"
expect 0 mpi 3 "$deltafs_mpi" --version
[ "$(wc -l <"$work/out")" -eq 1 ] || fail "the version is not printed once"
expect 2 "$deltafs_mpi"
expect 2 mpi 2 "$deltafs_mpi" nonsense
[ "$(grep -c "no command 'nonsense'; there are compact, import, index, ns, pool, route, select, help" "$work/err")" -eq 1 ] || fail "not one message"
