#!/bin/sh
# deltafs run --hdf5: a parallel HDF5 program that dumps as VPIC does writes logical files, which are indexed; above and
# below the launcher. Under MPICH this needs libdeltafs_romio.so beside libdeltafs.so (scripts/build-romio-overlay --output).
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/vfd_lib.sh"
unset HDF5_PLUGIN_PATH ROMIO_FSTYPE_FORCE OMPI_MCA_mca_base_component_path
LD_LIBRARY_PATH=$top_builddir/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
[ -e "$top_builddir/.libs/libdeltafs_romio.so" ] || [ -e "$top_builddir/adio/ompio/.libs/mca_fs_deltafs.so" ] ||
    skip "there is no libdeltafs_romio.so"
tracers=$top_builddir/vfd_tracers

# right FILE STEP SPECIES PARTICLES: each particle of the species has one row, and it is right.
right() {
    first=$(($3 * 1000000 + 1))
    seq $first $((first + $4 - 1)) >ids
    expect 0 "$deltafs" get "$1" --keys ids --format csv
    awk -F, -v step="$2" -v n="$4" 'NR > 1 && ($2 != step || $3 != $1 + step || $4 != step) { exit 1 }
        END { exit NR != n + 1 }' out || fail "$1: $(head -n 5 out)"
}

mkdir w && cd w || exit 99
expect 0 "$deltafs" run --hdf5 --key '/Step#*/*/q' --padding 0 -- timeout -k 5 120 $MPIEXEC -np 2 "$tracers" above 480 100
is_logical above/T.480/tracers.h5p
expect 0 mpi 3 "$deltafs" run --hdf5 --key '/Step#*/*/q' --padding 0 --index all -- "$tracers" below 960 50
is_logical below/T.960/tracers.h5p
cd ..
[ "$(ls w)" = "above
all
below" ] || fail "folders: $(ls w)"
for kind in 0 1; do
    right w/above/T.480/tracers.h5p 480 $kind 200
    right w/all 960 $kind 150
done
# Each species is indexed once, although the file is closed twice for each.
for index in w/above/T.480/tracers.h5p/keys w/all; do
    [ "$(grep -c '^Epoch ' $index/MANIFEST)" -eq 2 ] || fail "$index: indexed again"
done
for what in w/above/T.480/tracers.h5p w/all; do
    expect 0 "$deltafs" verify $what
    expect 1 "$deltafs" get $what 0
done
expect 0 "$deltafs" run --hdf5 -- "$probe" digest w/above/T.480/tracers.h5p
# Once more, into the file that is there; the rows that were there are replaced.
expect 0 "$deltafs" run --hdf5 --key '/Step#*/*/q' -- timeout -k 5 120 $MPIEXEC -np 2 "$tracers" w/above 480 40
right w/above/T.480/tracers.h5p 480 1 80
expect 0 "$deltafs" get w/above/T.480/tracers.h5p 0 --format csv
[ "$(wc -l <out)" -eq 81 ] || fail "padding without padding=0: $(wc -l <out) lines"
expect 0 "$deltafs" verify w/above/T.480/tracers.h5p
exit 0
