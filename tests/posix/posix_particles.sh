#!/bin/sh
# Programs as they are, on a directory of particles behind a mount point.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
cd "$work" || exit 99

m() { mounted "particles=/p=$work/dir" "$@"; }

# Shells: the epochs end with the program.
expect 0 m sh -c 'for i in 1 22 333; do printf first >>/p/$i; done; printf more >>/p/22'
expect 0 m sh -c 'for i in 1 22; do printf second >>/p/$i; done'
printf firstmoresecond >wanted
m cat /p/22 >out || fail "a particle cannot be read"
same out wanted "the bytes of a particle"
m cp /p/22 copied || fail "a particle cannot be copied"
same copied wanted "the copy of a particle"
[ "$(m stat -c %s:%F /p/22 /p/333 /p)" = "15:regular file
5:regular file
0:directory" ] || fail "attributes: $(m stat /p/22 /p/333 /p)"
m cat /p/4 2>err && fail "a particle that does not exist is read"
grep -q "No such file" err || fail "a particle that does not exist: $(cat err)"
expect 0 "$deltafs" get dir 22 --epochs 1 --format raw
[ "$(cat out)" = second ] || fail "labels count up: $(cat out)"
expect 0 "$deltafs" get dir 22 --epochs 0 --format raw
[ "$(cat out)" = firstmore ] || fail "labels begin with 0: $(cat out)"

# What is refused.
m sh -c 'printf x >>/p/name' 2>err && fail "a name that is no key"
grep -q "deltafs: /p/name: .*number" err || fail "a name that is no key: $(cat err)"
m sh -c 'printf x >/p/5' 2>err && fail "a particle is replaced"
grep -q "deltafs: /p/5: .*O_APPEND" err || fail "a particle is replaced: $(cat err)"
m rm /p/1 2>err && fail "a particle is removed"
grep -q "not permitted" err || fail "a particle is removed: $(cat err)"
