#!/bin/sh
# Damaged logical files: verify names file and offset, and cat and cp hand out no wrong bytes.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/logical_lib.sh"

# flip FILE OFFSET: one bit of a byte.
flip() {
    byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    # shellcheck disable=SC2059
    printf "$(printf '\\%03o' $((byte ^ 16)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null || fail "dd"
}

# is_beginning FILE PLAIN
is_beginning() {
    head -c "$(wc -c <"$1")" "$2" | cmp -s - "$1"
}

# no_wrong_bytes WHAT: of the damaged copy, cat hands out the file's bytes, or an error and its beginning, and cp does
# not leave anything then.
no_wrong_bytes() {
    "$deltafs" cat "$work/bad" >"$work/copy" 2>"$work/err"
    code=$?
    if [ $code -eq 0 ]; then
        same "$work/p" "$work/copy" "$1: cat hands out wrong bytes"
    else
        [ $code -eq 3 ] || fail "$1: cat ends with $code"
        says "$work/bad"
        is_beginning "$work/copy" "$work/p" || fail "$1: cat hands out wrong bytes"
        expect 3 "$deltafs" cp "$work/bad" "$work/there/x"
        is_empty "$work/there" "$1: cp"
    fi
}

# damaged TEXT WHAT: verify says TEXT of the damaged copy. Then it is removed.
damaged() {
    "$deltafs" verify "$work/bad" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq 3 ] || fail "$2: verify ends with $code: $(cat "$work/out" "$work/err")"
    says "$1"
    no_wrong_bytes "$2"
    expect 0 "$deltafs" rm "$work/bad"
}

# What was synced at the close must be there.
mkdir "$work/there"
export DELTAFS_SYNC=close
put "$work/sound" "$work/p" 77 1 100 9000000
put "$work/sound" "$work/p" 78 2 30 9000000
cp -r "$work/sound" "$work/flat"
expect 0 "$deltafs" flatten "$work/flat"
logs=$(cd "$work/sound" && find . -type f \( -name '*.data' -o -name '*.extents' \) | sort | sed 's/^\.//')
[ -n "$logs" ] || fail "no logs"
stored=$("$deltafs" stat --json "$work/sound" | sed -n 's/^ "bytes_stored": \([0-9]*\).*/\1/p')
[ "$stored" -le "$(find "$work/sound" -type f -exec cat {} + | wc -c)" ] || fail "stat counts more than there is: $stored bytes"
[ "$stored" -gt 100000 ] || fail "stat says $stored bytes are stored"

# ---- A bit of each part of each log; logs that are cut, or missing

for log in $logs; do
    bytes=$(wc -c <"$work/sound$log")
    case $log in
    # Payload begins at 4096; its checksums are 4 MiB behind, or on the last page.
    *.data)
        page=$((4096 + 4194304))
        [ "$bytes" -gt $page ] || page=$((bytes - 4096))
        places="0 9 20 4096 $((4096 + 2000)) 8192 $page $((page + 7))"
        cuts="0 10 32 100 4096 $((bytes / 2))"
        ;;
    *)
        places="0 9 20 32 36 40 50 60 80 $((bytes / 2)) $((bytes - 1))"
        cuts="0 10 32 100 $((bytes / 2)) $((bytes - 1))"
        ;;
    esac
    for at in $places; do
        cp -r "$work/sound" "$work/bad"
        flip "$work/bad$log" "$at"
        damaged "$work/bad$log: damaged at offset " "$log at $at"
    done
    for left in $cuts; do
        cp -r "$work/sound" "$work/bad"
        truncate -s "$left" "$work/bad$log"
        damaged "$work/bad$log" "$log cut to $left"
    done
    cp -r "$work/sound" "$work/bad"
    rm "$work/bad$log"
    damaged "$work/bad" "$log missing"
done

# ---- The index in one file: if it is damaged, the logs still say what is where

