#!/bin/sh
# Parallel HDF5 programs that set the driver themselves: what some ranks write, others read, and one process, too.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/vfd_lib.sh"
parallel=$top_builddir/vfd_parallel

expect 0 mpi 3 "$parallel" mpio plain.h5 write
for ranks in 1 2 3; do
    rm -rf ours.h5
    [ $ranks -ne 2 ] || export VFD_SELECTION=yes
    expect 0 mpi $ranks "$parallel" deltafs ours.h5 write
    is_logical ours.h5
    expect 0 mpi $ranks "$parallel" deltafs ours.h5 read
    expect 0 vfd "$probe" digest ours.h5
    [ $ranks -ne 3 ] || cp out digest
    expect 0 "$deltafs" verify ours.h5
    [ $ranks -ne 2 ] || unset VFD_SELECTION
done
expect 0 "$probe" digest plain.h5
same digest out "values differ from those that were written by MPI-IO"

# An ordinary file is served as it is; and others' files are read.
expect 0 mpi 3 "$parallel" deltafs plain.h5 read
expect 0 mpi 3 "$parallel" deltafs plain.h5 write
[ -f plain.h5 ] || fail "an ordinary file was replaced"
expect 0 "$probe" digest plain.h5
same digest out "an ordinary file that was written through the driver"

# Hints.
expect 0 mpi 2 "$parallel" deltafs hint.h5 write deltafs_extents=flatten
expect 0 mpi 2 "$parallel" deltafs hint.h5 read deltafs_atomic=no
# Without atomic mode values win over the fill of their chunks, and metadata that is written collectively is right.
for ranks in 2 3; do
    expect 0 mpi $ranks "$parallel" deltafs once.h5 once deltafs_atomic=no
done
mpi_aborts 2 "$parallel" deltafs hint.h5 read deltafs_indeks=flatten && fail "a wrong hint was taken"
grep -q "no option 'indeks'" out || fail "a wrong hint: $(cat out launcher)"
mpi_aborts 2 "$parallel" deltafs nothing.h5 read && fail "what is not there was opened"

# try RANKS FILE CALLS [HINT]: what the ranks print goes to lines; fails if they hang.
try() {
    n=$1
    shift
    MPI_TIMEOUT=30 mpi "$n" env ${VFD_FAULT:+LD_PRELOAD="$fault"} "$parallel" deltafs "$@" >lines 2>err ||
        fail "$*: $? $(cat lines err)"
}
# all N TEXT: so many lines have it.
all() {
    got=$(grep -cF -- "$2" lines)
    [ "$got" -eq "$1" ] || fail "$got lines, not $1, have '$2': $(cat lines err)"
}
fault=$top_builddir/.libs/libvfd_fault.so
[ -e "$fault" ] || fail "no $fault"

# A folder that is there, and empty, is opened by all together, too.
mkdir empty.h5
expect 0 mpi 3 "$parallel" deltafs empty.h5 write
is_logical empty.h5
expect 0 vfd "$probe" digest empty.h5
same digest out "written into an empty folder"
mkdir none.h5
try 2 none.h5 open
all 2 "an empty folder"

# What fails on one rank fails on all, each of which says why.
VFD_FAULT=1:stat && export VFD_FAULT
try 3 fault.h5 create
all 3 "open"
all 3 "close"
all 6 ": ok"
for rank in 0 2; do
    VFD_FAULT=$rank:name
    try 3 "$(pwd)/ours.h5" open
    all 3 "ours.h5: no memory"
    all 2 "(rank $rank)"
done
VFD_FAULT=0:resize
try 3 resize.h5 create
all 3 ": ok"
all 3 ": failed: deltafs: "
VFD_FAULT=1:size
try 3 size.h5 create
all 6 ": ok"
unset VFD_FAULT
# In collective transfers, however HDF5 makes them; of chunks with checksums, a part is read before it is written.
try 3 parts.h5 parts
all 15 ": ok"
for how in "" VFD_SELECTION=yes VFD_CHUNKS=yes; do
    [ -z "$how" ] || export "${how?}"
    VFD_FAULT=1:reads && export VFD_FAULT
    try 3 parts.h5 read-parts
    all 9 ": failed: deltafs"
    all 6 "(rank 1)"
    all 6 ": ok"
    try 3 parts.h5 write-parts
    all 3 ": failed: deltafs"
    all 2 "(rank 1)"
    all 12 ": ok"
    VFD_FAULT=1:writes
    try 3 parts.h5 write-parts
    all 9 "(errno = 28)"
    all 6 "(rank 1)"
    all 6 ": ok"
    unset VFD_FAULT
    try 3 parts.h5 write-parts
    all 15 ": ok"
    expect 0 "$deltafs" verify parts.h5
    unset VFD_SELECTION VFD_CHUNKS
