#!/bin/sh
# Dumps that the ranks of a job write into a namespace by stdio: another job reads them, and so do the commands.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
dumps=$(cd "$top_builddir" && pwd)/posix_dumps
cd "$work" || exit 99

expect 0 "$deltafs" ns create ns
mkdir plain
expect 0 mpi 4 "$dumps" write plain 2
expect 0 mpi 4 "$deltafs" run --mount /mounted=ns -- "$dumps" write /mounted 2
expect 0 "$deltafs" run --mount /mounted=ns -- timeout 60 $MPIEXEC -np 4 "$dumps" read /mounted 2
for dump in 0 1; do
    for name in rank.0 rank.1 rank.2 rank.3 shared; do
        "$deltafs" cat "ns:/dump.$dump/$name" >bytes 2>err || fail "deltafs cat: $(cat err)"
        cmp bytes "plain/dump.$dump/$name" || fail "deltafs cat of dump.$dump/$name"
    done
done
expect 0 "$deltafs" cp -r ns:/ copied
expect 0 diff -r plain copied
expect 0 "$deltafs" verify ns
