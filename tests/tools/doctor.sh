#!/bin/sh
# deltafs doctor: an installation (copies, in a folder of the test) with launchers, compilers and variables that fit or do
# not.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
[ -e "$top_builddir/.libs/libdeltafs.so.0" ] || skip "there is no shared library"

work=$(cd "$work" && pwd -P)
bin=$work/usr/bin
lib=$work/usr/lib
mkdir -p "$bin" "$lib" "$work/usr/share/man" "$work/mpich" "$work/ompi" "$work/plain"
cp -p "$top_builddir/.libs/deltafs" "$bin/deltafs"
cp -P "$top_builddir"/.libs/libdeltafs.so* "$lib/"
# fake FOLDER ENDING TEXT: a launcher and a compiler that print the text.
fake() {
    for name in mpirun mpicc; do
        printf '#!/bin/sh\necho "%s"\n' "$3" >"$work/$1/$name$2"
        chmod +x "$work/$1/$name$2"
    done
}
fake mpich "" "mpicc for MPICH version 4"
fake ompi "" "mpirun (Open MPI) 4.1"
for tool in sh env ldconfig; do
    ln -s "$(PATH=$PATH:/sbin:/usr/sbin command -v $tool)" "$work/plain/$tool"
done
old_library_path=${LD_LIBRARY_PATH:-}
# doctor PATH: with only these folders on the path.
doctor() {
    env -u MANPATH PATH="$1" LD_LIBRARY_PATH="$lib${old_library_path:+:$old_library_path}" "$bin/deltafs" doctor
}

# ---- Without MPI

expect 0 doctor "$bin:$work/plain"
stdout_has "$lib/libdeltafs.so.0"
stdout_has "none: this DeltaFS was built without it"
stdout_has "--with-hdf5=DIR"
stdout_has "0 problems"
expect 3 doctor "$work/plain"
stdout_has "leads to no deltafs"
stdout_has "problem, solved by: export PATH=$bin:\$PATH"
stdout_has "1 problem"
cp -p "$bin/deltafs" "$work/mpich/deltafs"
expect 3 doctor "$work/mpich:$bin:$work/plain"
stdout_has "problem, solved by: export PATH=$bin:\$PATH"
rm "$work/mpich/deltafs"
expect 3 env PATH="$bin:$work/plain" LD_LIBRARY_PATH="$lib" MANPATH=/nowhere "$bin/deltafs" doctor
stdout_has "problem, solved by: export MANPATH=$work/usr/share/man:\$MANPATH"
expect 0 env PATH="$bin:$work/plain" LD_LIBRARY_PATH="$lib" MANPATH=/nowhere: "$bin/deltafs" doctor
mkdir "$lib/deltafs" "$lib/deltafs/hdf5"
: >"$lib/deltafs/hdf5/libh5fd_deltafs.so"
expect 0 doctor "$bin:$work/plain"
stdout_has "$lib/deltafs/hdf5"

# ---- With MPI

: >"$lib/libdeltafs_mpi.so.0"
expect 3 doctor "$bin:$work/plain"
stdout_has "MPI             cannot be loaded"
stdout_has "problem, solved by: module load"
[ -e "$top_builddir/.libs/libdeltafs_mpi.so.0" ] || exit 0
rm "$lib/libdeltafs_mpi.so.0"
cp -P "$top_builddir"/.libs/libdeltafs_mpi.so* "$lib/"
doctor "$bin:$work/plain" >"$work/out" 2>&1
case $(grep '^MPI  ' "$work/out") in
*"Open MPI:"*) fits=ompi other=mpich ending=.openmpi ;;
*"MPICH:"*) fits=mpich other=ompi ending=.mpich ;;
*) fail "which MPI: $(cat "$work/out")" ;;
esac
expect 0 doctor "$bin:$work/$fits:$work/$other:$work/plain"
grep -q "^launcher *$work/$fits/mpirun, of" "$work/out" || fail "launcher: $(cat "$work/out")"
grep -q "^compiler *$work/$fits/mpicc, of" "$work/out" || fail "compiler: $(cat "$work/out")"
expect 3 doctor "$bin:$work/$other:$work/$fits:$work/plain"
stdout_has "2 problems"
[ "$(grep -c "solved by: export PATH=$work/$fits:\$PATH" "$work/out")" -eq 2 ] || fail "not both: $(cat "$work/out")"
mv "$work/$fits/mpirun" "$work/$fits/mpirun$ending"
mv "$work/$fits/mpicc" "$work/$fits/mpicc$ending"
expect 3 doctor "$bin:$work/$other:$work/$fits:$work/plain"
stdout_has "solved by: $work/$fits/mpirun$ending ...   in place of mpirun"
expect 2 "$deltafs" doctor nonsense
exit 0
