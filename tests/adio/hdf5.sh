#!/bin/sh
# Parallel HDF5, as the distribution has it, through deltafs: names: written, added to and read back by several numbers
# of ranks, and as a plain file after `deltafs cp`.
#
#     tests/adio/hdf5.sh OVERLAY DELTAFS      OVERLAY: libdeltafs_romio.so, for MPICH
#     tests/adio/hdf5.sh FOLDER DELTAFS       FOLDER: of the components for Open MPI
#
# DELTAFS is the command. HDF5's packages must be there (scripts/install-packages hdf5).
set -u
[ $# -eq 2 ] || {
    echo "usage: tests/adio/hdf5.sh OVERLAY|FOLDER DELTAFS" >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
driver=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
deltafs=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
work=$(mktemp -d "${TMPDIR:-/tmp}/deltafs-hdf5.XXXXXX")
trap 'rm -rf "$work"' EXIT
flavour=mpich
[ ! -d "$driver" ] || flavour=openmpi

# run RANKS MODE FILE: the program, with DeltaFS in its MPI-IO.
run() {
    ranks=$1
    shift
    if [ $flavour = mpich ]; then
        timeout -k 5 240 mpirun.mpich -np "$ranks" -genv LD_PRELOAD "$driver" "$work/program" "$@"
    else
        OMPI_MCA_mca_base_component_path="$driver:SYSTEM_DEFAULT" OMPI_MCA_mpi_yield_when_idle=1 \
            OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            timeout -k 5 240 mpirun.openmpi --oversubscribe -np "$ranks" "$work/program" "$@"
    fi || {
        echo "hdf5.sh: '$*' on $ranks ranks of $flavour failed" >&2
        exit 1
    }
}

"mpicc.$flavour" -O1 "-I/usr/include/hdf5/$flavour" "$here/hdf5_parallel.c" -o "$work/program" \
    "-L/usr/lib/$(gcc -print-multiarch)/hdf5/$flavour" -lhdf5 || exit 1
run 4 write "deltafs:$work/file.h5"
run 2 add "deltafs:$work/file.h5"
run 3 read "deltafs:$work/file.h5"
run 1 read "deltafs:$work/file.h5"
"$deltafs" verify "$work/file.h5" || exit 1
"$deltafs" cp "deltafs:$work/file.h5" "$work/plain.h5" || exit 1
run 1 plain "$work/plain.h5"
run 2 read "$work/plain.h5"
# And the reverse: a file that was written as a plain one.
run 4 write "$work/other.h5"
run 4 add "$work/other.h5"
"$deltafs" cp "$work/other.h5" "deltafs:$work/copy.h5" || exit 1
run 2 read "deltafs:$work/copy.h5"
if command -v h5diff >/dev/null; then
    h5diff "$work/plain.h5" "$work/other.h5" || exit 1
fi
echo "parallel HDF5 with $flavour: written, added to, read, copied: right"