index=0
for path in $(cd "$work/flat" && find . -name INDEX | sed 's/^\.//'); do
    bytes=$(wc -c <"$work/flat$path")
    index=$((index + 1))
    for at in 0 9 20 40 $((bytes / 2)) $((bytes - 1)); do
        cp -r "$work/flat" "$work/bad"
        flip "$work/bad$path" "$at"
        damaged "$work/bad$path" "$path at $at"
    done
    for left in 0 10 $((bytes / 2)) $((bytes - 1)); do
        cp -r "$work/flat" "$work/bad"
        truncate -s "$left" "$work/bad$path"
        damaged "$work/bad$path" "$path cut to $left"
    done
done
[ $index -gt 0 ] || fail "flatten makes no index"

# What cannot be read at all is no reason to stop either: the logs have the same.
for kind in mkfifo mkdir; do
    cp -r "$work/flat" "$work/bad"
    path=$(find "$work/bad" -name INDEX | head -n 1)
    rm "$path"
    $kind "$path"
    expect 0 timeout 20 "$deltafs" cat "$work/bad"
    same "$work/p" "$work/out" "$kind for INDEX"
    expect 3 timeout 20 "$deltafs" verify "$work/bad"
    says "$path"
    rm -r "$work/bad"
done

# ---- The texts: while one is damaged nothing is read; repair restores it, or rebuilds it from the logs

# unreadable TEXT WHAT: verify, cat and cp of the damaged copy say TEXT, and hand out nothing.
unreadable() {
    for words in verify cat cp; do
        to=
        [ $words != cp ] || to=$work/there/x
        expect 3 "$deltafs" $words "$work/bad" ${to:+"$to"}
        says "$1"
        is_empty "$work/there" "cp of $2"
        [ $words = verify ] || [ ! -s "$work/out" ] || fail "$words of $2 has output"
    done
}

# repaired WHAT FILE...: repair says what it would do, does it, and all is there again.
repaired() {
    what=$1
    shift
    expect 1 "$deltafs" repair "$work/bad"
    for text in "$@"; do
        grep -q "^to do: $work/bad/$text: " "$work/out" || fail "$what: repair says $(cat "$work/out")"
    done
    expect 3 "$deltafs" cat "$work/bad"
    expect 0 "$deltafs" repair --apply "$work/bad"
    expect 0 "$deltafs" repair "$work/bad"
    expect 0 "$deltafs" verify "$work/bad"
    "$deltafs" cat "$work/bad" >"$work/copy" || fail "$what: cat"
    same "$work/p" "$work/copy" "$what: repaired"
    expect 0 "$deltafs" rm "$work/bad"
    [ ! -e "$work/bad" ] || fail "$what: rm leaves something"
}

for text in MANIFEST s00000000/SESSION; do
    bytes=$(wc -c <"$work/sound/$text")
    for at in 0 5 $((bytes / 2)) $((bytes - 3)); do
        cp -r "$work/sound" "$work/bad"
        flip "$work/bad/$text" "$at"
        unreadable "$work/bad" "$text damaged at $at"
        repaired "$text damaged at $at" "$text"
    done
    cp -r "$work/sound" "$work/bad"
    flip "$work/bad/$text" 0
    expect 0 "$deltafs" rm "$work/bad"
    cp -r "$work/sound" "$work/bad"
    flip "$work/bad/$text" 3
    flip "$work/bad/$text" 20
    repaired "$text damaged twice" "$text"
done
cp -r "$work/sound" "$work/bad"
rm "$work/bad/MANIFEST"
flip "$work/bad/s00000000/SESSION" 12
repaired "MANIFEST lost" MANIFEST s00000000/SESSION

