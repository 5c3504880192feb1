#!/bin/sh
# Logical files of the system, which are folders, are files for the programs of a run.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
put=$(cd "$top_builddir" && pwd)/put_logical
cd "$work" || exit 99

m() { mounted "logical=/=/" "$@"; }

# both COMMAND: run it by the shell in a folder that has logical files, and in one that has the same as plain files, and
# compare what it prints.
both() {
    (cd plain && sh -c "$1" 2>&1) >wanted
    (cd logical && m sh -c "$1" 2>&1) >got
    same got wanted "$1"
}

# make NAME SEED SIZE
make() { expect 0 "$put" "logical/$1" "plain/$1" "$2" 2 50 "$3"; }
mkdir -p plain/folder logical/folder
make small 1 100000
make large 2 9000000
make folder/other 3 5000
[ -d logical/small ] || fail "logical/small is no logical file"

both 'stat -c "%n %F %s %h" small large folder/other; stat -c %F folder'
both 'cat small | cksum; cksum large folder/other; cksum <large; wc -c small; head -c 70000 large | tail -c 100 | cksum'
both 'cmp small large; cmp large large && echo same; (head -c 10; head -c 10) <large | cksum; tail -c 1000 large | cksum'
both 'test -f small && test ! -d small && test -r small && test -w small && echo file; ls; ls folder'
both 'find . -type f | sort; find . -type d | sort; rmdir small; mkdir large; ls -A | wc -l; od -A d -j 3000 -N 64 small'
both 'cp large copy && cmp copy large && stat -c %F copy; cp -r folder copies && ls copies; tar -cf - small folder | cksum | wc -l'
both 'exec 5<small; dd bs=10 skip=7 count=3 <&5 2>/dev/null | cksum; dd bs=100 count=1 <&5 2>/dev/null | cksum'
both 'truncate -s 1000 small; cksum small; truncate -s 200000 small; cksum small; echo changed >small; cat small; echo more >>small; cat small'
both 'printf 12345 | dd of=large conv=notrunc bs=1 seek=5000000 2>/dev/null; cksum large; sed -i s/more/less/ small; cat small'
both 'mv large moved && cksum moved && ls; mv moved folder/other; cksum folder/other; ln -s folder/other link; wc -c <link; ls -L link'
both 'mv copy folder/other && cksum folder/other; rm small && ls; rm small; rm -r folder; ls -R'

# The library and the commands of DeltaFS see folders, and a program without the variable, too.
make again 4 3000
expect 0 m "$deltafs" cat logical/again
same out plain/again "deltafs cat"
expect 0 m env DELTAFS_POSIX= test -d logical/again
expect 0 m "$deltafs" rm logical/again
[ ! -e logical/again ] || fail "deltafs rm: logical/again is there"
