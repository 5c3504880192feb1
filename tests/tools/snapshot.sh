#!/bin/sh
# deltafs snapshot: publish, read, withdraw.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
export DELTAFS_SYNC=none
unset DELTAFS_REGISTRY
cd "$work" || exit 99

case $deltafs in /*) ;; *) deltafs=$OLDPWD/$deltafs ;; esac

# run COMMAND...: succeeds and says nothing on standard error; its output is in $work/out.
run() {
    expect 0 "$deltafs" "$@"
    [ ! -s err ] || fail "$*: $(cat err)"
}

# prints TEXT: the last command printed this.
prints() {
    printf '%s' "$1" >wanted
    same out wanted "the output is not as wanted"
}

# put TEXT NS:/PATH
put() {
    printf '%s' "$1" >put.in
    run ns cp put.in "$2"
}

# ---- Publish, list, show, read ----
run ns create n
run ns mkdir n:/d
put one n:/d/file
ln -s d/file link
run ns cp -r link n:/link
run snapshot --registry reg publish n v1
run snapshot list --registry=reg
prints 'reg@v1
'
run snapshot --registry reg show v1
stdout_has "$work/n (1 table)"
run snapshot show reg@v1 --json
[ -z "${PYTHON3:-}" ] || "$PYTHON3" -c '
import json
s = json.load(open("out"))
assert s["snapshot"] == "reg/v1" and len(s["layers"]) == 1 and s["layers"][0]["inputs"] == [], s' ||
    fail "show --json: $(cat out)"

put 'two, longer' n:/d/file
put new n:/d/new
run ns rm n:/link
run ns cat n:/d/file
prints 'two, longer'
run ns cat reg@v1:/d/file
prints 'one'
run ns ls reg@v1:/d
prints 'file
'
run ns find reg@v1:/
sort out -o out
prints 'reg@v1:/
reg@v1:/d
reg@v1:/d/file
reg@v1:/link
'
run ns stat reg@v1:/link
stdout_has "d/file"
run ns du -s reg@v1:/d
prints '3	reg@v1:/d
'
run ns cp -r reg@v1:/d out-d
[ "$(cat out-d/file)" = one ] && [ ! -e out-d/new ] || fail "the copy of a snapshot is wrong"
expect 3 "$deltafs" ns rm reg@v1:/d/file
says "a snapshot never changes"

# ---- Names, and several registries ----
expect 3 "$deltafs" snapshot --registry reg publish n v1
says "exists already"
expect 3 "$deltafs" snapshot --registry reg publish none v2
says "there is no such namespace"
expect 3 "$deltafs" snapshot --registry reg publish n 'a b'
says "cannot have this name"
expect 3 "$deltafs" snapshot publish n v2
says "DELTAFS_REGISTRY"
expect 3 "$deltafs" snapshot --registry no/such publish n v2
says "create it first"
expect 3 "$deltafs" snapshot --registry n list
says "is no registry"
expect 3 "$deltafs" snapshot --registry reg show v2
says "there is no such snapshot"
expect 3 "$deltafs" ns ls reg@v2:/
says "there is no such snapshot"
run snapshot --registry second --registry reg publish n v2
run snapshot --registry second --registry reg list
prints 'second@v2
reg@v1
'
export DELTAFS_REGISTRY="$work/second:$work/reg"
run ns cat @v1:/d/file
prints 'one'
run ns cat @v2:/d/file
prints 'two, longer'
unset DELTAFS_REGISTRY

# ---- Several jobs publish at once, into a registry that none has created before ----
pids=
for i in 1 2 3 4 5 6; do
    "$deltafs" snapshot --registry busy publish n job$i 2>"err$i" &
    pids="$pids $!"
    "$deltafs" snapshot --registry busy publish n same 2>>"same.err" && echo won >>won &
    pids="$pids $!"
done
for pid in $pids; do
    wait "$pid"
done
cat err1 err2 err3 err4 err5 err6 >all.err
[ ! -s all.err ] || fail "publishing at once: $(cat all.err)"
[ "$(wc -l <won)" -eq 1 ] || fail "$(wc -l <won) jobs have published the same name"
[ "$(grep -c 'exists already' same.err)" -eq 5 ] || fail "the same name: $(cat same.err)"
run snapshot --registry busy list
[ "$(wc -l <out)" -eq 7 ] || fail "snapshots that were published at once: $(cat out)"
for i in 1 2 3 4 5 6; do
    run ns cat busy@job$i:/d/file
    prints 'two, longer'
done

# ---- Withdraw: the pins go, and what is left of a failed publication ----
[ "$(find n -name 'PIN.*' | wc -l)" -eq 9 ] || fail "pins: $(find n -name 'PIN.*')"
run snapshot --registry busy withdraw job1 job2 job3 job4 job5 job6 same
run snapshot --registry reg withdraw v1
run snapshot withdraw second@v2
[ -z "$(find n -name '*PIN.*')" ] || fail "pins are left: $(find n -name '*PIN.*')"
[ "$(find busy | wc -l)" -eq 2 ] || fail "left in the registry: $(find busy)"
expect 3 "$deltafs" ns ls reg@v1:/
says "there is no such snapshot"
