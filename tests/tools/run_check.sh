#!/bin/sh
# deltafs run --check: programs that a preloaded library does not see, and others.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python
program=$top_builddir/.libs/deltafs
[ -e "$program" ] || skip "there is no shared library"
[ "$(od -An -tx1 -N6 "$program" | tr -d ' ')" = 7f454c460201 ] || skip "not a 64-bit, little-endian machine"
expect 0 "$PYTHON3" "$cli/run_check.py" "$program" "$work"
deltafs=$(realpath "$deltafs")
cd "$work" || exit 99
PATH=$work:$PATH

# check CODE PROGRAM TEXT...: the lines, of which the last says whether it escapes.
check() {
    code=$1
    name=$2
    shift 2
    expect "$code" "$deltafs" run --check "$name"
    for text in "$@"; do
        stdout_has "$text"
    done
    verdict=reaches
    [ "$code" -eq 0 ] || verdict=escapes
    tail -n 1 out | grep -q "^$name: $verdict DeltaFS" || fail "the last line is no verdict: $(tail -n 1 out)"
    [ "$(wc -l <out)" -eq $(($# + 1)) ] || fail "not $# lines and a last one: $(cat out)"
}
# wrong PROGRAM TEXT: it is no program that could be checked.
wrong() {
    expect 3 "$deltafs" run --check "$1"
    says "$2"
}

# ---- Binaries

check 0 same
check 0 ./same
check 1 word "word: is for another kind of processor, or of another word size, than DeltaFS"
check 1 endian "is for another kind of processor"
check 1 machine "is for another kind of processor"
check 1 static "is linked statically: nothing can be preloaded"
check 1 go "is a Go program, which calls the kernel without the C library"
check 1 libc "does not use the GNU C library (libc.so.6)"
check 1 liburing "uses io_uring"
check 1 io_uring "uses io_uring"
check 0 syscall "calls syscall(): DeltaFS does not see a call that names a file in this way"
check 0 no_sections
wrong object "is no program, but an object or core file"
wrong cut "is damaged: a part of it lies outside of the file"
wrong no_dynamic "is damaged"
wrong ./missing "run: ./missing cannot be started: No such file or directory"
wrong missing "run: missing cannot be started: it is not on the PATH"
wrong ./ "Is a directory"
: >text
wrong ./text "Permission denied"
expect 2 "$deltafs" run --check same -- env
says "--check takes one PROGRAM"
expect 2 "$deltafs" run --check
says "COMMAND is missing"
# A program that gets rights: only another user's file can have them.
if [ "$(id -u)" -eq 0 ]; then
    cp same setuid
    chown 1:1 setuid
    chmod u+s setuid
    check 1 setuid "runs with other rights than its user"
    chmod u-s,g+s setuid
    check 1 setuid "runs with other rights than its user"
    chown 0:0 setuid
    chmod u+s setuid
    check 0 setuid
fi

# ---- Scripts

# script NAME LINE: with this first line.
script() {
    printf '%s\nexit 0\n' "$2" >"$1"
    chmod +x "$1"
}
script s1 "#!$work/same"
check 0 s1
stdout_has "s1: reaches DeltaFS; programs that the script starts were not checked"
script s2 "#! $work/static -x"
check 1 s2 "$work/static: is linked statically"
script s3 "#!/usr/bin/env static"
check 1 s3 "$work/static: is linked statically"
script s4 "#!/usr/bin/env -S -u HOME -i A=1 static -x"
check 1 s4 "$work/static: is linked statically"
script s5 "#!/usr/bin/env -Sstatic -x"
check 1 s5 "$work/static: is linked statically"
script s6 "#!$work/s2"
check 1 s6 "$work/static: is linked statically"
script s7 "echo no interpreter"
check 0 s7
script s8 "#!"
wrong s8 "names no interpreter"
script s9 "#!/usr/bin/env -i"
wrong s9 "names no program for env"
script s10 "#!$work/s10"
wrong s10 "too many scripts"
script s11 "#!$work/missing"
wrong s11 "$work/missing cannot be started: No such file or directory"

# ---- Damage

for i in damaged*; do
    "$deltafs" run --check "$i" >out 2>err
    code=$?
    [ $code -lt 4 ] && [ $code -ne 2 ] || fail "$i: exit code $code: $(cat err)"
done
exit 0
