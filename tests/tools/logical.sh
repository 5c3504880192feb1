#!/bin/sh
# The commands on logical files: ls, stat, cat, cp, flatten, rm, info. What put_logical writes to a logical file it
# writes to a plain one, too, which is the oracle.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/logical_lib.sh"

# ---- Writes of chance, in several sessions

mkdir "$work/run"
for seed in 1 2 3 4 5 6; do
    f=$work/run/f$seed
    put "$f" "$work/p$seed" $seed $seed 60 3000000
    agree "$f" "$work/p$seed"
    expect 0 "$deltafs" flatten "$f"
    grep -qE '^.*/f[0-9]: ([0-9]+) of \1 sessions{0,1} with the index in one file$' "$work/out" ||
        fail "flatten: $(cat "$work/out")"
    agree "$f" "$work/p$seed"
    # More, on top of what is flat.
    put "$f" "$work/p$seed" $((seed + 100)) 2 30 2000000
    agree "$f" "$work/p$seed"
    put "$f" "$work/p$seed" $((seed + 200)) 2 30 2000000 --abandon
    agree "$f" "$work/p$seed"
    expect 0 "$deltafs" stat "$f"
    stdout_has "closed          no"
    expect 0 "$deltafs" verify "$f"
    stdout_has "not closed"
    grep -qE "/f$seed: [0-9]+ bytes of logs and indexes read, 0 damages$" "$work/out" || fail "verify: $(cat "$work/out")"
    expect 0 "$deltafs" flatten "deltafs:$f"
    stdout_has "the others are not closed"
    agree "$f" "$work/p$seed"
done

# Parts of one.
f=$work/run/f3
p=$work/p3
n=$(wc -c <"$p")
for part in "0 1" "1 1" "4095 2" "4096 4096" "65535 100000" "$((n - 1)) 1" "$((n - 1)) 100" "$n 1" "$((n + 1)) 1" \
    "0 0" "0 $n"; do
    "$deltafs" cat "$f" --offset "${part% *}" --size "${part#* }" >"$work/copy" || fail "cat of $part"
    tail -c +$((${part% *} + 1)) "$p" | head -c "${part#* }" >"$work/part"
    same "$work/part" "$work/copy" "cat of $part"
done
"$deltafs" cat --offset 0x1000 "$f" "deltafs:$f" >"$work/copy" || fail "cat of two"
(tail -c +4097 "$p" && tail -c +4097 "$p") >"$work/part"
same "$work/part" "$work/copy" "cat of two files from an offset on"
rm "$work/part" "$work/copy"

# ---- Copies, there and back

mkdir "$work/there"
: >"$work/empty"
for plain in "$work/p1" "$work/p2" "$0" "$work/empty"; do
    expect 0 "$deltafs" cp "$plain" "$work/there/g"
    [ ! -s "$work/err" ] && [ ! -s "$work/out" ] || fail "cp is not silent"
    agree "$work/there/g" "$plain"
    "$deltafs" cp - "$work/there/h" <"$plain" || fail "cp from standard input"
    # shellcheck disable=SC2002
    cat "$plain" | "$deltafs" cp - "deltafs:$work/there/i" || fail "cp from a pipe"
    agree "$work/there/h" "$plain"
    agree "$work/there/i" "$plain"
    expect 0 "$deltafs" cp "$work/there/g" "deltafs:$work/there/j"
    agree "$work/there/j" "$plain"
    expect 0 "$deltafs" rm "$work/there/g" "deltafs:$work/there/h" "$work/there/i" "$work/there/j"
    is_empty "$work/there" "rm"
done

