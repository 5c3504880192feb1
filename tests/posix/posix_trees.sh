#!/bin/sh
# Trees of folders in a mount: the same commands give what they give in an ordinary folder; and symbolic links that lead
# into a mount and out of it.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
cd "$work" || exit 99

# both COMMAND: run it by the shell with $t, a tree outside and one in the mount, and compare what it prints.
both() {
    t=$work/tree sh -c "$1" 2>&1 | sed "s,$work/tree,TREE,g" >wanted
    t=/mounted/tree m sh -c "$1" 2>&1 | sed "s,/mounted/tree,TREE,g" >got
    same got wanted "$1"
}

expect 0 "$deltafs" ns create ns
mkdir -p tree/a/b/c tree/empty tree/many
for i in $(seq 200); do echo "$i" >"tree/many/f$i"; done
head -c 6000000 /dev/urandom >tree/a/large
echo x >'tree/a/b/name with blanks'
ln -s ../a/large tree/empty/link
ln -s nowhere tree/a/dangling
chmod 750 tree/a
touch -d '2001-02-03 04:05:06' tree/a/large tree/many
expect 0 m cp -a tree /mounted/tree
expect 0 m diff -r --no-dereference tree /mounted/tree

both 'find "$t" -printf "%p %y %m %l\n" | sort'
both 'find "$t" -type f -printf "%p %s %t\n" | sort'
both 'find "$t" -name "f1*" -newermt 2005-01-01 | sort; find "$t" -maxdepth 1 -type d | sort'
both 'ls -R "$t"; ls -lR --time-style=full-iso "$t" | grep -v "^[dt]" | tr -s " "'
both 'du -a --apparent-size -b "$t/many" | sed "\$d" | sort'
both 'for f in "$t"/*/f?0 "$t"/a/*; do echo "$f"; done'
both 'tar -C "$t" --sort=name -cf - many a/b empty | tar -tvf - | grep -v "^d" | sed "s/ [0-9:-]* [0-9:]* / /"'
both 'chmod -R u+x "$t/many"; ls -l "$t/many" | grep -v total | cut -c 1-10; chmod -R u-x "$t/many"; ls "$t/many/f1/"'
both 'cd "$t/a/b" && pwd -P; cd ../../empty && pwd -P; cd "$t/a/b/../.." && echo *'
both 'cp -r "$t/a" "$t/copy" && diff -r --no-dereference "$t/a" "$t/copy" && mv "$t/copy" "$t/many/" && ls "$t/many/copy/b"'
both 'rm -r "$t/many" && ls "$t"; rmdir "$t/a"; rm -r "$t/none"'

expect 0 m cp -a /mounted/tree copied
expect 0 diff -r --no-dereference tree copied

# Links that lead in and out.
ln -s /mounted/tree in
ln -s in/a in_again
m sh -c "ln -s $work/copied /mounted/out && ln -s /mounted/tree/a /mounted/whole && ln -s loop /mounted/loop"
expect 0 m cmp in/a/large copied/a/large
expect 0 m cmp in_again/large /mounted/out/a/large
expect 0 m cmp /mounted/whole/large copied/a/large
m realpath in_again/b /mounted/out/a /mounted/whole/b/.. >got
printf '%s\n' /mounted/tree/a/b "$work/copied/a" /mounted/tree/a >wanted
same got wanted "real paths"
m sh -c 'echo 1 >in/new && mv in/new in_again/newer && cat /mounted/tree/a/newer && cp in_again/newer /mounted/out/ &&
    rm in/a/newer && mkdir /mounted/whole/d && rmdir in_again/d' >got || fail "links"
[ "$(cat got)" = 1 ] || fail "links: $(cat got)"
[ -e copied/newer ] || fail "a file that was copied by a link out of the mount"
m cat /mounted/loop 2>err && fail "a link to itself"
grep -q "Too many levels" err || fail "a link to itself: $(cat err)"
expect 1 m cat in/none
m sh -c 'cd in_again/b && pwd -P && cd /mounted/out && pwd -P' >got
printf '%s\n' /mounted/tree/a/b "$work/copied" >wanted
same got wanted "working directories by links"

# Locks of files: held while a command runs, or by a shell, whose descriptor the command flock inherits.
if command -v flock >/dev/null; then
    m flock /mounted/lock sh -c 'flock -n /mounted/lock true || echo held; flock -n /mounted/other echo free' >got
    printf 'held\nfree\n' >wanted
    same got wanted "flock"
    expect 0 m flock -n /mounted/lock true
    m sh -c '(flock -n 9 && (flock -n /mounted/lock true || echo held); flock -u 9; flock -n /mounted/lock echo free
        flock -n 9; exec 9>&-; flock -n /mounted/lock echo free) 9>/mounted/lock; flock -n /mounted/lock echo free' >got
    printf 'held\nfree\nfree\nfree\n' >wanted
    same got wanted "flock of an inherited descriptor"
    m sh -c 'count() { for i in 1 2 3 4 5; do (flock 9; echo $(($(cat /mounted/n) + 1)) >/mounted/n) 9>/mounted/lock; done; }
        echo 0 >/mounted/n; count & count; wait; cat /mounted/n' >got
    [ "$(cat got)" = 10 ] || fail "two shells that count: $(cat got)"
fi