# The only session is missing, or a later one, as after an incomplete copy: nothing is read until it is repaired, and
# what is lost for good is not forgotten.
for sessions in 1 2; do
    for gone in /SESSION ""; do
        put "$work/bad" "$work/q" 80 1 30 90000
        [ $sessions = 1 ] || put "$work/bad" "$work/q" 81 1 30 90000
        last=$work/bad/s0000000$((sessions - 1))
        rm -r "$last$gone"
        unreadable "$last/SESSION: damaged at offset 0: it is missing, although MANIFEST" "a file without $last$gone"
        expect 1 "$deltafs" repair "$work/bad"
        stdout_has "to do: $last"
        expect 3 "$deltafs" cat "$work/bad"
        expect 0 "$deltafs" repair --apply "$work/bad"
        expect 0 "$deltafs" cat "$work/bad"
        if [ -z "$gone" ]; then
            says "$work/bad: data that was written to it is lost"
            expect 3 "$deltafs" verify "$work/bad"
            says "$last/SESSION: damaged at offset 0: it is missing"
        else
            same "$work/q" "$work/out" "without $last$gone, repaired"
            expect 0 "$deltafs" verify "$work/bad"
        fi
        expect 0 "$deltafs" rm "$work/bad"
        rm "$work/q"
    done
done

# Also where the logs are in folders of their own. (Verify saw none of them there, and said nothing.)
mkdir "$work/volume"
put "$work/bad" "$work/q" 79 1 30 90000 volumes="$work/volume"
cp "$work/q" "$work/kept"
rm "$work/bad/s00000000/SESSION"
expect 3 "$deltafs" verify "$work/bad"
says "$work/bad/s00000000/SESSION: damaged at offset 0: it is missing"
expect 0 "$deltafs" repair --apply "$work/bad"
expect 0 "$deltafs" verify "$work/bad"
"$deltafs" cat "$work/bad" >"$work/copy" || fail "cat of a file on a volume, repaired"
same "$work/kept" "$work/copy" "repaired on a volume"
expect 0 "$deltafs" rm "$work/bad"
is_empty "$work/volume" "rm"
rm "$work/q"

# A session from which an interrupted removal has left something is not missed, and does not come back.
cp -r "$work/sound" "$work/bad"
mv "$work/bad/s00000000/SESSION" "$work/bad/s00000000/SESSION.removed"
expect 0 "$deltafs" verify "$work/bad"
stdout_has ", 0 damages"
"$deltafs" cat "$work/bad" >"$work/copy" || fail "cat beside remains of a removal"
cp -r "$work/bad" "$work/there/bad"
expect 0 "$deltafs" rm "$work/there/bad"
is_empty "$work/there" "rm of a file with remains of a removal"
expect 1 "$deltafs" repair "$work/bad"
stdout_has "to do: $work/bad/s00000000: what is left of a session that was removed is deleted"
[ -e "$work/bad/s00000000/SESSION.removed" ] || fail "repair without --apply removes something"
expect 0 "$deltafs" repair --apply "$work/bad"
[ ! -e "$work/bad/s00000000" ] || fail "repair leaves remains of a removal"
expect 0 "$deltafs" repair "$work/bad"
"$deltafs" cat "$work/bad" >"$work/again" || fail "cat"
same "$work/copy" "$work/again" "repaired remains of a removal"
expect 0 "$deltafs" rm "$work/bad"

# Each repair keeps what it replaces, also where an earlier one has kept something. (The second overwrote it.)
for text in MANIFEST s00000000/SESSION; do
    cp -r "$work/sound" "$work/bad"
    for kept in damaged damaged.2 damaged.3; do
        flip "$work/bad/$text" 20
        [ $kept = damaged ] || flip "$work/bad/$text" 3
        cp "$work/bad/$text" "$work/$kept"
        for how in "" --apply; do
            "$deltafs" repair $how "$work/bad" >"$work/out" || [ -z "$how" ] || fail "repair of $text once more"
            grep -q "is saved as $(basename $text).$kept\$" "$work/out" || fail "repair says $(cat "$work/out")"
        done
    done
    for kept in damaged damaged.2 damaged.3; do
        same "$work/$kept" "$work/bad/$text.$kept" "$text.$kept"
    done
    expect 0 "$deltafs" rm "$work/bad"
    [ ! -e "$work/bad" ] || fail "rm leaves what repair has kept"
done

# ---- Verify names all that is damaged, whatever of it keeps the file from being opened

cp -r "$work/sound" "$work/bad"
for log in $logs; do
    flip "$work/bad$log" 40
    case $log in
    *.extents) ;;
    *) flip "$work/bad$log" 9 ;; # nothing is known of its frames without the other log
    esac