done
VFD_FAULT=1:writes && export VFD_FAULT
try 3 unfilled.h5 parts
all 6 "(errno = 28)"
# Heaps, which HDF5 writes as it does values, are metadata: see below.
try 3 heaps.h5 heaps
all 3 ": ok"
all 6 "(errno = 28)"
all 4 "(rank 1)"
unset VFD_FAULT
# Metadata that one rank cannot write: HDF5 would leave the others waiting, so that the next flush and the close tell it.
VFD_FAULT=1:full && export VFD_FAULT
try 3 full.h5 groups
all 3 ": ok"
all 9 "(errno = 28)"
all 6 "(rank 1)"
try 3 full.h5 metadata
all 1 "values 1: failed: "
all 1 "what was to be written is to be read"
all 0 "read 1: ok"
all 13 ": ok"
for what in truncate flush close; do
    all 3 "$what"
done
all 11 "(errno = 28)"
unset VFD_FAULT
try 3 full.h5 metadata
all 24 ": ok"
try 3 full.h5 groups
all 12 ": ok"
try 3 heaps.h5 heaps
all 9 ": ok"
try 3 nowhere/ours.h5 create
all 3 "open"
all 3 "nowhere"

# One rank's hint is another's: rank 0's counts; and one that is not valid is an error of all.
for hint in 0:deltafs_atomic=no 1:deltafs_atomic=no deltafs_atomic=yes; do
    try 3 hinted.h5 create $hint
    all 6 ": ok"
done
for hint in deltafs_atomic=off 1:deltafs_atomic=0 0:deltafs_atomic=nooooooooo; do
    try 3 hinted.h5 create $hint
    all 3 "is not valid; it takes no or yes"
done

# A directory's subfile is made once, and has the same on all ranks.
printf '1 5 01020304\n' | "$put_records" dir || fail put_records
VFD_FAULT=1:dir && export VFD_FAULT
try 3 dir/5 open
all 3 "dataset"
all 9 ": ok"
VFD_FAULT=0:dir
try 3 dir/5 open
all 3 "open"
all 3 "failed: deltafs"
unset VFD_FAULT

# All remove a file together, or have the reason why not.
cp plain.h5 removed.h5
for file in removed.h5 fault.h5; do
    try 3 $file delete
    all 3 "ok"
    [ ! -e $file ] || fail "$file is still there"
done
try 3 dir/5 delete
all 3 "is not removed through HDF5"
[ -d dir ] || fail "a directory was removed"

# What is for MPI-IO's files alone.
try 2 ours.h5 atomicity
all 2 ": failed: MPI_File_set_atomicity"
all 2 "close"
try 2 ours.h5 control
all 12 ": ok"
all 10 "without a place for its answer"

# The keys of particles are indexed when the file is closed.
DELTAFS_KEY='/Timestep_*/id1'
export DELTAFS_KEY
"$PYTHON3" "$top_srcdir/tests/adio/hdf5_vpic.py" ids 900 >ids
for how in collective independent "collective 70"; do
    rm -rf vpic.h5
    # shellcheck disable=SC2086
    expect 0 mpi 3 "$top_builddir/vfd_vpic" write vpic.h5 4 300 $how
    is_logical vpic.h5
    expect 0 "$deltafs" get vpic.h5 --keys ids --format json
    mv out answers
    expect 0 "$PYTHON3" "$top_srcdir/tests/adio/hdf5_vpic.py" check answers 4 900
    expect 0 "$deltafs" verify vpic.h5
done
# What one rank has changed is indexed by all.
try 3 vpic.h5 change
all 6 ": ok"
expect 0 "$deltafs" get vpic.h5 999999999
DELTAFS_KEY='/Timestep_*/x'
mpi_aborts 2 "$top_builddir/vfd_vpic" write wrong.h5 1 100 collective && fail "a key that is no integer was taken"
grep -q "is no key: keys are integers" out || fail "no reason: $(cat out launcher)"
# That does not keep it from being created again.
try 2 wrong.h5 create
all 4 ": ok"
exit 0
