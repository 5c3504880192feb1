#!/bin/sh
# What the driver refuses, and how it says so; damage; and that nothing on disk makes the program crash.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/vfd_lib.sh"

printf '3 5 01020304\n3 6 05060708\n11 5 00000000\n' | "$put_records" dir schema=n:u4 || fail put_records
expect 0 vfd "$probe" make ours.h5
expect 0 "$probe" make plain.h5

why "there is no such file" nothing.h5
why "there is no such file" no/folder/file.h5
why "no such subfile: '7' in $(pwd)/dir" dir/7
why "no such subfile: 'MANIFEST' in $(pwd)/dir, whose keys are numbers" dir/MANIFEST
why "is only read through HDF5" dir write
why "is only read through HDF5" dir/5 write
why "SWMR" ours.h5 swmr
: >swmr.h5
expect 0 timeout 60 "$probe" swmr sec2.h5
expect 0 vfd timeout 60 "$probe" swmr swmr.h5
[ -f swmr.h5 ] || fail "an ordinary file was replaced"
expect 1 vfd "$probe" delete dir
expect 1 vfd "$probe" delete dir/5
expect 0 "$deltafs" verify dir

# The configuration: the same names everywhere, and a typo gets the valid ones.
for config in memory=64M 'memory=64M;sync=none' 'memory=64M sync=none  extents=flatten;' 'records=1K' ''; do
    expect 0 vfd env HDF5_DRIVER_CONFIG="$config" "$probe" why ours.h5
done
HDF5_DRIVER_CONFIG='memmory=64M' && export HDF5_DRIVER_CONFIG
why "no option 'memmory'; there are: block, codec" ours.h5
why "of the driver's own, records" ours.h5
HDF5_DRIVER_CONFIG='memory=much'
why "option memory: 'much' is not valid; it takes" ours.h5
HDF5_DRIVER_CONFIG='memory'
why "'memory' is not NAME=VALUE" ours.h5
for size in many -1 1X 99999999999G 18446744073709551616; do
    HDF5_DRIVER_CONFIG="records=$size"
    why "records takes a number of bytes" ours.h5
done
HDF5_DRIVER_CONFIG='key=id'
why "option key: 'id' is no path of datasets of IDs, such as /Step#*/id: it has no '/'" ours.h5 write
expect 0 vfd "$probe" why ours.h5
HDF5_DRIVER_CONFIG='key=id;schema=id:u8,x:f4' # of records, which other programs write
expect 0 vfd "$probe" why ours.h5 write
unset HDF5_DRIVER_CONFIG
DELTAFS_SYNC=never && export DELTAFS_SYNC
why "DELTAFS_SYNC" ours.h5
unset DELTAFS_SYNC

# An index of files' keys is a directory, too, but has no particles.
head -c 4800 /dev/zero >rows
expect 0 mpi 1 "$deltafs_mpi" index -q --schema id:u8,x:f8 --key id -o index.of rows
why "is an index of the keys in files" index.of
why "is an index of the keys in files" index.of/0
printf 'damage' | dd of=index.of/SOURCES bs=1 seek=20 conv=notrunc 2>/dev/null
why "index.of/SOURCES: damaged at" index.of
why "index.of/SOURCES: damaged at" index.of/0
rm -r rows index.of

# By these numbers h5py chooses its exceptions.
why "there is no such file (errno = 2)" missing.h5
mkdir other
: >other/file
why "(errno = 21)" other
rm -r other