done
extents=$(echo "$logs" | grep '\.extents$')
first=$(echo "$extents" | head -n 1)
rm "$work/bad$first"
expect 3 "$deltafs" verify "$work/bad"
for log in $extents; do
    says "$work/bad$log: damaged at offset "
done
says "$work/bad$first: damaged at offset 0: the file is missing"
expect 3 "$deltafs" cat "$work/bad"
says "$work/bad$first"
rm "$work/bad/MANIFEST"
expect 3 "$deltafs" verify "$work/bad"
says "$work/bad/MANIFEST: damaged at offset 0: it is missing"
expect 0 "$deltafs" rm "$work/bad"

# ---- What is not damaged can be had

# Of the last session, which nothing has written over.
log=$(echo "$logs" | grep '\.data$' | tail -n 1)
cp -r "$work/sound" "$work/bad"
flip "$work/bad$log" 5000
"$deltafs" cat "$work/bad" >"$work/copy" 2>"$work/err" && fail "cat of a file with a damaged frame"
says "$work/bad$log: damaged at offset 4096"
good=0
for at in 0 1000000 2000000 3000000 4000000 5000000 6000000 7000000; do
    "$deltafs" cat "$work/bad" --offset $at --size 100000 >"$work/copy" 2>"$work/err" || continue
    tail -c +$((at + 1)) "$work/p" | head -c 100000 >"$work/part"
    same "$work/part" "$work/copy" "cat around damage"
    good=$((good + 1))
done
[ $good -gt 0 ] || fail "nothing can be read around a damaged frame"

# Of several, each is verified, whatever is wrong with another.
expect 3 "$deltafs" verify "$work/sound" "$work/bad" "$work/flat"
says "$work/bad$log: damaged at offset 4096"
for one in sound flat; do
    grep -q "^$work/$one: .* 0 damages" "$work/out" || fail "verify of several: $(cat "$work/out")"
done

# A damaged file is listed, and does not keep the others from being listed.
mkdir "$work/mixed"
mv "$work/bad" "$work/mixed/bad"
flip "$work/mixed/bad/MANIFEST" 60
cp -r "$work/sound" "$work/mixed/good"
expect 3 "$deltafs" ls -l "$work/mixed"
grep -qE 'damaged +bad$' "$work/out" || fail "ls of a damaged file: $(cat "$work/out")"
grep -qE ' closed +good$' "$work/out" || fail "ls beside a damaged file: $(cat "$work/out")"
says "$work/mixed/bad/MANIFEST"

# ---- What was closed, and not synced, a crash can take

export DELTAFS_SYNC=commit
rm -f "$work/copy"
put "$work/cut" "$work/q" 77 1 100 9000000
cp "$work/q" "$work/before"
put "$work/cut" "$work/q" 78 1 30 9000000
log=s00000001/w00000000.extents
bytes=$(wc -c <"$work/cut/$log")
for left in $((bytes - 1)) $((bytes / 2)) 32 10 0 none; do
    cp -r "$work/cut" "$work/bad"
    if [ "$left" = none ]; then
        rm "$work/bad/$log"
    else
        truncate -s "$left" "$work/bad/$log"
    fi
    expect 3 "$deltafs" verify "$work/bad"
    says "$work/bad/$log: damaged at offset "
    says "closed without a sync"
    expect 0 "$deltafs" cp "$work/bad" "$work/copy"
    says "$work/bad: data that was written to it is lost"
    case $left in
    0 | 10 | 32 | none) same "$work/before" "$work/copy" "session cut to $left" ;;
    *) cmp -s "$work/q" "$work/copy" && [ "$left" != $((bytes - 1)) ] && fail "session cut to $left is whole" ;;
    esac
    rm -r "$work/copy" "$work/bad"
done
# A byte that is wrong is damage there, too.
cp -r "$work/cut" "$work/bad"
flip "$work/bad/$log" 60
expect 3 "$deltafs" cat "$work/bad"
says "$work/bad/$log: damaged at offset "
expect 0 "$deltafs" rm "$work/bad"
exit 0
