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
stdout_has "POSIX library   not installed"
stdout_has "0 problems"
: >"$lib/libdeltafs_posix.so"
expect 0 doctor "$bin:$work/plain"
stdout_has "POSIX library   $lib"
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

# ---- Drivers

version=$("$deltafs" --version | sed 's/.* //')
compiler=$(sed -n 's/^CC = //p' "$top_builddir/Makefile")
# driver FILE VERSION MPI [CODE]: a library that says of itself what a driver says.
driver() {
    printf 'const char deltafs_driver_version[] = "%s", deltafs_driver_mpi[] = "%s";\n%s\n' "$2" "$3" "${4:-}" \
        >"$work/driver.c"
    $compiler -shared -fPIC -o "$1" "$work/driver.c" || fail "no driver is made"
}
# solved TEXT COMMAND: the only problem is told with this text and solved by this command.
solved() {
    expect 3 doctor "$path"
    stdout_has "$1"
    stdout_has "solved by: $2"
    stdout_has "1 problem"
}

path=$bin:$work/plain
plugin=$lib/deltafs/hdf5/libh5fd_deltafs.so
again="make install   in the folder in which DeltaFS was built"
mkdir -p "$lib/deltafs/hdf5"
driver "$plugin" "$version" ""
expect 0 doctor "$path"
stdout_has "$lib/deltafs/hdf5"
: >"$plugin"
solved "libh5fd_deltafs.so cannot be loaded: $plugin: file too short" "$again"
driver "$plugin" 0.0.1 ""
solved "libh5fd_deltafs.so is of version 0.0.1 of DeltaFS, not of $version" "$again"
driver "$plugin" "$version" "" "void missing(void); void f(void); void f(void) { missing(); }"
solved "undefined symbol: missing" "$again"
driver "$plugin" "$version" "" "#include <stdlib.h>
__attribute__((constructor)) static void die(void) { abort(); }"
solved "it ends the process that loads it" "$again"
driver "$plugin" "$version" "" "#include <stdlib.h>
__attribute__((constructor)) static void leave(void) { exit(0); }"
solved "it ends the process that loads it" "$again"
[ "$(grep -c '^program' "$work/out")" -eq 1 ] || fail "the child prints too: $(cat "$work/out")"
echo "int nothing;" >"$work/driver.c"
$compiler -shared -fPIC -o "$plugin" "$work/driver.c"
solved "libh5fd_deltafs.so is of another version of DeltaFS, not of $version" "$again"
real_plugin=$top_builddir/hdf5-vfd/.libs/libh5fd_deltafs.so
driver "$plugin" "$version" ""
[ ! -e "$real_plugin" ] || cp "$real_plugin" "$plugin"
expect 0 doctor "$path"
if ! nm -D --undefined-only "$top_builddir/.libs/libdeltafs.so" | grep -q __asan_init; then
    driver "$work/fork.so" "" "" "#include <errno.h>
int fork(void); int fork(void) { errno = EAGAIN; return -1; }"
    expect 3 env PATH="$path" LD_LIBRARY_PATH="$lib" LD_PRELOAD="$work/fork.so" "$bin/deltafs" doctor
    stdout_has "libh5fd_deltafs.so cannot be loaded: Resource temporarily unavailable"
fi

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
mv "$work/$fits/mpirun$ending" "$work/$fits/mpirun"
mv "$work/$fits/mpicc$ending" "$work/$fits/mpicc"

# The drivers of MPI-IO, for the version of the MPI that the test's own driver names.
path=$bin:$work/$fits:$work/$other:$work/plain
mpi=$(sed -n 's/^MPI  [^0-9]*\([0-9][0-9.]*\).*/\1/p' "$work/out")
if [ $fits = ompi ]; then
    drivers="mca_fs_deltafs.so mca_fbtl_deltafs.so mca_fcoll_deltafs.so"
    folder=$lib/deltafs/openmpi
else
    drivers=libdeltafs_romio.so
    folder=$lib
    again="rm $lib/libdeltafs_romio.so; scripts/build-romio-overlay --output $lib"
fi
mkdir -p "$folder"
for name in $drivers; do
    driver "$folder/$name" "$version" "$mpi"
done
expect 0 doctor "$path"
stdout_has "MPI-IO          $folder"
for name in $drivers; do
    : >"$folder/$name"
    solved "$name cannot be loaded: $folder/$name: file too short" "$again"
    driver "$folder/$name" "$version" "$mpi"
done
for other_mpi in "$mpi.1" "${mpi%?}"; do
    driver "$folder/$name" "$version" "$other_mpi"
    solved "$name was built for version $other_mpi of the MPI" "$again"
done
driver "$folder/$name" "$version" "$mpi"
if [ $fits = ompi ] && [ -e "$top_builddir/adio/ompio/.libs/mca_fs_deltafs.so" ]; then
    cp "$top_builddir"/adio/ompio/.libs/mca_*_deltafs.so "$folder/"
    expect 0 doctor "$path"
fi
# A library whose end is missing may raise a signal, of which MPI would print a stack.
again="make install   in the folder in which DeltaFS was built"
head -c 100000 "$lib/libdeltafs.so.0" >"$plugin"
solved "libh5fd_deltafs.so cannot be loaded: " "$again"
[ ! -s "$work/err" ] || fail "on standard error: $(cat "$work/err")"
expect 2 "$deltafs" doctor nonsense
exit 0
