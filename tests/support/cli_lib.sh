# Sourced by the tests of the commands, after tests/lib.sh.
cli=$top_srcdir/tests/tools
put_records=$top_builddir/put_records
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
# Options in the caller's environment would change what is tested.
for name in block codec commit epoch extents hdf5 index index_by key keys layout lease memory old_label padding partitioner partitions progress read_cache read_threads route schema skip stats sync threads \
    value_size volumes; do
    unset "DELTAFS_$(echo $name | tr a-z A-Z)"
done
# What the MPI library itself leaves allocated is not ours.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=0}"

# The dumps of a real run; not part of a distribution.
real=${VPIC_HARRIS:-$top_srcdir/../shared/data/vpic-harris}

need_python() {
    [ -n "${PYTHON3:-}" ] || skip "python3 is missing"
}

# $python: one that has NumPy, VFD_PYTHON first; "" if none has it.
find_numpy() {
    python=
    for candidate in "${VFD_PYTHON:-}" "$PYTHON3" /usr/bin/python3; do
        [ -n "$python" ] || ! "$candidate" -c 'import numpy' 2>"$work/err" || python=$candidate
    done
}

oracle() {
    "$PYTHON3" "$cli/oracle.py" "$@"
}

# stdout_has TEXT: fails unless the last expected command wrote TEXT.
stdout_has() {
    grep -qF -- "$1" "$work/out" || {
        cat "$work/out" >&2
        fail "no output with '$1'"
    }
}

# same FILE FILE WHAT: fails unless the files are equal.
same() {
    cmp -s "$1" "$2" || {
        diff "$1" "$2" | head -20 >&2
        fail "$3"
    }
}

# import RANKS ARGUMENT...: on one rank without a launcher, as a user would on a login node. Open MPI then starts a
# daemon and looks for networks, which takes ten times as long as the import, unless told that it is alone.
import() {
    ranks=$1
    shift
    if [ "$ranks" -eq 1 ]; then
        OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self \
            timeout -k 5 "${MPI_TIMEOUT:-120}" "$deltafs_mpi" import "$@"
    else
        mpi "$ranks" "$deltafs_mpi" import "$@"
    fi
}

# scan_sorted DIR FILE: all records as CSV lines, sorted, without the header.
scan_sorted() {
    "$deltafs" scan "$1" --format csv >"$work/scan" 2>"$work/err" || fail "scan $1: $(cat "$work/err")"
    sed 1d "$work/scan" | sort >"$2"
}
