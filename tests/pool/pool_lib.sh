# For tests of pools, after tests/support/lib.sh: servers in the background.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

DELTAFS_POOL_DIR=$work/pool
export DELTAFS_POOL_DIR
point=$work/point
servers=
server_node= # before a server's command and
client_node= # a client's: puts it on a node of its own

pool_cleanup() {
    [ -z "$servers" ] || kill "$servers" 2>/dev/null
    wait
    rm -rf "$work"
}
trap pool_cleanup EXIT

# pool_apart: from now on each server is on its own node, and clients are on that of server 0. Fails if this user may not.
pool_apart() {
    "$top_srcdir/tests/support/pool-node" 0 2>/dev/null || return 1
    server_node="$top_srcdir/tests/support/pool-node rank"
    client_node="$top_srcdir/tests/support/pool-node 0"
}

# pool_start N [OPTION...]: N servers, which answer.
pool_start() {
    mkdir -p "$work/local"
    n=$1
    shift
    timeout -k 5 1500 $MPIEXEC -np "$n" $server_node "$deltafs_mpi" pool --dir "$work/local/%n" --mount "$point" --quiet "$@" &
    servers=$!
    $client_node "$deltafs" pool wait "$point" --timeout 30 || fail "the servers do not start"
}

# pool_stop [OPTION...]: they end with exit code 0, and leave nothing.
pool_stop() {
    $client_node "$deltafs" pool stop "$point" "$@" || fail "exit code $? of 'pool stop'"
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
