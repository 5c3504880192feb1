#!/bin/sh
# A job of MPI as it is, on a directory of particles: all ranks end an epoch together.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
program=$(cd "$top_builddir" && pwd)/file_per_particle_mpi
cd "$work" || exit 99
mount="particles=/p=$work/dir"
cat >m <<END
#!/bin/sh
export DELTAFS_POSIX="$mount" LD_PRELOAD="$posix_libraries/libdeltafs_posix.so"
export LD_LIBRARY_PATH="$posix_libraries:\${LD_LIBRARY_PATH:-}"
exec "\$@"
END
chmod +x m

# failed: fails unless the last job failed, and the message is there.
failed() {
    [ "$1" != 0 ] || fail "a job did not fail: $(cat err)"
    grep -q -- "$2" err || fail "not '$2', but: $(cat err)"
}

expect 0 mpi 3 ./m "$program" write /p 300 2
expect 0 mpi 3 ./m "$program" read /p 300 2
rm -r dir
expect 0 mpi 3 ./m "$program" sync /p 300 4
expect 0 mpi 3 ./m "$program" read /p 300 4
expect 0 mpi 2 ./m "$program" sync /p 1 1
[ "$("$deltafs" get dir 0 --format raw | wc -c)" = 160 ] || fail "an epoch in which one rank has records"

# MPI_Finalize ends the last epoch, also if only one rank has records; both launchers, before and behind it.
rm -r dir
expect 0 mounted "$mount" timeout 60 $MPIEXEC -np 2 "$program" plain /p 1 1
expect 0 mpi 2 ./m "$program" read /p 1 1

# All ranks get the error of one.
rm -r dir
DELTAFS_POSIX_LABEL='$STEP' mpi 1 env STEP=1 ./m "$program" sync /p 20 1 : -np 1 env STEP=2 ./m "$program" sync /p 20 1 \
    >out 2>err
failed $? "label"
[ "$(grep -c "syncfs: Invalid" err)" = 2 ] || fail "not both ranks failed: $(cat err)"
[ "$(grep -c "10 records of this program" err)" = 2 ] || fail "not both ranks say what is lost: $(cat err)"
DELTAFS_POSIX_LABEL='$STEP' mpi 1 env STEP=1 ./m "$program" sync /p 20 1 : -np 1 env STEP=x ./m "$program" sync /p 20 1 \
    >out 2>err
failed $? "STEP must have"
[ "$(grep -c "syncfs: Invalid" err)" = 2 ] || fail "not both ranks failed: $(cat err)"
DELTAFS_POSIX_LABEL='$STEP' expect 0 mpi 2 env STEP=7 ./m "$program" sync /p 20 1
[ "$("$deltafs" get dir 1 --epochs 7 --format raw | wc -c)" = 32 ] || fail "the label of the job"

# Without MPI_Finalize a rank does not wait for the others.
mpi 2 ./m "$program" left /p 40 1 >out 2>err
failed $? "without MPI_Finalize"
grep -q "20 records of this program" err || fail "what is lost is not said: $(cat err)"

# A job that is killed leaves the epochs that were ended.
rm -r dir
mpi 2 ./m "$program" killed /p 40 3 >out 2>err && fail "a killed job has not failed"
expect 0 mpi 2 ./m "$program" read /p 40 3
