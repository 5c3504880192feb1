#!/bin/sh
# The driver against HDF5's own, side by side: seconds to write and to read 1 GiB in writes of 1 MiB, and to make many
# groups, in turns; medians, and their ratio.
#
#     time_hdf5.sh BUILD FOLDER [MIB GROUPS RUNS]     BUILD: a build folder with vfd_probe; FOLDER: for the files
set -eu
build=$(cd "$1" && pwd)
folder=$(cd "$2" && pwd)
mib=${3:-1024}
groups=${4:-20000}
runs=${5:-5}
work=$(mktemp -d "$folder/deltafs-time.XXXXXX")
trap 'rm -rf "$work"' EXIT
i=0
while [ $i -lt "$runs" ]; do
    i=$((i + 1))
    env -u HDF5_DRIVER "$build/vfd_probe" time "$work/plain.h5" "$mib" "$groups" >>"$work/plain"
    HDF5_DRIVER=deltafs HDF5_PLUGIN_PATH=$build/hdf5-vfd/.libs "$build/vfd_probe" time "$work/ours.h5" "$mib" "$groups" \
        >>"$work/ours"
    rm -rf "$work/plain.h5" "$work/ours.h5"
done
# median FILE COLUMN
median() {
    cut -d' ' -f"$2" "$work/$1" | sort -n | sed -n "$(((runs + 1) / 2))p"
}
column=0
for what in "write $mib MiB" "read $mib MiB" "make $groups groups"; do
    column=$((column + 1))
    awk -v what="$what" -v ours="$(median ours $column)" -v plain="$(median plain $column)" 'BEGIN {
        printf "%-22s deltafs %.3f s, sec2 %.3f s, ratio %.2f\n", what, ours, plain, ours / plain }'
done