# Holes: of a plain file, of a logical one, of a plain one.
truncate -s 300M "$work/sparse"
printf 'in the middle' | dd of="$work/sparse" bs=1 seek=150000001 conv=notrunc 2>"$work/err" || fail "dd"
expect 0 "$deltafs" cp "$work/sparse" "$work/there/sparse"
[ "$(size "$work/there/sparse")" -eq 314572800 ] || fail "the hole at the end is lost"
[ "$(du -sk "$work/there/sparse" | cut -f1)" -lt 2000 ] || fail "holes take room in a logical file"
expect 0 "$deltafs" cp "$work/there/sparse" "$work/copy"
same "$work/sparse" "$work/copy" "a file with holes"
[ "$(du -k "$work/copy" | cut -f1)" -lt 2000 ] || fail "holes take room in a plain file"
truncate -s 5000000 "$work/sparse"
expect 0 "$deltafs" cp -f "$work/sparse" "$work/there/sparse"
expect 0 "$deltafs" cp -f "$work/there/sparse" "$work/copy"
same "$work/sparse" "$work/copy" "a file that is a hole"
rm "$work/copy" "$work/sparse"
expect 0 "$deltafs" rm "$work/there/sparse"

# What is there is replaced if that is asked for, and keeps its permissions; a symbolic link stays.
echo old >"$work/there/old"
chmod 640 "$work/there/old"
ln -s old "$work/there/link"
expect 3 "$deltafs" cp "$f" "$work/there/link"
says "--force"
[ "$(cat "$work/there/old")" = old ] || fail "cp without --force replaces a file"
expect 0 "$deltafs" cp --force "$f" "$work/there/link"
same "$p" "$work/there/old" "cp --force"
[ -L "$work/there/link" ] || fail "cp --force replaces a symbolic link"
[ "$(stat -c %a "$work/there/old")" = 640 ] || fail "cp --force: permissions $(stat -c %a "$work/there/old")"
expect 0 "$deltafs" cp "$work/p1" "$work/there/g"
expect 3 "$deltafs" cp "$work/p2" "$work/there/g"
says "--force"
agree "$work/there/g" "$work/p1"
expect 0 "$deltafs" cp -f "$work/p2" "$work/there/g"
agree "$work/there/g" "$work/p2"
(umask 027 && "$deltafs" cp "$f" "$work/there/new") || fail "cp"
[ "$(stat -c %a "$work/there/new")" = 640 ] || fail "cp: permissions $(stat -c %a "$work/there/new")"
expect 0 "$deltafs" cp "$f/" "$work/there/."
same "$p" "$work/there/f3" "cp into a folder"
expect 3 "$deltafs" cp "$f" "$work/there"
says "--force"
"$deltafs" cp "$f" /dev/null || fail "cp to a device"
[ -c /dev/null ] || fail "cp replaces a device"
nothing_aside "$work/there"
rm -r "$work/there"
mkdir "$work/there"

# ---- ls, stat, info

"$put_records" "$work/run/d" schema=x:u4 <<END || fail "put_records"
1 1 00000001
2 1 00000002
2 2 00000002
END
mkdir "$work/run/folder"
echo text >"$work/run/text"
ln -s text "$work/run/to-text"
ln -s f1 "$work/run/to-f1"
ln -s nowhere "$work/run/to-nowhere"
: >"$work/run/.hidden"
expect 0 "$deltafs" ls "$work/run"
sed 's/  */ /g' "$work/out" >"$work/list"
for line in "directory 2 epochs, 3 records d" "logical $(size "$work/run/f1") bytes f1" "folder folder" "file 5 bytes text" \
    "link to-text -> text" "logical $(size "$work/run/f1") bytes to-f1" "link to-nowhere -> nowhere"; do
    grep -qxF "$line" "$work/list" || fail "ls: no line '$line' in $(cat "$work/list")"
