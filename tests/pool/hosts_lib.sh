# For tests of pools on two hosts, h1 and h2, which two_hosts.sh makes on this machine. Sourced first: the rest of the
# test runs on h1. Each host has a /dev/shm of its own, where the servers have their folders.
. "$top_srcdir/tests/pool/pool_lib.sh"

is_mpich || skip "only MPICH's launcher is known here"
launcher=$(realpath "$top_srcdir/tests/mpi/host_launcher.sh")
if [ -z "${HOSTS_SECOND:-}" ]; then
    timeout -k 5 600 sh "$top_srcdir/tests/mpi/two_hosts.sh" "$work" sh "$0" 2>"$work/err"
    code=$?
    [ $code -ne 77 ] || skip "$(cat "$work/err")"
    cat "$work/err" >&2
    exit $code
fi

# mpich_finalize.c says why it must be loaded.
finalize=$(pwd)/.libs/libmpich_finalize.so
[ -e "$finalize" ] || fail "no $finalize"
export ASAN_OPTIONS="verify_asan_link_order=0:$ASAN_OPTIONS"
deltafs=$(realpath "$deltafs")
deltafs_mpi=$(realpath "$deltafs_mpi")
lost=$(pwd)/pool_lost
DELTAFS_POOL_DIR=/dev/shm/${work##*/}.pool
local=/dev/shm/${work##*/}.local
# launch HOSTS [OPTION...]: what starts ranks on these hosts in turn; $MPIEXEC is one of this machine.
one_host=$MPIEXEC
launch() {
    hosts=$1
    shift
    MPIEXEC="$one_host -launcher ssh -launcher-exec $launcher -hosts $hosts -ppn 1 -genv UCX_NET_DEVICES eth0 \
        -genv LD_PRELOAD $finalize $*"
}

# on HOST COMMAND...: there, in no folder in particular, for two minutes at most.
on() {
    host=$1
    shift
    timeout -k 5 120 sh "$launcher" "$host" "$@"
}

# hosts_start [OPTION...]: a server on each host; the options are those of the launcher.
hosts_start() {
    launch h1,h2 "$@"
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
