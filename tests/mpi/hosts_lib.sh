# For tests on two hosts, h1 and h2, which are made on this machine; after tests/support/mpi_lib.sh.
is_mpich || skip "only MPICH's launcher is known here"
launcher=$(realpath "$top_srcdir/tests/mpi/host_launcher.sh")

# mpich_finalize.c says why it must be loaded. It comes before the sanitizers, but has nothing that they would replace.
finalize=$(pwd)/.libs/libmpich_finalize.so
[ -e "$finalize" ] || fail "no $finalize"
export ASAN_OPTIONS="verify_asan_link_order=0:$ASAN_OPTIONS"

# rest_on_h1 COMMAND...: the test begins again there, by a command that makes the hosts, and its result is that of this one.
rest_on_h1() {
    "$@" sh "$0" 2>"$work/err"
    code=$?
    [ $code -ne 77 ] || skip "$(cat "$work/err")"
    cat "$work/err" >&2
    exit $code
}

# launch HOSTS RANKS [OPTION...]: from now on $MPIEXEC starts so many ranks on each of these hosts in turn.
# UCX looks for ways to the other host, and finds TCP over eth0: it can tell that memory there is out of reach. Only
# InfiniBand, if the machine has it, might be seen from both, were it not for UCX_NET_DEVICES.
one_host=$MPIEXEC
launch() {
    hosts=$1
    each=$2
    shift 2
    MPIEXEC="$one_host -launcher ssh -launcher-exec $launcher -hosts $hosts -ppn $each -genv UCX_NET_DEVICES eth0 \
        -genv LD_PRELOAD $finalize $*"
}

# on HOST COMMAND...: there, and in no folder in particular.
deltafs=$(realpath "$deltafs")
deltafs_mpi=$(realpath "$deltafs_mpi")
on() {
    timeout -k 5 300 sh "$launcher" "$@"
}
