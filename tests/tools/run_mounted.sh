#!/bin/sh
# deltafs run with the preloaded library: what a program writes is in the namespace, and in the snapshot that is published
# after it; also above and below a launcher of MPI.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
[ -e "$top_builddir/.libs/libdeltafs_posix.so" ] || skip "there is no preloaded library"
[ -z "${LD_PRELOAD:-}" ] || skip "another library is preloaded"
case $deltafs in /*) ;; *) deltafs=$PWD/$deltafs ;; esac
cd "$work" || exit 99
point=$(pwd -P)/mounted

# ns_has PLACE TEXT: the file has this line.
ns_has() {
    expect 0 "$deltafs" ns cat "$1"
    [ "$(cat out)" = "$2" ] || fail "$1 has $(cat out), not $2"
}

# shellcheck disable=SC2016
expect 0 "$deltafs" run --mount "$point=ns" --publish reg@first -- sh -c 'mkdir "$0/a" && echo one >"$0/a/b"' "$point"
[ ! -e "$point" ] || fail "the mount point was written to"
ns_has ns:/a/b one
ns_has reg@first:/a/b one
# A relative path leads there, too; a program that fails has written what it has written.
expect 5 "$deltafs" run --mount "$point=ns" --publish reg@second -- sh -c 'echo two >mounted/a/b; exit 5'
says "reg@second is not published"
ns_has ns:/a/b two
expect 0 "$deltafs" run --mount "$point=reg@first" -- cat "$point/a/b"
stdout_has one
expect 1 "$deltafs" run --mount "$point=reg@first" -- touch "$point/c"
says "Read-only file system"
expect 0 "$deltafs" run --sync --mount "$point=ns" --mount "$point-2=ns2" -- cp "$point/a/b" "$point-2/c"
ns_has ns2:/c two

# By a symbolic link: both paths lead there, and what was written by one is there by the other.
mkdir folder
ln -s folder link
expect 0 "$deltafs" run --mount "$PWD/link/m=linked" --publish reg@linked -- \
    sh -c 'echo three >"$0/link/m/d" && cd link && cat m/d && echo four >m/d && cat "$0/link/m/d"' \
    "$PWD"
[ "$(cat out)" = "three
four" ] || fail "by two paths: $(cat out)"
ns_has reg@linked:/d four

# ---- Particles

# shellcheck disable=SC2016
STEP=40 expect 0 "$deltafs" run --particles "$point=particles" --schema x:S2 --label '$STEP' -- \
    sh -c 'printf ab >>"$0/7"; printf cd >>"$0/8"' "$point"
expect 0 "$deltafs" get particles 8 --epochs 40 --format raw
[ "$(cat out)" = cd ] || fail "a particle has $(cat out), not cd"
expect 0 "$deltafs" run --particles "$point=particles" -- cat "$point/7"
[ "$(cat out)" = ab ] || fail "a particle has $(cat out), not ab"

# ---- Ranks

if [ -n "${MPIEXEC:-}" ]; then
    # shellcheck disable=SC2016
    write='rank=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; echo $rank >mounted/$1.$rank'
    # shellcheck disable=SC2086
    expect 0 timeout -k 5 "${MPI_TIMEOUT:-120}" "$deltafs" run --mount "$point=ranks" --publish reg@above -- \
        $MPIEXEC -np 2 sh -c "$write" sh above
    rm -r ranks
    expect 0 mpi 2 "$deltafs" run --mount "$point=ranks" -- sh -c "$write" sh below
    ns_has ranks:/below.0 0
    ns_has ranks:/below.1 1
    mpi 2 "$deltafs" run --mount "$point=ranks" --publish reg@below -- true >out 2>err &&
        fail "a rank may publish a snapshot"
    says "--publish: this process is one rank of a job"
fi
exit 0
