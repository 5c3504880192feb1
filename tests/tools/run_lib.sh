# Sourced by the tests of deltafs run, after lib.sh and cli_lib.sh: a folder of installed libraries, of which those that
# would be preloaded are empty files.
[ -e "$top_builddir/.libs/libdeltafs.so.0" ] || skip "there is no shared library"
unset HDF5_DRIVER HDF5_PLUGIN_PATH ROMIO_FSTYPE_FORCE OMPI_MCA_mca_base_component_path
unset DELTAFS_POSIX DELTAFS_POSIX_SYNC DELTAFS_POSIX_LABEL
for name in PMI_RANK PMIX_RANK OMPI_COMM_WORLD_RANK PALS_RANKID; do
    unset "$name"
done

work=$(cd "$work" && pwd -P)
lib=$work/usr/lib
mkdir -p "$lib" "$work/usr/bin"
cp -p "$top_builddir/.libs/deltafs" "$work/usr/bin/deltafs"
cp -P "$top_builddir"/.libs/libdeltafs.so* "$lib/"
deltafs=$work/usr/bin/deltafs
LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

# The complaint of the loader about a library that is an empty file is no error.
without_loader() {
    "$@" 2>"$work/said"
    got=$?
    grep -v 'ld.so: object' "$work/said" >&2
    return $got
}
has() {
    grep -qxF -- "$1" "$work/out" || fail "not set: $1; but: $(grep "^${1%%=*}=" "$work/out")"
}
has_not() {
    ! grep -q "^$1=" "$work/out" || fail "is set: $(grep "^$1=" "$work/out")"
}
