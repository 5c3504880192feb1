#!/bin/sh
# deltafs verify, repair and info of a namespace, with damage in each kind of its files.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
export DELTAFS_SYNC=none
cd "$work" || exit 99

case $deltafs in /*) ;; *) deltafs=$OLDPWD/$deltafs ;; esac

# finds CODE COMMAND [OPTION]: what the command does with the namespace c.
finds() { expect "$1" "$deltafs" "$2" c ${3:+"$3"}; }

# says_out TEXT: the last command printed this on standard output.
says_out() { grep -qF -- "$1" out || fail "the output lacks '$1': $(cat out err)"; }

# A table with names, and its data; a second one, of a writer that came later.
head -c 700000 /dev/urandom >large
echo text >small
"$deltafs" ns create n || fail "no namespace"
"$deltafs" ns mkdir n:/d || fail "no folder"
"$deltafs" cp large n:/d/large || fail "no file"
"$deltafs" cp small n:/small || fail "no file"
"$deltafs" snapshot gc n >out || fail "gc" # what is in the journal becomes epochs
table=$(cd n && echo t????????????????)

# again: a copy without damage, c.
again() { rm -rf c && cp -r n c; }

# damage FILE OFFSET
damage() { printf '\377\376\375\374' | dd of="c/$1" bs=1 seek="$2" conv=notrunc status=none; }

again
finds 0 verify
says_out "c: 8 records in"
says_out ", 0 damages"
finds 0 repair
says_out "c: nothing to repair"
finds 0 info
says_out "tables          1"
says_out "pins            0"
finds 0 info --json
says_out '"kind": "namespace"'
says_out '"records": 3,'
expect 3 "$deltafs" verify missing
expect 2 "$deltafs" verify --continuity c
says "--continuity is for directories"
expect 3 "$deltafs" repair --drop-from 1 c
says "repair the table that needs it by itself"

# What is stored twice is repaired, first shown and then done: MANIFEST, lost or damaged, of names and of bytes.
for where in $table $table.data; do
    for how in lost damaged; do
        again
        if [ $how = lost ]; then rm "c/$where/MANIFEST"; else damage "$where/MANIFEST" 20; fi
        expect 3 "$deltafs" cat c:/small
        finds 3 verify
        says "c/$where"
        finds 1 repair
        says_out "it is restored from MANIFEST.copy"
        says_out "nothing is changed yet"
        finds 3 verify
        finds 0 repair --apply
        finds 0 verify
        expect 0 "$deltafs" cat c:/small
        same out small "a repaired namespace has other bytes"
    done
done
again
damage "$table/00/p00000000.index" $(($(wc -c <"c/$table/00/p00000000.index") - 8))
finds 3 verify
finds 1 repair
finds 0 repair --apply
finds 0 verify

# What is stored once is lost, and the names that have lost something are named. Nothing else is.
again
damage "$table.data/00/p00000000.data" 300000
finds 3 verify
says "c:/d/large: its bytes cannot all be read: "
grep -q small err && fail "/small is sound: $(cat err)"
finds 3 repair
says "cannot be repaired: c:/d/large: its bytes cannot all be read: "
finds 3 repair --apply
says "cannot be repaired: c:/d/large: its bytes cannot all be read: "
again
damage "$table/00/p00000000.data" 60
finds 3 verify
says "c:/: its names cannot all be read: "
finds 3 repair
says "cannot be repaired: c:/: its names cannot all be read: "
again
rm -r "c/$table.data"
finds 3 verify
says "c:/small: its bytes cannot all be read: "
says "c:/d/large: its bytes cannot all be read: "
says_out ", 2 damages"

# A journal with four commits, the second of which is damaged: it is lost, and said to be; the others stay.
again
size() { wc -c <"$(echo c/*.journal)"; }
for name in one two three four; do
    expect 0 env DELTAFS_SYNC=commit "$deltafs" ns cp small c:/$name
    [ $name != one ] || first=$(size) # and a commit without records, which the next writer writes over
    [ $name != two ] || second=$(size)
done
journal=$(cd c && echo *.journal)
damage "$journal" $(((first + second) / 2 - 20))
cp "c/$journal" damaged
expect 3 "$deltafs" ls c:/
says "c/$journal: damaged at offset"
says "keep the other commits with 'deltafs repair'"
finds 3 verify
finds 3 repair
says_out "it is written again with what can be read"
says "the commits in them, are lost"
same "c/$journal" damaged "a list of what can be repaired changed a journal"
finds 3 repair --apply
same "c/$journal.damaged" damaged "the damaged journal is not saved"
finds 0 verify
expect 0 "$deltafs" ls c:/
[ "$(cat out)" = "$(printf '%s\n' d four one small three)" ] || fail "after the repair: $(cat out)"
expect 0 "$deltafs" ns cp small c:/two
expect 0 "$deltafs" cat c:/one c:/two c:/three c:/four
[ "$(cat out)" = "$(cat small small small small)" ] || fail "the files have $(cat out)"
finds 0 verify

# While another may be writing the table, its journal is not replaced.
cp damaged "c/$journal"
printf 'host=elsewhere.example pid=1 job=- session=01234567-89ab-4def-8123-456789abcdef renewed=%020d\n' \
    "$(date +%s)" >"c/$table/LEASE"
finds 3 repair --apply
says "elsewhere.example"
same "c/$journal" damaged "the journal of another's table is replaced"
expect 3 "$deltafs" repair --apply --lease 0 c
says_out "the damaged one is saved as $journal.damaged.2"
finds 0 verify

# A snapshot, with a file that only it has.
again
expect 0 "$deltafs" snapshot --registry reg publish c only
expect 0 "$deltafs" ns rm c:/d/large
expect 0 "$deltafs" verify reg@only
says_out "reg@only: "
says_out "byte"
says_out ", 0 damages"
expect 2 "$deltafs" verify --continuity reg@only
expect 3 "$deltafs" verify reg@none
says "there is no such snapshot"
[ ! -s "$work/out" ] || fail "$(cat "$work/out")"
says "reg@none: there is no such snapshot"
damage "$table.data/00/p00000000.data" 300000
expect 3 "$deltafs" verify reg@only
says "reg@only:/d/large: its bytes cannot all be read: "
says_out ", 1 damage"
rm -r "c/$table"
expect 3 "$deltafs" verify reg@only
says "$table"
expect 0 "$deltafs" snapshot withdraw reg@only

# The texts in the folder.
again
damage NAMESPACE 20
finds 3 verify
says "c/NAMESPACE: damaged at offset 0"
says_out "c: 8 records in"
finds 3 repair --apply
says "cannot be repaired: c/NAMESPACE"
again
expect 0 "$deltafs" snapshot --registry reg publish c s
damage "$(cd c && echo PIN.*)" 60
finds 3 verify
says "PIN."
finds 3 repair
says "cannot be repaired: c/PIN."
again
expect 0 "$deltafs" ns mkdir c:/new
expect 0 "$deltafs" ns compact c
finds 0 verify
finds 0 info --json
says_out '"is_compacted": '
damage COMPACTED 20
finds 3 verify
says "c/COMPACTED: damaged at offset 0"
finds 3 repair
says "cannot be repaired: c/COMPACTED"

# The end of a text that names layers and tables: a part of the last line, or the whole.
again
expect 0 "$deltafs" snapshot --registry reg publish c cut
expect 0 "$deltafs" ns create top --on reg@cut
for text in reg/cut/SNAPSHOT top/NAMESPACE; do
    cp $text whole
    case $text in reg*) where=reg@cut ;; *) where=top ;; esac
    for lost in 10 "$(tail -n 1 whole | wc -c)"; do
        head -c "-$lost" whole >$text
        expect 3 "$deltafs" ls $where:/
        says "$text: damaged at offset 0: it has lost lines of layers and tables"
        expect 3 "$deltafs" verify $where
        says "$text: damaged"
    done
    cp whole $text
    expect 0 "$deltafs" ls $where:/
done

# What a writer that died had not committed goes, and nothing is lost.
again
printf x >>"c/$table/00/p00000000.data"
finds 0 verify
finds 1 repair
says_out "is truncated"
finds 0 repair --apply
finds 0 repair
expect 0 "$deltafs" cat c:/d/large
same out large "a repaired namespace has other bytes"
