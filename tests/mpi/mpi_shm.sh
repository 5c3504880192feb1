#!/bin/sh
# No shared memory for the ranks of a node: a limit on one of them; and, where mounting is allowed, a full /dev/shm.
# The directories must not be there.
TMPDIR=/tmp
export TMPDIR
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

fresh
check 4 ./test_mpi_shm "$data" enough
fresh
check 4 ./test_mpi_shm "$data" limit

fresh
# In a name space of its own, so that the mount goes with it. Open MPI 4.1.4 itself dies of a full /dev/shm, in MPI_Isend.
if ! is_mpich; then
    echo "full shared memory: skipped, since Open MPI needs some for its messages"
elif [ -d /dev/shm ] && unshare -m mount -t tmpfs -o size=64m tmpfs /dev/shm 2>/dev/null; then
    cat >"$work/full" <<END
mount -t tmpfs -o size=64m tmpfs /dev/shm && timeout -k 5 60 $MPIEXEC -np 4 ./test_mpi_shm "$data" full
END
    unshare -m sh "$work/full" || fail "exit code $? where shared memory is full"
else
    echo "full shared memory: skipped, since this user may not mount a file system"
fi
