#!/bin/sh
# The deck for VPIC runs with a real VPIC: what DeltaFS stores of the tracers is what VPIC's own dump_particles writes of
# them, before a checkpoint and in a run that is restored from it.
#
#     make check TESTS=tests/examples/vpic_deck.sh VPIC_BUILD=DIR
#
# DIR is the folder in which VPIC was built (branch devel, with GLOBAL_PARTICLE_ID and the MPI of this DeltaFS).
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
[ -n "${VPIC_BUILD:-}" ] ||
    skip "VPIC_BUILD is not set to a build of VPIC, branch devel, with -DGLOBAL_PARTICLE_ID=ON and the same MPI"
[ -f "$VPIC_BUILD/bin/vpic" ] || fail "VPIC_BUILD=$VPIC_BUILD has no bin/vpic"
[ -e "$top_builddir/.libs/libdeltafs_mpi.so" ] || skip "there is no shared library"
! nm -D --undefined-only "$top_builddir/.libs/libdeltafs.so" | grep -q __asan_init || skip "built with sanitizers"

build=$(cd "$top_builddir" && pwd)
include=$(cd "$top_srcdir/include" && pwd)
deltafs=$build/deltafs
deltafs_mpi=$build/deltafs-mpi
cp "$top_srcdir/tests/examples/vpic_harris.cxx" "$top_srcdir/tests/examples/vpic_deltafs.h" "$work"
# VPIC's script compiles a deck with the flags that VPIC was configured with; add those of this build.
flags="-I$include -L$build/.libs -Wl,-rpath,$build/.libs -Wl,--no-as-needed -ldeltafs_mpi -ldeltafs -rdynamic"
sed "/^echo/!s|^\([^ ]*\) \(.*-DINPUT_DECK\)|\1 $flags \2|" "$VPIC_BUILD/bin/vpic" >"$work/vpic"
cd "$work" || exit 99
expect 0 bash ./vpic vpic_harris.cxx
harris=./vpic_harris.$(uname -s)

expect 0 mpi 2 "$harris" 30 10 files
mkdir files
mv ./*_tracer.* files
echo "num_step 50" >more
expect 0 mpi 2 "$harris" --restore checkpoint.20 --modify more
mv ./*_tracer.[45]0.* files

for species in electron ion; do
    import 2 -q --format vpic -o "$species" "files/${species}_tracer".*
    scan_sorted "$species" files.csv
    scan_sorted "${species}s" deltafs.csv
    same files.csv deltafs.csv "the tracers are others than those of dump_particles: $species"
    cut -d, -f 2 deltafs.csv | sort -n | uniq -c | awk '{ print $2, $1 }' >epochs
    printf '%s 1024\n' 0 10 20 30 40 50 >wanted
    same wanted epochs "not the tracers of each epoch: $species"
    [ "$(cut -d, -f 1,2 deltafs.csv | sort -u | wc -l)" -eq 6144 ] || fail "particle IDs are not unique: $species"
    expect 0 "$deltafs" verify --continuity "${species}s"
    expect 1 "$deltafs" select "${species}s" --where "x*x > 6.41*6.41 or y < -0.01 or y > 0.41 or z*z > 3.21*3.21"
    says "no records"
done
# Some go from one rank to the other.
[ "$(cut -d, -f 1,11 deltafs.csv | sort -u | wc -l)" -gt 1024 ] || fail "no ion changed its rank"
exit 0
