#!/bin/sh
# The driver against HDF5's own, side by side: to write 1 GiB in writes of 1 MiB, to have that on storage, to read it from
# storage and once more from memory, and to make many groups. In turns; medians of wall and of processor seconds, and
# their ratios.
#
#     time_hdf5.sh BUILD FOLDER [MIB GROUPS RUNS]     BUILD: a build folder with vfd_probe; FOLDER: for the files
set -eu
build=$(cd "$1" && pwd)
folder=$(cd "$2" && pwd)
mib=${3:-1024}
groups=${4:-100000}
runs=${5:-5}
work=$(mktemp -d "$folder/deltafs-time.XXXXXX")
trap 'rm -rf "$work"' EXIT
i=0
while [ $i -lt "$runs" ]; do
    i=$((i + 1))
    env -u HDF5_DRIVER "$build/vfd_probe" time "$work/plain.h5" "$mib" "$groups" >>"$work/plain"
    rm -rf "$work/plain.h5"
    HDF5_DRIVER=deltafs HDF5_PLUGIN_PATH=$build/hdf5-vfd/.libs "$build/vfd_probe" time "$work/ours.h5" "$mib" "$groups" \
        >>"$work/ours"
    rm -rf "$work/ours.h5"
done
# median FILE WHAT COLUMN
median() {
    awk -v what="$2" -v column="$3" '$1 == what { print $column }' "$work/$1" | sort -n | sed -n "$(((runs + 1) / 2))p"
}
printf '%-12s %26s   %26s\n' "" "wall seconds" "processor seconds"
printf '%-12s %8s %8s %8s   %8s %8s %8s\n' "" deltafs sec2 ratio deltafs sec2 ratio
for what in write settle cold-read read groups; do
    printf '%-12s ' $what
    for column in 2 3; do
        awk -v ours="$(median ours $what $column)" -v plain="$(median plain $what $column)" 'BEGIN {
            printf "%8.3f %8.3f %8.2f   ", ours, plain, (plain > 0 ? ours / plain : 0) }'
    done
    echo
done
