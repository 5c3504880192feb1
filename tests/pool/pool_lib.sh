# For tests of pools, after tests/support/lib.sh: servers in the background.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

DELTAFS_POOL_DIR=$work/pool
export DELTAFS_POOL_DIR
point=$work/point
servers=

pool_cleanup() {
    [ -z "$servers" ] || kill "$servers" 2>/dev/null
    wait
    rm -rf "$work"
}
trap pool_cleanup EXIT

# pool_start N [OPTION...]: N servers, which answer.
pool_start() {
    mkdir -p "$work/local"
    n=$1
    shift
    timeout -k 5 1500 $MPIEXEC -np "$n" "$deltafs_mpi" pool --dir "$work/local/%n" --mount "$point" --quiet "$@" &
    servers=$!
    "$deltafs" pool wait "$point" --timeout 30 || fail "the servers do not start"
}

# pool_stop: they end with exit code 0, and leave nothing.
pool_stop() {
    "$deltafs" pool stop "$point" || fail "exit code $? of 'pool stop'"
    wait "$servers" || fail "exit code $? of the servers"
    servers=
    [ -z "$(ls -A "$work/local" "$DELTAFS_POOL_DIR" | grep -v ':$')" ] || fail "the servers left files"
}

# server_pids: the process numbers of the servers; the launcher has the same arguments.
server_pids() {
    for pid in $(pgrep -f -- "--dir $work/local/"); do
        case $(readlink "/proc/$pid/exe") in *deltafs-mpi) echo "$pid" ;; esac
    done
}
