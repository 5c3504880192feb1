#!/bin/sh
# A job on two hosts, which are made on this machine: between them is a network and nothing else.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"
. "$top_srcdir/tests/mpi/hosts_lib.sh"

sh "$top_srcdir/tests/mpi/two_hosts.sh" "$work" true 2>"$work/err"
case $? in
0) ;;
77) skip "$(cat "$work/err")" ;;
*)
    cat "$work/err" >&2
    fail "two_hosts.sh"
    ;;
esac

# The hosts are there as long as a job.
launch h1,h2 2
two_hosts="sh $top_srcdir/tests/mpi/two_hosts.sh $work $MPIEXEC"

# sent AT-LEAST: fails unless that many bytes have gone through the network in the last job.
sent() {
    bytes=$(cat "$work/bytes")
    [ "$bytes" -ge "$1" ] || fail "$bytes bytes, and not $1, have gone through the network"
}

MPIEXEC=$two_hosts
check 4 ./test_mpi_hosts h1 h2

# shuffle FIRST COUNT [0]; 24 cases meet every value size with every skew; with 0 one rank sleeps amid its appends.
shuffle() {
    fresh
    check 4 ./test_mpi_shuffle "$data" "$@"
}
if has_sanitizers; then
    shuffle 0 4
else
    shuffle 0 12
    sent 10000000
    shuffle 12 12
fi
shuffle 3 2 0

need_python
"$PYTHON3" "$cli/make_vpic.py" "$work/dumps" --ranks 5 --particles 20000 || fail "make_vpic.py"
MPIEXEC=$one_host
expect 0 import 4 --format vpic -o "$work/one" "$work"/dumps/p.*
scan_sorted "$work/one" "$work/expected"
[ -s "$work/expected" ] || fail "nothing to compare with"
MPIEXEC=$two_hosts
expect 0 import 4 --format vpic -o "$work/two" "$work"/dumps/p.*
stdout_has "in 3 epochs from 15 files by 4 ranks"
# Half of the records are of the other host.
sent $(($(cat "$work"/dumps/p.* | wc -c) / 3))
expect 0 "$deltafs" verify "$work/two"
scan_sorted "$work/two" "$work/got"
same "$work/expected" "$work/got" "one host and two give different records"
