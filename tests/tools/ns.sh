#!/bin/sh
# deltafs ns: the commands of namespaces, against those of the system.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
export DELTAFS_SYNC=none
cd "$work" || exit 99

case $deltafs in /*) ;; *) deltafs=$OLDPWD/$deltafs ;; esac

# ns ARGUMENT...: succeeds and says nothing on standard error; its output is in $work/out.
ns() {
    expect 0 "$deltafs" ns "$@"
    [ ! -s err ] || fail "ns $*: $(cat err)"
}

# prints TEXT: the last command printed this.
prints() {
    printf '%s' "$1" >wanted
    same out wanted "the output is not as wanted"
}

ns create n
expect 3 "$deltafs" ns create n
says "exists already"
expect 3 "$deltafs" ns create missing/n
says "missing/n: "
grep -q "\.new" err && fail "a temporary name in a message: $(cat err)"
expect 3 "$deltafs" ns ls none:/
says "there is no such namespace"
expect 2 "$deltafs" ns ls /tmp
says "give NS:/PATH"
expect 2 "$deltafs" ns
says "there are create, ls, stat"
expect 2 "$deltafs" ns lss n:/
says "did you mean 'ls'"
"$deltafs" ns help cp >out || fail "help cp"
stdout_has "deltafs ns cp FROM... TO"

# ---- A tree of files, folders and links, in and out again ----
mkdir -p tree/a/b tree/empty
printf 'one\n' >tree/one
printf 'two' >tree/a/two
: >tree/a/b/nothing
head -c 700000 /dev/urandom >tree/a/b/large
ln -s a/two tree/link
ln -s nowhere tree/dangling
chmod 640 tree/one
chmod 711 tree/a
touch -d '2001-02-03 04:05:06.789 UTC' tree/one tree/a
ns cp -rp tree n:/
ns cp -rp n:/tree back
diff -r --no-dereference tree back || fail "the copy differs"
(cd tree && find . -printf '%p %m %l %T@\n' | grep -v 'link\|dangling' | sort) >wanted
(cd back && find . -printf '%p %m %l %T@\n' | grep -v 'link\|dangling' | sort) >got
same got wanted "modes or times differ"
ns cp -r n:/tree n:/again
ns cp -r n:/again out-again
diff -r --no-dereference tree out-again || fail "the copy of the copy differs"

ns ls n:/tree
prints 'a
dangling
empty
link
one
'
ns ls -R n:/tree/a
prints 'n:/tree/a:
b
two

n:/tree/a/b:
large
nothing
'
ns ls -l n:/tree/one n:/tree/link
grep -q '^-rw-r-----.* 4 20[0-9-]* [0-9:]* n:/tree/one$' out || fail "ls -l: $(cat out)"
grep -q '^lrwxrwxrwx.* n:/tree/link -> a/two$' out || fail "ls -l: $(cat out)"
ns ls n:/tree/one
prints 'n:/tree/one
'
ns cat n:/tree/one n:/tree/link
prints 'one
two'
ns find n:/tree --type f
sort out -o out
prints 'n:/tree/a/b/large
n:/tree/a/b/nothing
n:/tree/a/two
n:/tree/one
'
ns find n:/tree --name '*w*'
prints 'n:/tree/a/two
'
expect 2 "$deltafs" ns find n:/ --type x
ns du -s n:/tree
prints "700007	n:/tree
"
ns du n:/tree/a
prints "700000	n:/tree/a/b
700003	n:/tree/a
"
ns stat n:/tree/one
stdout_has "0640"
stdout_has "file"
ns stat --json n:/tree/one n:/tree/link
[ -z "${PYTHON3:-}" ] || "$PYTHON3" -c '
import json
one, link = json.load(open("out"))
assert (one["path"], one["kind"], one["size"], one["mode"]) == ("n:/tree/one", "file", 4, "0640"), one
assert (link["kind"], link["target"]) == ("link", "a/two"), link' || fail "stat --json: $(cat out)"

ns ls --json n:/tree/a n:/tree/one
[ -z "${PYTHON3:-}" ] || "$PYTHON3" -c '
import json
print(*(e["path"] + " " + e["kind"] for e in json.load(open("out"))), sep="\n")' >listed || fail "ls --json: $(cat out)"
[ -z "${PYTHON3:-}" ] || [ "$(cat listed)" = "n:/tree/a/b folder
n:/tree/a/two file
n:/tree/one file" ] || fail "ls --json: $(cat listed)"
ns cat --offset 1 --size 2 n:/tree/one n:/tree/a/two
prints 'newo'
ns cat --offset 100 n:/tree/one
prints ''

# ---- ls, stat, cat and cp without "ns" ----
# plain ARGUMENT...: prints what "ns ARGUMENT..." does.
plain() {
    ns "$@"
    mv out wanted
    expect 0 "$deltafs" "$@"
    same out wanted "'$*' and 'ns $*' differ"
}
plain ls n:/tree deltafs:n:/tree/a
plain ls -laR n:/tree
plain ls --json n:/tree
plain stat n:/tree/one
plain stat --json n:/tree/one
plain cat n:/tree/one n:/tree/a/two
plain cat --size 3 n:/tree/a/b/large
expect 0 "$deltafs" cp -rp n:/tree plain
diff -r --no-dereference tree plain || fail "the copy differs"
expect 0 "$deltafs" cp tree/one tree/a/two -- n:/tree/empty
ns rm n:/tree/empty/one n:/tree/empty/two
expect 2 "$deltafs" ls n:/tree tree
says "'tree': not in a namespace"
expect 2 "$deltafs" ls -R tree
says "unknown option '-R'"
expect 2 "$deltafs" cp --epochs 1 n:/tree/one x
says "unknown option '--epochs'"
"$deltafs" help cp >out || fail "help cp"
stdout_has "With NS:/PATH this is 'deltafs ns cp'"
"$deltafs" --list cp >out || fail "--list cp"
stdout_has "--epochs="
stdout_has "--preserve"
expect 0 "$deltafs" snapshot publish n reg@first
plain ls -R reg@first:/tree
plain stat reg@first:/tree/a
plain cat reg@first:/tree/one
expect 0 "$deltafs" cp -r reg@first:/tree first
diff -r --no-dereference tree first || fail "the copy of a snapshot differs"
expect 3 "$deltafs" cp one reg@first:/
says "a snapshot never changes"
expect 0 "$deltafs" snapshot withdraw reg@first

# ---- What cp(1) refuses, and where it puts things ----
expect 3 "$deltafs" ns cp n:/tree out2
says "is a folder; -r copies it"
expect 3 "$deltafs" ns cp -r n:/tree n:/tree/a
says "cannot be copied into itself"
expect 2 "$deltafs" ns cp tree/one one2
says "is in a namespace"
expect 3 "$deltafs" ns cp tree/one tree/a/two n:/tree/one
says "several sources need one"
expect 3 "$deltafs" ns cp -r tree/a n:/tree/one
says "no folder takes its place"
expect 3 "$deltafs" ns cp n:/tree/one n:/tree/one
says "is the same file"
expect 3 "$deltafs" ns cp n:/tree/a/two n:/tree/link
says "is the same file"
expect 3 "$deltafs" ns cp -r n:/tree/link n:/tree/a/two
says "n:/tree/a/two: is the same file"
ns cat n:/tree/a/two
prints 'two'
expect 3 "$deltafs" ns cp n:/none x
says "no such file"
mkfifo pipe
expect 3 "$deltafs" ns cp -r pipe n:/
says "it is left out"
# A link takes the place of a file or a link, also of one that its own path leads through; never of a folder.
mkdir links links/sub
ln -s ../new links/sub/way
echo text >links/file
ns cp -r links n:/
ln -s . n.way
ns cp -r n.way n:/links/way
ns cp -r tree/link n:/links/file
ns cp -r links/sub/way n:/links/way/way
ns ls -l n:/links
grep -q ' file -> a/two$' out && grep -q ' way -> \.\./new$' out || fail "links that were replaced: $(cat out)"
[ "$(wc -l <out)" -eq 3 ] || fail "something was left beside a link: $(cat out)"
expect 3 "$deltafs" ns cp -r tree/link n:/links/sub/way n:/links/sub
says "n:/links/sub/way: is the same file"
mkdir links/link
expect 3 "$deltafs" ns cp -r n:/links/sub/link links
says "links/link: is a folder; no file takes its place"
ns cp -r n:/links/file n:/links/sub links/link
ns cp -r n:/links/file n:/links/sub links/link
[ "$(readlink links/link/file)" = a/two ] && [ "$(readlink links/link/sub/way)" = ../new ] || fail "links out: $(ls -lR links)"
[ "$(find links/link | wc -l)" -eq 5 ] || fail "something was left beside a link: $(find links/link)"
# The contents of a folder, into a folder that a link leads to.
ns mkdir n:/links/real
ln -s real to-real
ns cp -r to-real n:/links/to
ns cp -r links/link/sub/. n:/links/to
ns ls n:/links/real
prints 'link
way
'
ns rm -r n:/links
rm -r links
# A file of many chunks; and copies that fail in the middle, which leave nothing under the name.
head -c 9000000 /dev/urandom >big
ns cp big n:/
ns cp n:/big big.out
same big big.out "the copy of a large file differs"
(
    trap '' XFSZ
    ulimit -f 8000 # of 512 or 1024 bytes
    "$deltafs" ns cp n:/big cut 2>err
) && fail "a copy beyond the limit of files succeeded"
[ ! -e cut ] || fail "a part of a file was left: $(ls -l cut)"
ns create broken
ns cp big broken:/
printf 'xxxxxxxx' | dd of="$(find broken -path '*.data/00/*.data')" bs=1 seek=5000000 conv=notrunc status=none
expect 3 "$deltafs" ns cp broken:/big n:/part
says "damaged"
expect 3 "$deltafs" ns stat n:/part
says "no such file"
ln -s behind way
expect 3 "$deltafs" ns cp broken:/big way
[ "$(readlink way)" = behind ] || fail "a copy that failed removed the link that it went through"
rm -r broken way behind
ns rm n:/big
mkdir modes
: >modes/file
chmod 777 modes/file
chmod 555 modes
(umask 027 && "$deltafs" ns cp -r modes n:/ && "$deltafs" ns cp -r n:/modes modes.out) || fail "cp -r with a mask"
ns ls -l n:/
grep -q '^dr-xr-x--- .* modes$' out || fail "mode of a folder: $(cat out)"
ns ls -l n:/modes
grep -q '^-rwxr-x--- .* file$' out || fail "mode of a file: $(cat out)"
[ "$(stat -c '%a' modes.out modes.out/file)" = "550
750" ] || fail "modes of copies: $(stat -c '%a %n' modes.out modes.out/file)"
ns rm -r n:/modes
printf 'new' >one
ns cp one n:/tree
ns cat n:/tree/one
prints 'new'
ns cp one n:/named
ns cp one tree/a/two n:/tree/empty
ns ls n:/tree/empty
prints 'one
two
'

# ---- mkdir, mv, rm ----
expect 3 "$deltafs" ns mkdir n:/x/y
says "no such file or folder"
ns mkdir -p n:/x/y/z n:/x/y
expect 3 "$deltafs" ns mkdir n:/x
says "exists already"
expect 3 "$deltafs" ns mkdir -p n:/named
says "exists already"
ln -s nowhere dangling
ns cp -r dangling n:/dangling
expect 3 "$deltafs" ns mkdir -p n:/dangling
says "dangling: exists already"
ns rm n:/dangling
ns mv n:/named n:/x
ns mv n:/x/named n:/x/other
ns mv n:/tree/one n:/tree/empty/two n:/x/y
ns find n:/x
sort out -o out
prints 'n:/x
n:/x/other
n:/x/y
n:/x/y/one
n:/x/y/two
n:/x/y/z
'
expect 3 "$deltafs" ns mv n:/x n:/x/y/z
says "cannot be moved into itself"
ns create m
expect 3 "$deltafs" ns mv n:/x m:/
says "in another namespace"
ns cp -r n:/x m:/
ns find m:/ --type f
sort out -o out
prints 'm:/x/other
m:/x/y/one
m:/x/y/two
'
expect 3 "$deltafs" ns rm n:/x
says "-r removes it"
expect 3 "$deltafs" ns rm -r n:/
says "is the root"
expect 3 "$deltafs" ns rm -r n:/x/y/..
says "ends in '.' or '..'"
ns cat n:/x/y/one
prints 'new'
ns rm -r n:/x n:/tree
expect 3 "$deltafs" ns rm n:/x
says "no such file or folder"
ns rm -f n:/x
expect 2 "$deltafs" ns rm
ns ls n:/
prints 'again
'

# ---- Compaction ----
"$deltafs" snapshot gc n >out || fail "gc" # what is in the journal becomes an epoch
ns mkdir n:/more
ns rm -r n:/more
ns ls -lR n:/
mv out before
ns compact n
grep -qE '^n: [0-9]+ records of 1 table, [0-9]+ left$' out || fail "compact: $(cat out)"
ns compact n
prints 'n: nothing to do
'
ns ls -lR n:/
same out before "compaction has changed what is there"
ns cp one n:/more
ns compact n
grep -qE '^n: [0-9]+ records of [12] tables?, [0-9]+ left$' out || fail "compact: $(cat out)"
ns cat n:/more
prints 'new'
ns rm n:/more
"$deltafs" snapshot gc n >out || fail "gc"
ns ls -lR n:/
same out before "gc after a compaction has changed what is there"
expect 3 "$deltafs" ns compact none
says "there is no such namespace"
expect 2 "$deltafs" ns compact
says "NS is missing"

# ---- Each table is a directory, which the other commands check ----
set -- n/t???????????????? n/t*.data
[ $# -ge 2 ] || fail "tables: $*"
expect 0 "$deltafs" verify "$@"

# ---- Another user, who must not write to the tables that are there ----
if [ "$(id -u)" -eq 0 ]; then
    as="setpriv --reuid=65534 --regid=65534 --clear-groups"
    chmod 755 "$work"
    if $as "$deltafs" --version >/dev/null 2>&1; then
        chmod 777 m
        # shellcheck disable=SC2086
        expect 0 $as "$deltafs" ns mkdir m:/theirs
        ns ls -l m:/
        stdout_has " theirs"
    fi
fi
