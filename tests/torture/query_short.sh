#!/bin/sh
# A few jobs that index by value or compact, and are killed; TORTURE_TIMES as in torture_short.sh.
count=$((2 * ${TORTURE_TIMES:-1}))
timeout -k 5 150 "$top_srcdir/tests/torture/query_kill.sh" index --count $count &&
    timeout -k 5 150 "$top_srcdir/tests/torture/query_kill.sh" compact --count $count
