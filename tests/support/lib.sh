# Sourced by the shell tests. They run in the build folder's top; $top_srcdir and $top_builddir say where all is.
set -u

# A folder of the test's own, gone when it ends.
work=$(mktemp -d "${TMPDIR:-/tmp}/deltafs-test.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT

# Jobs of Open MPI make and remove one folder in TMPDIR, a job under another's feet: those of other tests have their own.
export TMPDIR="$work"

# Open MPI refuses root and more ranks than cores unless told otherwise.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_btl_vader_single_copy_mechanism=none

deltafs=$top_builddir/deltafs
deltafs_mpi=$top_builddir/deltafs-mpi

# mpi N COMMAND...: on N ranks, for two minutes at most.
mpi() {
    ranks=$1
    shift
    timeout -k 5 "${MPI_TIMEOUT:-120}" $MPIEXEC -np "$ranks" "$@"
}

# mpi_aborts N COMMAND...: the same for a job that ends by MPI_Abort; its ranks write their messages to $work/out themselves:
# of what a rank wrote just before, the launcher may lose some.
mpi_aborts() {
    n=$1
    shift
    : >"$work/out"
    # shellcheck disable=SC2016
    mpi "$n" sh -c 'exec "$@" >>"$0" 2>&1' "$work/out" "$@" 2>"$work/launcher"
}

# in_full WORD...: prints the words if TORTURE_TIMES asks for more cases than the quick tests have, as scripts/check full does.
in_full() {
    [ "${TORTURE_TIMES:-1}" -eq 1 ] || echo "$@"
}

skip() {
    echo "skipped: $*"
    exit 77
}

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# expect CODE COMMAND...: fails unless the command exits with CODE; its output goes to $work/out and $work/err.
expect() {
    wanted=$1
    shift
    "$@" >"$work/out" 2>"$work/err"
    got=$?
    if [ "$got" -ne "$wanted" ]; then
        cat "$work/out" "$work/err" >&2
        fail "exit code $got instead of $wanted: $*"
    fi
}

# says TEXT: fails unless the last expected command said TEXT on standard error.
says() {
    grep -qF -- "$1" "$work/err" || {
        cat "$work/err" >&2
        fail "no message with '$1'"
    }
}