done
[ "$(wc -l <"$work/list")" -eq 12 ] || fail "ls: $(cat "$work/list")"
sed 's/ -> .*//; s/.* //' "$work/list" | sort -c || fail "ls is not sorted"
command=$(cd "$(dirname "$deltafs")" && pwd)/${deltafs##*/}
(cd "$work/run" && "$command" ls) >"$work/list2" || fail "ls of the working directory"
"$deltafs" ls "$work/run" >"$work/list"
same "$work/list" "$work/list2" "ls of the working directory"
expect 0 "$deltafs" ls -la "deltafs:$work/run/"
grep -qE '^directory +2 epochs, 3 records +[0-9]+ +closed +d$' "$work/out" || fail "ls -l: $(cat "$work/out")"
grep -qE '^logical +[0-9]+ bytes +[0-9]+ +open +f1$' "$work/out" || fail "ls -l: $(cat "$work/out")"
grep -qE '^file +0 bytes .* \.hidden$' "$work/out" || fail "ls -a: $(cat "$work/out")"
expect 0 "$deltafs" ls "$work/run/folder" "$work/run/f1" "$work/run/d" "$work/run/text"
sed 's/  */ /g' "$work/out" >"$work/list"
cat >"$work/list2" <<END
logical $(size "$work/run/f1") bytes $work/run/f1
directory 2 epochs, 3 records $work/run/d
file 5 bytes $work/run/text

$work/run/folder:
END
same "$work/list2" "$work/list" "ls of several"
expect 0 "$deltafs" ls "$work/run/folder"
[ ! -s "$work/out" ] || fail "ls of an empty folder: $(cat "$work/out")"
expect 3 "$deltafs" ls "$work/missing" "$work/run/text"
says "$work/missing: No such file or directory"
stdout_has "$work/run/text"
expect 0 "$deltafs" stat "$work/run/f1" "$work/run/d" "$work/run/folder" "$work/run/text" /dev/null
for line in "kind            logical file" "kind            directory" "epochs          2" "kind            folder" \
    "kind            plain file" "size            5" "kind            other"; do
    grep -qxF "$line" "$work/out" || fail "stat: no line '$line' in $(cat "$work/out")"
done
expect 0 "$deltafs" info "$work/run/f1"
cp "$work/out" "$work/info"
grep -qE "^bytes stored +[0-9]+ \([0-9.]+ times the size\)$" "$work/out" || fail "info: $(cat "$work/out")"
expect 0 "$deltafs" stat "$work/run/f1"
sed 1d "$work/out" >"$work/list"
same "$work/info" "$work/list" "info and stat of a logical file"
expect 3 "$deltafs" stat "$work/missing" "$work/run/text"
says "$work/missing: No such file or directory"
stdout_has "size            5"
if [ -n "${PYTHON3:-}" ]; then
    mkdir "$work/odd"
    : >"$work/odd/$(printf 'odd "\\ \303\251\nname')"
    : >"$work/odd/$(printf 'no utf \377')"
    for words in "ls" "ls -al" "stat" "info"; do
        operands="$work/run/f1"
        [ "${words%% *}" = info ] || operands="$work/odd $work/run $work/run/d $work/run/text $operands"
        # shellcheck disable=SC2086
        expect 0 "$deltafs" $words --json $operands
        "$PYTHON3" -c 'import json, sys; json.load(sys.stdin)' <"$work/out" || fail "$words --json: $(cat "$work/out")"
    done
    expect 0 "$deltafs" ls "$work/odd"
    stdout_has 'odd "\ é\nname'
    for words in "ls $work/run/folder" "ls $work/missing" "stat $work/missing"; do
        # shellcheck disable=SC2086
        "$deltafs" $words --json 2>"$work/err" | "$PYTHON3" -c 'import json, sys; assert json.load(sys.stdin) == []' ||
            fail "$words --json"
    done
fi

# ---- Holes are not read

truncate -s 4T "$work/sparse" 2>/dev/null || truncate -s 15G "$work/sparse" || fail "truncate"
holes=$(wc -c <"$work/sparse")
printf 'in the middle' | dd of="$work/sparse" bs=1 seek=$((holes / 2 + 12345)) conv=notrunc 2>/dev/null || fail "dd"
expect 0 timeout 60 "$deltafs" cp "$work/sparse" "$work/sparse.l"
expect 0 timeout 60 "$deltafs" cp "deltafs:$work/sparse.l" "deltafs:$work/sparse.m"
expect 0 timeout 60 "$deltafs" cp "$work/sparse.m" "$work/sparse.copy"
[ "$(wc -c <"$work/sparse.copy")" -eq "$holes" ] || fail "a sparse file's size is $(wc -c <"$work/sparse.copy")"
[ "$(du -k "$work/sparse.copy" | cut -f 1)" -lt 1000 ] || fail "the copy of a sparse file has no holes"
got=$(dd if="$work/sparse.copy" bs=1 skip=$((holes / 2 + 12345)) count=13 2>/dev/null)
[ "$got" = "in the middle" ] || fail "a sparse file's copy has '$got'"
rm "$work/sparse" "$work/sparse.copy"
expect 0 "$deltafs" rm "$work/sparse.l" "$work/sparse.m"

# ---- What is something else

for words in cat flatten rm; do
    for case in "missing:No such file or directory" "run/text:a plain file" "run/folder:a folder" \
        "run/d:a DeltaFS directory" "run/text/x:Not a directory"; do
        [ "$words $case" != "rm run/d:a DeltaFS directory" ] || continue
        expect 3 "$deltafs" $words "$work/${case%%:*}"
        says "$work/${case%%:*}: ${case#*:}"
        [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$words of $case: more than one line: $(cat "$work/err")"
        [ ! -s "$work/out" ] || fail "$words of $case has output"
    done
done
expect 3 "$deltafs" cat "$work/run/d"
says "'deltafs get'"
expect 3 "$deltafs" cat "$work/missing" "$f"
same "$p" "$work/out" "cat of what is missing, and of what is there"
expect 3 "$deltafs" rm "$work/run/to-f1"
says "symbolic link"
expect 0 "$deltafs" rm -f "$work/missing"
expect 0 "$deltafs" rm -f
expect 3 "$deltafs" rm "$work/run/folder"
says "a folder, neither a DeltaFS directory nor a logical file"
[ -d "$work/run/folder" ] || fail "rm removes a folder"
for name in "" deltafs:; do
    for command in rm cat stat info verify scan repair flatten ls; do
        expect 3 "$deltafs" $command "$name"
        says "the name of the file is missing"
    done
    expect 3 "$deltafs" get "$name" 1
    says "the name of the file is missing"
done
for command in verify info "repair --apply"; do
    # shellcheck disable=SC2086 # a command with its option
    expect 3 "$deltafs" $command "$work/run/text"
    says "$work/run/text: a plain file, neither a DeltaFS directory nor a logical file"
done
expect 3 "$deltafs" rm -f "$work/run/text"
says "a plain file, not a logical file; 'rm' removes it"
[ -s "$work/run/text" ] || fail "rm removes what is no logical file"
expect 3 "$deltafs" get "$f" 1
says "$f: a logical file, which has no records"
expect 3 "$deltafs" scan "deltafs:$f"
says "$f: a logical file, which has no records"
expect 0 "$deltafs" repair "$f"
stdout_has "$f: nothing to repair"
for words in scan verify info repair; do
    expect 0 "$deltafs" $words "deltafs:$work/run/d"
done
expect 0 "$deltafs" get "deltafs:$work/run/d" 1
for words in verify info; do
    for path in missing run/text run/folder; do
        expect 3 "$deltafs" $words "$work/$path"
        says "$work/$path"
    done
done

# no_copy TEXT ARGUMENT...: cp fails, says TEXT, and leaves nothing.
no_copy() {
    text=$1
    shift
    expect 3 "$deltafs" cp "$@"
    says "$text"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "cp $*: more than one line: $(cat "$work/err")"
    is_empty "$work/there" "cp $*"
}
no_copy "No such file or directory" "$work/missing" "$work/there/x"
no_copy "No such file or directory" "deltafs:$work/missing" "$work/there/x"
no_copy "a plain file, not a logical one" "deltafs:$work/run/text" "$work/there/x"
no_copy "a plain file, not a logical one" "$work/run/text" -
no_copy "a folder, not a logical file" "$work/run/folder" "$work/there/x"
no_copy "a directory has no place in a pipe" "$work/run/d" -
no_copy "a DeltaFS directory" "$f" "$work/run/d" -f
no_copy "a DeltaFS directory" "$work/run/text" "deltafs:$work/run/d" -f
no_copy "a plain file, but the copy is a logical file" "$0" "$work/run/text" -f
no_copy "a logical file, but the copy is a plain file" "$f" "$work/run/f1" -f
no_copy "cannot be made in $work/there/no: " "$f" "$work/there/no/x"
no_copy "cannot be made in $work/there/no: " "$0" "$work/there/no/x"
no_copy "no such folder" "$f" "$work/there/no/"
no_copy "Not a directory" "$0" "$work/run/text/x"
no_copy "to what is not there" "$f" "$work/run/to-nowhere"
no_copy "give a name in it" - "$work/there" </dev/null
no_copy "the name of the file is missing" "" "$work/there/x"
no_copy "the name of the file is missing" "$f" deltafs:
# Pipes with names are not waited for, and used if somebody is at the other end.
mkfifo "$work/fifo"
no_copy "$work/fifo: no process writes to this pipe" "$work/fifo" "$work/there/x"
no_copy "$work/fifo: no process reads this pipe" "$f" "$work/fifo"
expect 0 "$deltafs" cp -q /dev/stdin "$work/there/x" <<END
through a pipe
END
# shellcheck disable=SC2002 # a pipe is what is tested
cat "$p" | "$deltafs" cp -q -f /dev/stdin "$work/there/x" || fail "cp from a pipe with a name"
agree "$work/there/x" "$p"
expect 0 "$deltafs" rm "$work/there/x"
"$deltafs" cp -q "$f" /dev/stdout | cmp -s - "$p" || fail "cp to a pipe with a name"
agree "$f" "$p"

# ---- What may not be read or written; nothing keeps root out, who asks as nobody if he can

as=
if [ "$(id -u)" -eq 0 ]; then
    as="setpriv --reuid=65534 --regid=65534 --clear-groups"
    chmod 755 "$work"
    # What is in the build folder may be out of reach for nobody.
    $as "$deltafs" --version >/dev/null 2>&1 || as=none
fi
if [ "$as" != none ]; then
    chmod 000 "$f"
    for words in cat stat verify info; do
        # shellcheck disable=SC2086
        expect 3 $as "$deltafs" $words "$f"
        says "Permission denied"
        says "$f"
        [ ! -s "$work/out" ] || fail "output of $words without permission"
    done
    # shellcheck disable=SC2086
    expect 0 $as "$deltafs" ls "$work/run"
    sed 's/  */ /g' "$work/out" | grep -qxF "folder f3" || fail "ls of what may not be read: $(cat "$work/out")"
    chmod 755 "$f"
    # Whoever may not remove all of it removes none of it, though the name could be taken away.
    cp -r "$f" "$work/open"
    mkdir "$work/open.to"
    mv "$work/open" "$work/open.to/f"
    chmod 777 "$work/open.to"
    # shellcheck disable=SC2086
    expect 3 $as "$deltafs" rm "$work/open.to/f"
    says "Permission denied"
    expect 0 "$deltafs" verify "$work/open.to/f"
    rm -r "$work/open.to"
    chmod 555 "$work/there" "$work/run"
    for from in "$f" "$work/run/text"; do
        # shellcheck disable=SC2086
        expect 3 $as "$deltafs" cp "$from" "$work/there/x"
        says "Permission denied"
        says "$work/there/x: cannot be made"
    done
    # shellcheck disable=SC2086
    expect 3 $as "$deltafs" rm "$f"
    says "Permission denied"
    chmod 755 "$work/there" "$work/run"
    is_empty "$work/there" "cp without permission"
    agree "$f" "$p"
fi

# ---- Full devices and file systems; interrupted

if [ -c /dev/full ]; then
    for words in "cat $f" "cp $f -" "cp $f /dev/full" "ls $work/run" "ls --json $work/run" "stat $f" "flatten $f" "info $f" \
        "verify $f"; do
        # shellcheck disable=SC2086
        "$deltafs" $words >/dev/full 2>"$work/err"
        code=$?
        [ $code -eq 3 ] || fail "exit code $code on a full device: $words"
        says "No space left on device"
    done
fi

# A signal while standard input is waited for. (A script's own background jobs would ignore some.)
interrupt='
import os, signal, subprocess, sys, time
name, folder, command = sys.argv[1], sys.argv[2], sys.argv[3:]
number = getattr(signal, "SIG" + name)
p = subprocess.Popen(command, stdin=subprocess.PIPE, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
p.stdin.write(b"x" * 9000000)
p.stdin.flush()
for i in range(100):
    left = os.listdir(folder)
    if left:
        break
    time.sleep(0.05)
assert len(left) == 1 and left[0].startswith(".deltafs-cp."), left
p.send_signal(number)
assert p.wait(60) == -number, p.returncode
'
if [ -n "${PYTHON3:-}" ]; then
    for signal in INT TERM HUP; do
        "$PYTHON3" -c "$interrupt" $signal "$work/there" "$deltafs" cp - "$work/there/x" 2>"$work/err" ||
            fail "cp and SIG$signal: $(cat "$work/err")"
        is_empty "$work/there" "SIG$signal"
    done
fi

mkdir "$work/small"
if mount -t tmpfs -o size=2M tmpfs "$work/small" 2>/dev/null; then
    trap 'umount "$work/small"; rm -rf "$work"' EXIT
    echo keep >"$work/small/keep"
    head -c 5000000 /dev/urandom >"$work/large"
    expect 0 "$deltafs" cp "$work/large" "$work/there/large"
    for words in "$work/there/large $work/small/x" "$work/large $work/small/x" "-f $work/there/large $work/small/keep" \
        "$work/there/large deltafs:$work/small/x"; do
        # shellcheck disable=SC2086
        expect 3 "$deltafs" cp $words
        says "No space left on device"
        [ "$(ls -A "$work/small")" = keep ] || fail "cp $words leaves $(ls -A "$work/small")"
        [ "$(cat "$work/small/keep")" = keep ] || fail "cp -f on a full file system loses the old file"
    done
    umount "$work/small"
    trap 'rm -rf "$work"' EXIT
    expect 0 "$deltafs" rm "$work/there/large"
fi

# ---- The progress bar: on a terminal, and nowhere else

if script --version >/dev/null 2>&1; then
    head -c 30000000 /dev/zero | tr '\0' 'x' >"$work/large"
    export SHELL=/bin/sh
    script -qefc "$deltafs cp -f $work/large $work/there/bar" /dev/null >"$work/out" 2>"$work/err" </dev/null ||
        fail "cp on a terminal: $(cat "$work/out" "$work/err")"
    grep -q '\[#*-*\] *[0-9]*% ' "$work/out" || fail "no bar on a terminal: $(cat "$work/out")"
    script -qefc "$deltafs cp -qf $work/large $work/there/bar" /dev/null >"$work/out" 2>"$work/err" </dev/null ||
        fail "cp -q on a terminal"
    [ ! -s "$work/out" ] || fail "cp -q prints: $(cat "$work/out")"
    expect 0 "$deltafs" rm "$work/there/bar"
fi

# ---- A file of a real run, there and back

dump=$(find "$real" -name 'eparticle.*' 2>/dev/null | sort | head -n 1)
if [ -n "$dump" ]; then
    expect 0 "$deltafs" cp "$dump" "$work/there/dump"
    agree "$work/there/dump" "$dump"
fi

# ---- Folders that are missing

put_fails() {
    if "$put_logical" "$1" "$work/none" 1 1 10 1000 2>"$work/err"; then
        fail "$1 was created"
    fi
}
put_logical=$(realpath "$put_logical")
mkdir "$work/above" && cd "$work/above" || exit 99
put_fails a/b/c/f
says "a/b/c/f: cannot be created: the folder a does not exist; create it first"
mkdir a
put_fails a/b/c/f
says "the folder a/b does not exist"
put_fails "$work/above/x/f"
says "the folder $work/above/x does not exist; create it first"
# A program has made a folder under the name that it gives MPI-IO.
mkdir -p deltafs:out/T.5 a/deltafs:b "deltafs:$work/above/x"
put_fails out/T.5/f
says "the folder out does not exist, but a folder named deltafs:out does"
says "start it by 'deltafs run'"
put_fails a/b/f
says "but a folder named a/deltafs:b does"
put_fails "$work/above/x/f"
says "but a folder named deltafs:$work/above/x does"
cd "$OLDPWD" || exit 99
exit 0