# Damage has its file and offset.
damage() {
    cp -r "$1" "damaged.$1"
    victim=damaged.$1/$2
    size=$(wc -c <"$victim")
    printf '\377\376\375' | dd of="$victim" bs=1 seek=$((size * $3 / 100)) conv=notrunc 2>/dev/null
}
damage dir 00/p00000000.data 60
why "p00000000.data: damaged at offset" damaged.dir/5
rm -r damaged.dir
damage dir MANIFEST 60
why "MANIFEST" damaged.dir
why "MANIFEST" damaged.dir/5
rm -r damaged.dir
damage ours.h5 s00000000/w00000000.extents 20
why "w00000000.extents: damaged at offset" damaged.ours.h5
rm -r damaged.ours.h5
damage ours.h5 s00000000/w00000000.data 60
expect 1 vfd "$probe" read damaged.ours.h5 "large chunks"
grep -q "w00000000.data: damaged at offset" out || fail "a long read of what is damaged: $(cat out)"
rm -r damaged.ours.h5
damage ours.h5 s00000000/w00000000.data 0
why "w00000000.data" damaged.ours.h5
rm -r damaged.ours.h5

# Each failing call leaves a message of its own.
expect 1 vfd "$probe" none none.h5
stdout_has "a selection that cannot be counted"

# A logical file that goes away while it is opened: the first look at it is good.
fault=$top_builddir/.libs/libvfd_fault.so
[ -e "$fault" ] || fail "no $fault"
VFD_FAULT=fstat LD_PRELOAD=$fault && export VFD_FAULT LD_PRELOAD
why "it is gone" ours.h5
why "it is gone" ours.h5 write
# Short pieces go to the library together; and what is read with the gaps between must not fail for these.
VFD_FAULT=short
expect 0 vfd "$probe" vector vector.h5
VFD_FAULT=long
expect 0 vfd "$probe" sieve ours.h5
unset VFD_FAULT LD_PRELOAD
: >vector.plain
expect 0 vfd "$probe" vector vector.plain

# A file whose keys cannot be indexed, or that a dead program left, can be created again: HDF5 opens it, closes it, and cuts
# it when it opens it again; only the close of what was written tells of the keys.
DELTAFS_KEY=/arrays/contiguous && export DELTAFS_KEY
for time in first second; do
    expect 1 vfd "$probe" make keyed.h5
    says "H5Fclose(file) failed"
    says "its keys are not indexed"
done
expect 0 vfd "$probe" why keyed.h5 write
expect 0 vfd "$probe" die dead.h5
expect 0 vfd "$probe" flush dead.h5
DELTAFS_KEY='/none/*'
expect 0 vfd "$probe" die dead.h5
expect 0 vfd "$probe" make dead.h5
# The program's own error handler is what it was.
expect 0 vfd "$probe" handler handler.h5
# What has no columns takes no time.
DELTAFS_KEY='/step_*/id'
expect 0 vfd timeout 20 "$probe" lists lists.h5
expect 0 "$deltafs" get lists.h5 8
stdout_has 3
unset DELTAFS_KEY

# Locks, as HDF5's own driver has them.
vfd "$probe" why ours.h5 write >out || fail "cannot be opened again"
expect 0 vfd env HDF5_USE_FILE_LOCKING=TRUE "$probe" why ours.h5 write
exec 8<ours.h5
if flock -n 8 2>/dev/null; then
    HDF5_USE_FILE_LOCKING=TRUE && export HDF5_USE_FILE_LOCKING
    why "another program has it open" ours.h5 write
    HDF5_USE_FILE_LOCKING=FALSE
    expect 0 vfd "$probe" why ours.h5 write
    unset HDF5_USE_FILE_LOCKING
fi
exec 8<&-

# No byte of what is on disk, changed in any way, may crash the program.
hostile() {
    target=$1
    shift
    expect 0 vfd env HDF5_DRIVER_CONFIG=records=1M "$probe" hostile "$target" "${VFD_HOSTILE:-150}" "$@"
    cat out
}
find ours.h5 -type f >files
# shellcheck disable=SC2046
hostile ours.h5 $(cat files)
for made in any wide names; do
    cp -r "$corpus/$made" .
    find $made -type f >files
    # shellcheck disable=SC2046
    hostile $made $(cat files)
done
chmod -R u+w any
key=$("$deltafs" scan any --format csv | sed -n 2p | cut -d, -f1)
# shellcheck disable=SC2046
hostile any/"$key" $(find any -type f)
hostile plain.h5 plain.h5
