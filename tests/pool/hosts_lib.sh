# For tests of pools on two hosts, h1 and h2, which two_hosts.sh makes on this machine. Sourced first: the rest of the
# test runs on h1. Each host has a /dev/shm of its own, where the servers have their folders.
. "$top_srcdir/tests/pool/pool_lib.sh"
. "$top_srcdir/tests/mpi/hosts_lib.sh"
[ -n "${HOSTS_SECOND:-}" ] || rest_on_h1 timeout -k 5 600 sh "$top_srcdir/tests/mpi/two_hosts.sh" "$work"

lost=$(pwd)/pool_lost
DELTAFS_POOL_DIR=/dev/shm/${work##*/}.pool
local=/dev/shm/${work##*/}.local

# hosts_start [OPTION...]: a server on each host; the options are those of the launcher.
hosts_start() {
    launch h1,h2 1 "$@"
    for host in h1 h2; do
        on $host ls -A /dev/shm >"$work/shm.$host"
    done
    timeout -k 5 500 $MPIEXEC -np 2 "$deltafs_mpi" pool --dir "$local" --mount "$point" --quiet 2>"$work/servers" &
    servers=$!
    for host in h1 h2; do
        on $host "$deltafs" pool wait "$point" --timeout 30 || fail "no server on $host: $(cat "$work/servers")"
    done
}

# nothing_left HOST: of the server that was there, but an empty folder for the next one.
nothing_left() {
    on "$1" rmdir "$DELTAFS_POOL_DIR" || fail "the server on $1 left files in $DELTAFS_POOL_DIR"
    on "$1" ls -A /dev/shm | diff "$work/shm.$1" - || fail "the server on $1 left files"
}

# server_on HOST: its process number.
server_on() {
    for pid in $(pgrep -f -- "--dir $local"); do
        case $(readlink "/proc/$pid/exe") in
        *deltafs-mpi) [ "$(nsenter -t "$pid" --uts hostname)" != "$1" ] || echo "$pid" ;;
        esac
    done
}
