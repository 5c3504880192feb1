#!/bin/sh
# Keys in the files of parallel HDF5, as the distribution has it: a program with the layout of h5bench's VPIC kernel, which
# knows nothing of DeltaFS, writes through deltafs: names, with the option key in the environment; each ID's rows are
# found, and the file is right.
#
#     tests/adio/hdf5_keys.sh OVERLAY|FOLDER DELTAFS      as adio_lib.sh says
set -u
. "$(dirname "$0")/../support/adio_lib.sh"
unset DELTAFS_KEY DELTAFS_INDEX

# right WHAT STEPS ROWS: each of ROWS IDs has its rows in the index that WHAT has.
right() {
    python3 "$here/hdf5_vpic.py" ids "$3" >"$work/ids"
    "$deltafs" get "$1" --keys "$work/ids" --format json >"$work/answers" || fail "get $1"
    python3 "$here/hdf5_vpic.py" check "$work/answers" "$2" "$3" || fail "$1: wrong rows"
    "$deltafs" verify "$1" || fail "verify $1"
}

build_hdf5 hdf5_vpic.c
file=$work/file.h5
export DELTAFS_KEY='/Timestep_*/id1'
for how in collective independent "collective 500" "independent 130"; do
    rm -rf "$file"
    # shellcheck disable=SC2086
    run 4 write "deltafs:$file" 3 1000 $how || fail "write, $how"
    right "$file" 3 4000
    # shellcheck disable=SC2086
    DELTAFS_KEY='' run 2 read "deltafs:$file" 3 2000 $how || fail "read, $how"
done
# A step more, by other ranks, in a second session; and into an index of its own.
run 2 add "deltafs:$file" 3 2000 collective || fail add
right "$file" 4 4000
DELTAFS_INDEX=$work/all run 3 write "deltafs:$work/first.h5" 5 200 collective || fail "an index"
right "$work/all" 5 600
[ ! -e "$work/first.h5/keys" ] || fail "the index is in two places"
"$deltafs" cp "deltafs:$file" "$work/plain.h5" || fail cp
DELTAFS_KEY='' run 1 read "$work/plain.h5" 4 4000 collective || fail "the plain file"
# A file that has no such datasets, or is none of HDF5's, is closed as ever.
DELTAFS_KEY='/Other_*/id' run 2 write "deltafs:$work/none.h5" 1 10 collective || fail "a file without keys"
[ ! -e "$work/none.h5/keys" ] || fail "an index of nothing"
DELTAFS_KEY='/Timestep_*/x' run 2 write "deltafs:$work/bad.h5" 1 10 collective >"$work/log" 2>&1 &&
    [ $flavour = mpich ] && fail "a key that is no integer was taken" # Open MPI's close only says so
grep -q "is no key: keys are integers" "$work/log" || fail "no reason: $(cat "$work/log")"
"$deltafs" verify "$work/bad.h5" || fail "a file whose keys cannot be indexed is not whole"
echo "keys of parallel HDF5 with $flavour: right"
