#!/bin/sh
# deltafs snapshot: publish, read, withdraw.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
export DELTAFS_SYNC=none
unset DELTAFS_REGISTRY
corpus=$(cd "$top_srcdir/tests/corpus" && pwd) || exit 99
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

# ---- A namespace on top of snapshots ----
run snapshot --registry reg publish n base
run ns create top --on reg@base
run ns cat top:/d/file
prints 'two, longer'
put three top:/d/file
run ns rm top:/d/new
run ns mv top:/d top:/moved
put four top:/added
run ns cat top:/moved/file
prints 'three'
run ns ls top:/
prints 'added
moved
'
run ns ls top:/moved
prints 'file
'
run ns ls n:/d
prints 'file
new
'
run snapshot --registry reg publish top after
run ns find reg@after:/
sort out -o out
prints 'reg@after:/
reg@after:/added
reg@after:/moved
reg@after:/moved/file
'
run snapshot --registry reg show after
stdout_has "on 0"
run snapshot --registry reg diff base after
sort out -o out
prints '/added
/d
/d/file
/d/new
/moved
/moved/file
'
run snapshot --registry reg diff after ./top
prints ''
run snapshot --registry reg diff base base
prints ''
expect 3 "$deltafs" ns create top --on reg@base
says "exists already"
expect 2 "$deltafs" ns create top2 --on base
says "give REG@NAME"
[ "$(find n -name 'PIN.*' | wc -l)" -eq 11 ] || fail "pins: $(find n -name 'PIN.*')"

# ---- Merges: two jobs begin with the same snapshot ----
run ns create common
run ns mkdir common:/out
for name in same left right both removed altered; do put old common:/out/$name; done
run ns mkdir common:/gone
run snapshot --registry reg publish common common
run ns create a --on reg@common
run ns create b --on reg@common
put new-a a:/out/left
put new-b b:/out/right
put both-a a:/out/both
put both-b b:/out/both
run ns rm a:/out/removed
put changed b:/out/removed
put altered-a a:/out/altered
run ns rm b:/out/altered
run ns rm -r a:/gone
put in b:/gone/file
run ns mkdir a:/fresh
run ns mkdir b:/fresh
put 1 a:/fresh/one
put 2 b:/fresh/two
put a a:/fresh/name
put b b:/fresh/name
put file a:/kind
run ns mkdir b:/kind
run snapshot --registry reg publish a a
run snapshot --registry reg publish b b
run snapshot --registry reg conflicts a b
sort out -o out
prints '/fresh/name
/kind
/out/altered
/out/both
/out/removed
'
run snapshot --registry reg conflicts a common
prints ''
expect 3 "$deltafs" snapshot --registry reg merge a b -o none --policy error
says "the snapshots have changed it differently"
expect 3 "$deltafs" snapshot --registry reg show none
run snapshot --registry reg merge a common -o fine --policy error
run snapshot --registry reg diff a fine
prints ''
expect 2 "$deltafs" snapshot --registry reg merge a b
says "give -o NAME"
expect 2 "$deltafs" snapshot --registry reg merge a b -o x --policy best
says "is none of first, last, newest and error"

# If all that they disagree about is removed in the end, they are in conflict nevertheless.
run ns create c --on reg@common
run ns rm c:/out/both
run snapshot --registry reg publish c c
run snapshot --registry reg conflicts a c
prints '/out/both
'
expect 3 "$deltafs" snapshot --registry reg merge a c -o none --policy error
says "/out/both: the snapshots have changed it differently"
run snapshot --registry reg withdraw c

# shows SNAPSHOT BOTH REMOVED NAME: what a merge of a and b has where they are in conflict, and elsewhere.
shows() {
    run ns find "$1:/"
    sort out >found
    {
        printf '/\n/fresh\n/fresh/name\n/fresh/one\n/fresh/two\n/kind\n/out\n'
        printf '/out/both\n/out/left\n'
        if [ "$3" = gone ]; then echo /out/altered; else echo /out/removed; fi
        printf '/out/right\n/out/same\n'
    } | sed "s|^|$1:|" | sort >wanted
    same found wanted "names in $1"
    for pair in left=new-a right=new-b same=old "both=$2" "removed=$3" "../fresh/name=$4"; do
        [ "${pair#*=}" = gone ] && continue
        run ns cat "$1:/out/${pair%%=*}"
        [ "$(cat out)" = "${pair#*=}" ] || fail "$1: $pair: $(cat out)"
    done
}

run snapshot --registry reg merge a b -o first --policy first
run snapshot --registry reg merge a b -o last --policy last
run snapshot --registry reg merge a b -o newest
run snapshot --registry reg merge b a -o swapped --policy last
shows reg@first both-a gone a
shows reg@last both-b changed b
shows reg@newest both-b changed b
shows reg@swapped both-a gone a
run ns stat reg@first:/kind
stdout_has "file"
run ns stat reg@last:/kind
stdout_has "folder"
# A merge that has been decided is so in later ones, whatever their policy.
run snapshot --registry reg merge first b -o later
shows reg@later both-a gone a
run ns create more --on reg@a --on reg@b --policy first
shows more both-a gone a
put mine more:/out/both
run ns rm more:/kind
run ns mv more:/out more:/out2
run ns mv more:/out2 more:/out
put k more:/kind
shows more mine gone a
run snapshot --registry reg publish more more
shows reg@more mine gone a
run snapshot --registry reg diff first more
sort out -o out
prints '/kind
/out/both
'
# Whatever is withdrawn, what is on top of it stays.
run snapshot --registry reg withdraw a b common first
shows reg@later both-a gone a
shows reg@more mine gone a
shows more mine gone a
run snapshot --registry reg withdraw base after later more fine last newest swapped

