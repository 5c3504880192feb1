#!/bin/sh
# MPI that fails on one rank: that rank returns.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

# lost WHERE CALL COUNT [OPTIONS]: as of test_mpi_lost.
lost() {
    fresh
    mpi 2 ./test_mpi_lost "$data" "$@"
    code=$?
    [ $code -eq 42 ] || fail "exit code $code of $*"
}

# In a close: of what all call together; of what follows.
for count in 0 1 2; do
    lost close Iallreduce $count
    lost close Iallreduce $count "commit=async"
    lost close Ibcast $count "commit=async"
done
lost close Testsome 0
# With room for four buffers of a channel: of two, each credit goes back at once.
lost wind-up Isend 0 memory=64M

# In the making: whatever fails, until nothing does.
for call in Iallreduce Ibcast; do
    count=0
    while fresh && mpi 2 ./test_mpi_lost "$data" create $call $count; code=$?; [ $code -eq 42 ]; do
        count=$((count + 1))
    done
    [ $code -eq 0 ] || fail "exit code $code where $call $count of the making fails"
    [ $count -ge 3 ] || fail "only $count $call fail in the making"
done

# Amid an epoch, in what the shuffle does.
for call in Isend Irecv Testsome; do
    lost append $call 0
    lost append $call 7
    lost wait $call 0
    lost append $call 7 "layout=local"
done
