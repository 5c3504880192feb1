#!/bin/sh
# MPI-IO with the prefix deltafs: on files of a pool, without `deltafs run`.
#
#     tests/adio/pool.sh OVERLAY|FOLDER DELTAFS      as adio_lib.sh says
set -u
. "$(dirname "$0")/../support/adio_lib.sh"

# try RANKS ARGUMENT...
try() {
    run "$@" >"$work/err" 2>&1 || fail "'$*' of $flavour"
}

pool_start
build ../pool/pool_mpiio.c
for ranks in 1 3; do
    try $ranks "deltafs:$point"
done
if [ $flavour = mpich ]; then
    build adio_calls.c
    for ranks in 1 3; do
        try $ranks "deltafs:$point" pool
    done
fi
build adio_random.c
for seed in 1 2 3; do
    try 3 write "deltafs:$point/random$seed" "$work/image" $seed 20
    for ranks in 1 2 4; do
        try $ranks read "deltafs:$point/random$seed" "$work/image" $((seed + ranks)) 10
    done
done
build adio_threads.c
[ $flavour = openmpi ] || try 3 "deltafs:$point/threads"
pool_stop
echo "files of a pool by MPI-IO with $flavour: right"
