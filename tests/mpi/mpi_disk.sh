#!/bin/sh
# Trouble with the disk: a limit on one rank's files, and, where mounting is allowed, a small file system.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

for ranks in 1 3; do
    fresh
    check "$ranks" ./test_mpi_disk "$data" limit
done

fresh
# In a name space of its own, so that the mount goes with it.
if unshare -m mount -t tmpfs -o size=6m tmpfs "$data" 2>/dev/null; then
    cat >"$work/full" <<END
mount -t tmpfs -o size=6m tmpfs "$data" && timeout -k 5 60 $MPIEXEC -np 3 ./test_mpi_disk "$data" full
END
    unshare -m sh "$work/full" || fail "exit code $? on a full file system"
else
    echo "a full file system: skipped, since this user may not mount one"
fi
