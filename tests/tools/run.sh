#!/bin/sh
# deltafs run: what it sets for a program, from a folder of installed libraries (which are empty files here), and what it
# says if something is missing.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/tools/run_lib.sh"

run() {
    without_loader "$deltafs" run --hdf5 "$@"
}

# ---- What is missing

expect 3 run -- env
says "$lib/deltafs/hdf5/libh5fd_deltafs.so is missing"
says "--with-hdf5"
mkdir -p "$lib/deltafs/hdf5"
: >"$lib/deltafs/hdf5/libh5fd_deltafs.so"
# A build without MPI.
expect 0 run -- env
has "HDF5_DRIVER=deltafs"
has "HDF5_PLUGIN_PATH=$lib/deltafs/hdf5"
has_not ROMIO_FSTYPE_FORCE
has_not DELTAFS_KEY
expect 3 "$deltafs" run --mpiio -- env
says "--mpiio: this DeltaFS was built without MPI"
: >"$lib/libdeltafs_mpi.so.0"
expect 3 run -- env
says "$lib/libdeltafs_romio.so is missing"
says "scripts/build-romio-overlay --output $lib"

# ---- MPICH

: >"$lib/libdeltafs_romio.so"
expect 0 run --key '/Step#*/*/q' --index all -- env
has "HDF5_DRIVER=deltafs"
has "HDF5_PLUGIN_PATH=$lib/deltafs/hdf5"
has "ROMIO_FSTYPE_FORCE=deltafs:"
has "LD_PRELOAD=$lib/libdeltafs_romio.so"
has "DELTAFS_KEY=/Step#*/*/q"
has "DELTAFS_INDEX=all"
has_not OMPI_MCA_mca_base_component_path
has_not DELTAFS_MEMORY
# What was set stays, and other options go the same way.
HDF5_PLUGIN_PATH=/filters LD_PRELOAD=/lib/other.so DELTAFS_SYNC=close
export HDF5_PLUGIN_PATH LD_PRELOAD DELTAFS_SYNC
expect 0 run --memory 64M -- env 2>/dev/null
unset LD_PRELOAD
has "HDF5_PLUGIN_PATH=$lib/deltafs/hdf5:/filters"
has "LD_PRELOAD=/lib/other.so:$lib/libdeltafs_romio.so"
has "DELTAFS_SYNC=close"
has "DELTAFS_MEMORY=64M"
unset HDF5_PLUGIN_PATH DELTAFS_SYNC
expect 0 run --sync -- env
has "DELTAFS_SYNC=close"
# A library that is preloaded already is not preloaded twice, and MPI-IO needs no HDF5.
LD_PRELOAD="/lib/other.so $lib/libdeltafs_romio.so"
export LD_PRELOAD
expect 0 "$deltafs" run --mpiio -- env
unset LD_PRELOAD
has "LD_PRELOAD=/lib/other.so $lib/libdeltafs_romio.so"
has "ROMIO_FSTYPE_FORCE=deltafs:"
has_not HDF5_DRIVER

# Logical files are files for all calls, if the library for that is there. It does not matter what starts what.
: >"$lib/libdeltafs_posix.so"
expect 0 without_loader "$deltafs" run --mpiio -- "$deltafs" run --hdf5 -- env
has "DELTAFS_POSIX=logical=/=/"
has "LD_PRELOAD=$lib/libdeltafs_romio.so:$lib/libdeltafs_posix.so"
expect 0 without_loader "$deltafs" run --mpiio -- "$deltafs" run --mount "/m=$work/ns" -- env
has "DELTAFS_POSIX=logical=/=/|namespace=/m=$work/ns"
expect 0 without_loader "$deltafs" run --mount "/m=$work/ns" -- "$deltafs" run --mpiio -- env
has "DELTAFS_POSIX=namespace=/m=$work/ns|logical=/=/"
rm "$lib/libdeltafs_posix.so"

# ---- Open MPI

mkdir "$lib/deltafs/openmpi"
: >"$lib/deltafs/openmpi/mca_fs_deltafs.so"
expect 0 run -- env
has "OMPI_MCA_mca_base_component_path=SYSTEM_DEFAULT:$lib/deltafs/openmpi"
has "ROMIO_FSTYPE_FORCE=deltafs:"
has_not LD_PRELOAD
OMPI_MCA_mca_base_component_path=/mine:SYSTEM_DEFAULT
export OMPI_MCA_mca_base_component_path
expect 0 run -- env
has "OMPI_MCA_mca_base_component_path=/mine:SYSTEM_DEFAULT:$lib/deltafs/openmpi"
unset OMPI_MCA_mca_base_component_path

# ---- The command

expect 7 run -- sh -c 'exit $1' sh 7
expect 3 run -- /nowhere/program
says "/nowhere/program cannot be started: No such file or directory"
expect 2 run
says "COMMAND is missing, behind --"
expect 2 "$deltafs" run -- env
says "give --mount, --pool, --particles, --hdf5 or --mpiio"
expect 2 run env -u HOME
says "unknown option '-u'"
expect 2 run --key q -- env
says "--key: 'q' has no '/': give the path of the HDF5 datasets with the IDs, such as '/q'"
expect 2 run --memory lots -- env
says "option memory"
exit 0
