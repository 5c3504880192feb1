#!/bin/sh
# Jobs killed at random times, with readers that watch some of them: what they had committed is there, and nothing else.
#
#     tests/torture/kill.sh --count N [--seed S] [--with MPIEXEC=BUILD]...
. "$(dirname "$0")/../support/kill_lib.sh"
options --count "$@"

while [ $rounds -lt "$bound" ]; do
    round kill
done
report
