#!/bin/sh
# Our own MPI-IO programs, which know nothing of DeltaFS, with the overlay preloaded: on plain files, and on deltafs: ones.
#
#     tests/adio/own.sh OVERLAY [SEEDS]      OVERLAY: libdeltafs_romio.so; SEEDS: how many runs of the random one (8)
set -u
overlay=$(realpath "$1")
seeds=${2:-8}
cd "$(dirname "$0")/../.."
mpicc=${MPICC:-$(command -v mpicc.mpich || echo mpicc)}
mpirun=${MPIEXEC:-$(command -v mpirun.mpich || echo mpirun)}
work=$(mktemp -d "${TMPDIR:-/tmp}/deltafs-adio.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

for program in adio_calls adio_random adio_threads; do
    "$mpicc" -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Wshadow -Wconversion -Werror -pthread \
        -o "$work/$program" "tests/adio/$program.c" || exit 1
done

# try NAME RANKS PROGRAM ARGUMENT...: with the overlay.
try() {
    name=$1
    ranks=$2
    shift 2
    if timeout -k 5 "${MPI_TIMEOUT:-120}" "$mpirun" -np "$ranks" -genv LD_PRELOAD "$overlay" "$@" >"$work/log" 2>&1 \
        </dev/null; then
        passed=$((passed + 1))
        return 0
    fi
    failed=$((failed + 1))
    echo "FAIL: $name"
    grep -v yaksa "$work/log" | head -n 10 | sed 's/^/    /'
    return 1
}

for ranks in 1 3; do
    mkdir "$work/plain" "$work/logical"
    try "calls, plain, $ranks ranks" $ranks "$work/adio_calls" "$work/plain"
    try "calls, deltafs, $ranks ranks" $ranks "$work/adio_calls" "deltafs:$work/logical" deltafs
    left=$(ls -A "$work/plain" "$work/logical" | grep -v ':$' | tr -d '\n')
    [ -z "$left" ] || {
        failed=$((failed + 1))
        echo "FAIL: left behind: $left"
    }
    rm -rf "$work/plain" "$work/logical"
done

for ranks in 1 3; do
    try "threads, $ranks ranks" $ranks "$work/adio_threads" "deltafs:$work/threads"
done

# An option that is too long to be shown as a hint.
schema=$(i=0 && while [ $i -lt 200 ]; do printf 'column%d:f4,' $i && i=$((i + 1)); done)
mkdir "$work/long"
try "a long option" 3 env DELTAFS_SCHEMA="${schema%,}" "$work/adio_calls" "deltafs:$work/long" deltafs

# Written by 3 ranks, and read by 1, 2 and 4. On plain files it says that the test is right.
facts() {
    find "$1" -printf '%P %s %T@ %m\n' | LC_ALL=C sort
}
seed=1
while [ $seed -le "$seeds" ]; do
    if [ $seed -le 2 ]; then
        try "random $seed, plain, write" 3 "$work/adio_random" write "$work/plain" "$work/image" $seed 12 &&
            try "random $seed, plain, read" 2 "$work/adio_random" read "$work/plain" "$work/image" $seed 12
    fi
    if try "random $seed, write" 3 "$work/adio_random" write "deltafs:$work/file" "$work/image" $seed 20; then
        facts "$work/file" >"$work/before"
        for ranks in 1 2 4; do
            try "random $seed, read by $ranks" $ranks "$work/adio_random" read "deltafs:$work/file" "$work/image" \
                $((seed + ranks)) 10
        done
        facts "$work/file" >"$work/after"
        cmp -s "$work/before" "$work/after" || {
            failed=$((failed + 1))
            echo "FAIL: reading has changed the file"
            diff "$work/before" "$work/after"
        }
    fi
    rm -rf "$work/file" "$work/plain"
    seed=$((seed + 1))
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
