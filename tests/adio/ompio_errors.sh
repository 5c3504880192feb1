#!/bin/sh
# What goes wrong is said: a limit on the size of files, components that were left out, a name without a file.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/adio/ompio_lib.sh"

FILE_LIMIT=1 run 2 ./ompio_calls_test "$name" "$work"
grep -q 'MPI_File_close: .*file' "$work/out" || fail "an error of close is not printed"
rm -rf "$work/file"

# refused TEXT OPTION...
refused() {
    wanted=$1
    shift
    mpi 1 "$@" ./ompio_oracle "$name" 1 1 >"$work/out" 2>&1 && fail "$* opens a file"
    grep -qF -- "$wanted" "$work/out" || {
        cat "$work/out" >&2
        fail "no '$wanted' from $*"
    }
    [ ! -e "$work/file" ] || fail "$* makes a file"
}
refused 'Open MPI is set not to use the fcoll component deltafs' --mca fcoll vulcan
refused 'Open MPI is set not to use the fbtl component deltafs' --mca fbtl posix
refused 'NO_SUCH_FILE' --mca fs ufs
refused 'NO_SUCH_FILE' --mca mca_base_component_path "SYSTEM_DEFAULT:$work/nowhere"

# Named with the others, it is chosen for its files, and they for theirs.
run 2 --mca fcoll deltafs,vulcan,individual --mca fbtl deltafs,posix --mca fs deltafs,ufs ./ompio_oracle "$name" 2 2
# Without the prefix a name is the file's if the environment says so.
rm -rf "$work/file"
ROMIO_FSTYPE_FORCE=deltafs: run 2 ./ompio_oracle "$work/file" 3 2
[ -f "$work/file/MANIFEST" ] || fail "ROMIO_FSTYPE_FORCE has no effect"