# ---- Withdraw: the pins go, and what is left of a failed publication ----
[ "$(find n -name 'PIN.*' | wc -l)" -eq 10 ] || fail "pins: $(find n -name 'PIN.*')"
run snapshot --registry busy withdraw job1 job2 job3 job4 job5 job6 same
run snapshot --registry reg withdraw v1
run snapshot withdraw second@v2
[ "$(find n a b -name '*PIN.*' | wc -l)" -eq 3 ] || fail "pins, but for those of top and more: $(find n -name '*PIN.*')"
[ "$(find busy | wc -l)" -eq 2 ] || fail "left in the registry: $(find busy)"
expect 3 "$deltafs" ns ls reg@v1:/
says "there is no such snapshot"

# ---- A snapshot keeps its bytes, whatever happens to its files, and gives them back ----
stored() {
    find "$1" -type f -path '*.data/*' -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }'
}

run ns create g
head -c 1500000 /dev/urandom >random0
run ns cp random0 g:/
for i in 1 2 3; do head -c 300000 /dev/urandom >random$i; done
run ns cp random1 random2 random3 g:/
run snapshot --registry reg publish g whole
run ns cp random3 g:/random1
run ns rm g:/random2
: >empty
run ns cp empty g:/random3
run snapshot gc g
run snapshot gc g
for i in 1 2 3; do
    run ns cat reg@whole:/random$i
    same out random$i "a snapshot has lost bytes"
done
run ns cat g:/random1
same out random3 "a collection has lost bytes"
run ns cat g:/random0
same out random0 "a collection has lost bytes of a large file"
[ "$(stored g)" -gt 2700000 ] || fail "bytes of a snapshot are gone: $(stored g)"
# On top of it, another name for the same bytes.
run ns create above --on reg@whole
run ns mv above:/random2 above:/other
run ns rm above:/random3
run snapshot --registry reg withdraw whole
run snapshot gc g
run ns cat above:/other
same out random2 "a namespace on a snapshot has lost bytes"
rm -r above
rm "$(grep -l "holder=.*/above " g/PIN.*)"
run snapshot gc g
stdout_has "g: "
run ns cat g:/random0
same out random0 "a collection has lost bytes of a large file"
run ns rm g:/random0
run snapshot gc g
if [ "$(stored g)" -gt 400000 ]; then
    fail "bytes that nothing needs: $(stored g); $(cat out)"
fi
run ns cat g:/random1
same out random3 "a collection has lost bytes"
# What nothing needs at all goes as a whole, and comes again.
run ns rm g:/random1
run snapshot gc g
[ "$(stored g)" -eq 0 ] || fail "bytes of no file: $(stored g)"
run ns cp random1 g:/
run ns cat g:/random1
same out random1 "a file after a collection differs"
# A pin that is not finished keeps all.
run ns rm g:/random1
printf '%s' "" >g/PIN.00000000-0000-4000-8000-000000000000
run snapshot gc g
stdout_has "all is kept"
rm g/PIN.*
run snapshot gc g
[ "$(stored g)" -eq 0 ] || fail "bytes of no file: $(stored g)"
expect 3 "$deltafs" snapshot gc none
says "there is no such namespace"
expect 3 "$deltafs" snapshot gc reg
says "is no namespace"
[ ! -e reg/LEASE ] || fail "a lease in what is no namespace"

# ---- A stack of snapshots: compaction puts its names into one table ----
run snapshot --registry reg publish top t1
run ns create tall --on reg@t1
put five tall:/moved/new
run ns rm tall:/added
# decodes NS FILE: what a reader says of it that was written from the manual page alone.
decodes() {
    [ -z "${PYTHON3:-}" ] && return
    expect 0 "$PYTHON3" "$corpus/decode_namespace.py" "$1"
    cp out "$2"
}
decodes tall before
run ns compact tall
grep -qE '^tall: [0-9]+ records of [3-9] tables, [0-9]+ left$' out || fail "compact: $(cat out)"
decodes tall now
[ -z "${PYTHON3:-}" ] || {
    same now before "the compaction of a stack has changed what is there"
    expect 0 "$PYTHON3" "$corpus/get_entries.py" "$deltafs" tall before
    [ "$(cat out)" -eq 4 ] || fail "tall: $(cat out) entries"
}
run ns compact tall
prints 'tall: nothing to do
'
run info tall
stdout_has "in its own tables"
run info --json tall
stdout_has '"is_complete": true'
run snapshot --registry reg publish tall t2
run snapshot --registry reg show t2
stdout_has "with all names) on 1"
run snapshot --registry reg show --json t2
[ "$(grep -c '"is_complete": true' out)" -eq 1 ] || fail "show: $(cat out)"
run ns create taller --on reg@t2
run ns mv taller:/moved/file taller:/file
run ns cat taller:/moved/new
prints 'five'
run ns cat taller:/file
prints 'three'
run ns find taller:/
sort out -o out
prints 'taller:/
taller:/file
taller:/moved
taller:/moved/new
'
decodes taller before
run ns compact taller
decodes taller now
[ -z "${PYTHON3:-}" ] || same now before "the compaction of a higher stack has changed what is there"
run verify taller
# On a merge that chooses the first, names stay where they are.
run snapshot gc more
run ns mkdir more:/last
run snapshot gc more
run ns compact more
run info --json more
stdout_has '"is_complete": false'
run ns rm -r more:/last
shows more mine gone a
