#!/bin/sh
# A few jobs that are killed, and a few seconds of soaking.
timeout -k 5 100 "$top_srcdir/tests/torture/kill.sh" --count 4 &&
    timeout -k 5 100 "$top_srcdir/tests/torture/soak.sh" --seconds 2
