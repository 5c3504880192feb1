#!/bin/sh
# For so many seconds: jobs of random sizes that are killed or end well, and go on with what others left.
#
#     tests/torture/soak.sh --seconds N [--seed S] [--with MPIEXEC=BUILD]...
. "$(dirname "$0")/../support/kill_lib.sh"
options --seconds "$@"

end=$(($(date +%s) + bound))
while [ "$(date +%s)" -lt $end ]; do
    one_of kill kill close
    round "$picked"
done
report
