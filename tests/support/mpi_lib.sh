# Sourced by the scripts of this folder, after tests/lib.sh.

# What the MPI libraries leave allocated at their end is not ours. They are built without frame pointers: to know them,
# the whole stack of each allocation is needed.
export LSAN_OPTIONS="suppressions=$top_srcdir/tests/mpi/lsan.supp:print_suppressions=0:${LSAN_OPTIONS:-}"
export ASAN_OPTIONS="fast_unwind_on_malloc=0:${ASAN_OPTIONS:-}"

# check N COMMAND...: fails unless the command succeeds on N ranks.
check() {
    mpi "$@" || fail "exit code $? of '$2' on $1 ranks"
}

# fresh: empties the folder that programs write in, $data.
data=$work/data
fresh() {
    rm -rf "$data"
    mkdir "$data" || fail "no folder $data"
}

# has_sanitizers: whether the build has them.
has_sanitizers() {
    grep -q '^S\["SANITIZERS_TRUE"\]=""' "$top_builddir/config.status"
}

# is_mpich: whether the launcher is MPICH's.
is_mpich() {
    $MPIEXEC --version 2>/dev/null | grep -q HYDRA
}
