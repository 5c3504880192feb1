#!/bin/sh
# Programs as they are, on a namespace behind a mount point.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
cd "$work" || exit 99

expect 0 "$deltafs" ns create ns
head -c 300000 /dev/urandom >random
head -c 30000000 /dev/zero | tr '\0' x >large
expect 0 m cp random large /mounted
expect 0 m cmp random /mounted/random
expect 0 m cmp large /mounted/large
expect 0 "$deltafs" ns cp ns:/large copied
same copied large "a file that was written by cp is read by deltafs ns cp"

m sh -c 'd=/mounted/a; mkdir $d && echo one >$d/x && echo two >>$d/x && cp $d/x $d/y && mv $d/y $d/../z &&
    ln -s x $d/l && rm /mounted/random && cat $d/l /mounted/z && readlink $d/l' >out || fail "a shell fails"
printf 'one\ntwo\none\ntwo\nx\n' >wanted
same out wanted "what a shell has done"
expect 0 "$deltafs" ns ls ns:/
printf 'a\nlarge\nz\n' >wanted
sort out >sorted
same sorted wanted "names"

# Paths with dots, and with empty names.
up=$(pwd -P | sed 's|[^/]\{1,\}|..|g')
printf 'one\ntwo\n' >wanted
for path in //mounted/a/x /mounted//a///x /./mounted/a/./x "$work$up/mounted/a/x" "${up#/}/mounted/a/x" \
    "./..$up/mounted/a/x" /mounted/../mounted/a/../a/x /..//mounted/a/x; do
    expect 0 m cat "$path"
    same out wanted "$path"
done
for path in mounted/a/x ./mounted/a/x .//mounted//a///x mounted/a/../a/../a/../a/x; do
    expect 0 m sh -c 'cd / && exec cat "$1"' sh "$path"
    same out wanted "/ and then $path"
done
m sh -c 'cd / && test -e mountedx/a/x' && fail "mountedx is in a mount"
: >some.file.with.dots
for path in some.file.with.dots ./some.file.with.dots "$work/some.file.with.dots"; do
    expect 0 m test -e "$path"
done
for path in /mountedx/a/x /mounte/a/x /mounted/../a/x /.mounted/a/x /mounted./a/x mounted/a/x; do
    m test -e "$path" && fail "$path is in a mount"
done

# Several programs write parts of one file, and add to one.
m sh -c 'for i in 0 1 2 3; do
    dd if=large of=/mounted/parts bs=1000 seek=$i count=1 conv=notrunc 2>/dev/null &
    echo line >>/mounted/lines &
    done; wait' || fail "several writers"
m cat /mounted/parts | cmp -n 4000 - large || fail "parts of a file"
[ "$(m cat /mounted/parts | wc -c)" = 4000 ] || fail "the size of a file in parts"
[ "$(m grep -c line /mounted/lines)" = 4 ] || fail "lines that were added at the same time"

# A snapshot is read only.
expect 0 "$deltafs" snapshot publish ns first --registry reg
expect 0 mounted "namespace=/mounted=$work/reg@first" cat /mounted/a/x
mounted "namespace=/mounted=$work/reg@first" sh -c 'echo >/mounted/new' 2>err && fail "a snapshot was changed"
grep -q "Read-only" err || fail "a snapshot: $(cat err)"

# What is not a mount.
mounted "namespace=mounted" true 2>err && fail "bad mounts"
grep -q "deltafs run" err || fail "bad mounts: $(cat err)"

# A file that another process renames while it is open; if it is moved to another folder, what comes after that is lost,
# and that is said.
m sh -c 'exec 3>/mounted/open; echo one >&3; mv /mounted/open /mounted/renamed; echo two >&3' 2>err
[ "$(m cat /mounted/renamed; cat err)" = "$(printf 'one\ntwo')" ] || fail "a renamed file: $(cat err)"
m sh -c 'exec 3>/mounted/open; echo one >&3; mv /mounted/open /mounted/a/; echo two >&3' 2>err
grep -q "another process has removed the file while it was open, or moved it" err || fail "a moved file: $(cat err)"
# Truncated and made longer; renamed to itself.
expect 0 m "${PYTHON3:-python3}" -c "
import os
fd = os.open('/mounted/cut', os.O_RDWR | os.O_CREAT)
os.write(fd, b'x' * 100); os.fsync(fd); os.ftruncate(fd, 50); os.ftruncate(fd, 80); os.close(fd)
assert os.stat('/mounted/cut').st_size == 80
with open('/mounted/same', 'w') as f:
    os.rename('/mounted/same', '/mounted/same'); f.write('kept')
assert open('/mounted/same').read() == 'kept'"

# A process that was killed after its commit has left an odd number in RUN: others look at the namespace all the same.
printf '\001' | dd of=ns/RUN conv=notrunc bs=1 count=1 2>/dev/null
m sh -c '[ ! -e /mounted/killed ] && DELTAFS_POSIX= "$0" ns mkdir ns:/killed >&2 && [ -e /mounted/killed ]' "$deltafs" ||
    fail "what a killed process has committed is not seen"
expect 0 m rmdir /mounted/killed
[ "$(od -An -tu1 -N1 ns/RUN | tr -d ' ')" = 2 ] || fail "the number in RUN: $(od ns/RUN)"
