#!/bin/sh
# Parallel HDF5, as the distribution has it, through deltafs: names: written, added to and read back by several numbers
# of ranks, and as a plain file after `deltafs cp`.
#
#     tests/adio/hdf5.sh OVERLAY|FOLDER DELTAFS      as adio_lib.sh says
set -u
. "$(dirname "$0")/../support/adio_lib.sh"

# steps RANKS MODE FILE
steps() {
    run "$@" || fail "'$*' of $flavour"
}

build_hdf5 hdf5_parallel.c
steps 4 write "deltafs:$work/file.h5"
steps 2 add "deltafs:$work/file.h5"
steps 3 read "deltafs:$work/file.h5"
steps 1 read "deltafs:$work/file.h5"
"$deltafs" verify "$work/file.h5" || fail "verify"
"$deltafs" cp "deltafs:$work/file.h5" "$work/plain.h5" || fail "cp to a plain file"
steps 1 plain "$work/plain.h5"
steps 2 read "$work/plain.h5"
# And the reverse: a file that was written as a plain one.
steps 4 write "$work/other.h5"
steps 4 add "$work/other.h5"
"$deltafs" cp "$work/other.h5" "deltafs:$work/copy.h5" || fail "cp from a plain file"
steps 2 read "deltafs:$work/copy.h5"
if command -v h5diff >/dev/null; then
    h5diff "$work/plain.h5" "$work/other.h5" || fail "the files differ"
fi
# A file of a pool.
pool_start
steps 4 write "deltafs:$point/file.h5"
steps 2 add "deltafs:$point/file.h5"
steps 3 read "deltafs:$point/file.h5"
"$deltafs" pool drain "$point/file.h5" "$work/drained.h5" || fail "drain"
steps 1 plain "$work/drained.h5"
pool_stop
echo "parallel HDF5 with $flavour: written, added to, read, copied, in a pool: right"
