#!/bin/sh
# Processes that are killed at any of their calls that change a namespace, while others change it: what was closed or
# synced is there, the others go on, and the namespace is sound, or can be repaired. The full run tries every seventh
# call; KILL_STEP=1 all.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
top_builddir=$(cd "$top_builddir" && pwd)
program=$top_builddir/posix_kill
cd "$work" || exit 99
export LD_LIBRARY_PATH="$posix_libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export DELTAFS_POSIX="namespace=/m=$work/ns" KILL_IN="$work/ns"
preload=$posix_libraries/libdeltafs_posix.so
hooked="$preload $posix_libraries/libkill_hook.so"

# checked NUMBER...: what these processes have written is there.
checked() {
    for n in "$@"; do
        LD_PRELOAD=$preload "$program" check /m log.$n $n 2>err || fail "$what: $(cat err)"
    done
}

# sound: verify finds nothing, or else repair helps.
sound() {
    "$deltafs" verify ns >out 2>&1 && return
    cp out found
    "$deltafs" repair --apply ns >>found 2>&1 || fail "$what: repair: $(cat found)"
    repaired=$((repaired + 1))
    "$deltafs" verify ns >out 2>&1 || fail "$what: after repair: $(cat found out)"
}

# killed HOW AT STEPS: two processes at the same time, the first is killed; then a third.
killed() {
    what="killed $1 call $2 of $3 steps"
    rm -rf ns log.*
    cp -r empty ns
    LD_PRELOAD=$hooked KILL_HOW=$1 KILL_AT=$2 "$program" write /m log.1 1 "$3" 2>err.1 &
    first=$!
    LD_PRELOAD=$preload "$program" write /m log.2 2 "$3" 2>err.2 &
    second=$!
    wait $first
    got=$?
    wait $second || fail "$what: another process does not go on: $(cat err.2)"
    [ $got = 137 ] || [ $got = 0 ] || fail "$what: $got: $(cat err.1)"
    checked 1 2
    LD_PRELOAD=$preload "$program" write /m log.3 3 2 2>err.3 || fail "$what: a later process: $(cat err.3)"
    sound
    checked 1 2 3
    cases=$((cases + 1))
}

# all_killed SECONDS: three, which are killed at a time.
all_killed() {
    what="killed after $1 s"
    rm -rf ns log.*
    cp -r empty ns
    pids=
    for n in 1 2 3; do
        LD_PRELOAD=$preload "$program" write /m log.$n $n 2000 2>err.$n &
        pids="$pids $!"
    done
    sleep "$1"
    kill -9 $pids
    wait
    checked 1 2 3
    sound
    checked 1 2 3
    cases=$((cases + 1))
}

expect 0 "$deltafs" ns create empty
cases=0
repaired=0
killed half 25 6
killed after 40 6
all_killed 0.1
if [ -n "$(in_full all)" ]; then
    for how in before half after; do
        at=1
        got=137
        while [ $got = 137 ] && [ $at -lt 1000 ]; do
            killed $how $at 16
            at=$((at + ${KILL_STEP:-7}))
        done
    done
    for i in $(seq 25); do
        all_killed "0.$(printf '%03d' $((i * 27 % 400)))"
    done
fi
echo "$cases cases, $repaired repaired"
