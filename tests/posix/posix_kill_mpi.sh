#!/bin/sh
# A job that writes particles, and a rank of it that is killed at any of its calls that change the directory: the epochs
# that have ended are whole. The full run tries every seventh call; KILL_STEP=1 all.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
top_builddir=$(cd "$top_builddir" && pwd)
cd "$work" || exit 99
cat >m <<END
#!/bin/sh
export DELTAFS_POSIX="particles=/p=$work/dir" KILL_IN="$work/dir"
export LD_LIBRARY_PATH="$posix_libraries:\${LD_LIBRARY_PATH:-}"
export LD_PRELOAD="$posix_libraries/libdeltafs_posix.so $posix_libraries/libkill_hook.so"
exec "$top_builddir/file_per_particle_mpi" "\$@" >>out.ranks
END
chmod +x m

# epochs: prints how many epochs all particles have.
epochs() {
    for n in 0 1 2 3 4; do
        ./m read /p 60 $n >out 2>err && echo $n && return
    done
}

# killed HOW AT RANK
killed() {
    what="rank $3 killed $1 call $2"
    rm -rf dir out.ranks
    if [ "$3" = 0 ]; then
        KILL_HOW=$1 mpi 1 env KILL_AT="$2" ./m sync /p 60 4 : -np 2 ./m sync /p 60 4 >out 2>err
    else
        KILL_HOW=$1 mpi 2 ./m sync /p 60 4 : -np 1 env KILL_AT="$2" ./m sync /p 60 4 >out 2>err
    fi
    got=$?
    [ $got != 124 ] || fail "$what: the job does not end"
    ended=$(grep -c . out.ranks)
    if [ "$ended" = 0 ]; then return; fi
    "$deltafs" verify dir >found 2>&1 || "$deltafs" repair --apply dir >>found 2>&1 || fail "$what: $(cat found)"
    there=$(epochs)
    [ -n "$there" ] || fail "$what: particles with other numbers of epochs, or other bytes: $(cat err)"
    [ "$there" -ge "$ended" ] || fail "$what: $ended epochs had ended, $there are there"
    cases=$((cases + 1))
}

cases=0
killed half 60 0
[ $cases -gt 0 ] || fail "no epoch had ended"
if [ -n "$(in_full all)" ]; then
    for how in before half after; do
        for rank in 0 2; do
            at=1
            got=1
            while [ $got != 0 ] && [ $at -lt 300 ]; do
                killed $how "$at" "$rank"
                at=$((at + ${KILL_STEP:-7}))
            done
        done
    done
fi
echo "$cases cases"
