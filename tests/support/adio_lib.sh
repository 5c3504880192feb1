# Sourced by scripts that run a program with DeltaFS in the MPI-IO of an MPI as it is installed:
#
#     SCRIPT OVERLAY DELTAFS      OVERLAY: libdeltafs_romio.so, for MPICH
#     SCRIPT FOLDER DELTAFS       FOLDER: of the components for Open MPI
#
# DELTAFS is the command. They get $here (this folder), $driver, $deltafs, $flavour (mpich or openmpi), and $work, a folder
# that goes at the end.
script=tests/adio/$(basename "$0")
[ $# -eq 2 ] || {
    echo "usage: $script OVERLAY|FOLDER DELTAFS" >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
driver=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
deltafs=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
work=$(mktemp -d "${TMPDIR:-/tmp}/deltafs-adio.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
# Jobs of Open MPI make and remove one folder in TMPDIR, a job under another's feet.
export TMPDIR="$work"
flavour=mpich
[ ! -d "$driver" ] || flavour=openmpi

fail() {
    echo "$script: $*" >&2
    [ ! -e "$work/err" ] || head -n 20 "$work/err" >&2
    exit 1
}

# pool_start: servers of a pool at $work/point; pool_stop: they leave nothing.
export DELTAFS_POOL_DIR="$work/pool"
point=$work/point
pool_start() {
    mkdir "$work/local"
    "mpirun.$flavour" $([ $flavour = mpich ] || echo --oversubscribe --allow-run-as-root) -np 2 \
        timeout -k 5 600 "${deltafs}-mpi" pool --dir "$work/local/%n" --mount "$point" --quiet &
    servers=$!
    "$deltafs" pool wait "$point" --timeout 30 || fail "the pool does not start"
}
pool_stop() {
    "$deltafs" pool stop "$point" && wait "$servers" || fail "the pool does not end"
    [ ! -e "$point" ] || fail "something is in the file system: $(ls -aR "$point")"
}

# build SOURCE: $work/program.
build() {
    "mpicc.$flavour" -O1 "$here/$1" -o "$work/program" || fail "$1 does not build"
}

# build_hdf5 SOURCE: with the distribution's parallel HDF5 (scripts/install-packages hdf5).
build_hdf5() {
    "mpicc.$flavour" -O1 "-I/usr/include/hdf5/$flavour" "-I$here/../support" "$here/$1" -o "$work/program" \
        "-L/usr/lib/$(gcc -print-multiarch)/hdf5/$flavour" -lhdf5 || fail "$1 does not build"
}

# run RANKS ARGUMENT...: the program, with DeltaFS in its MPI-IO.
run() {
    ranks=$1
    shift
    if [ $flavour = mpich ]; then
        timeout -k 5 240 mpirun.mpich -np "$ranks" -genv LD_PRELOAD "$driver" "$work/program" "$@"
    else
        OMPI_MCA_mca_base_component_path="SYSTEM_DEFAULT:$driver" OMPI_MCA_mpi_yield_when_idle=1 \
            OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            timeout -k 5 240 mpirun.openmpi --oversubscribe -np "$ranks" "$work/program" "$@"
    fi
}
