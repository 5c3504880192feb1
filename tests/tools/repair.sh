#!/bin/sh
# deltafs repair: says what there is to do, does it when told to, and says what it cannot.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"

i=0
while [ $i -lt 300 ]; do
    i=$((i + 1))
    echo "$((i / 100 + 1)) $(printf '%08x' $((i % 50))) $(printf '%08x' $i)"
done >"$work/bytes"
awk '{ print $1, $2 + 0, $3 }' "$work/bytes" >"$work/numbers"
"$put_records" "$work/d" keys=bytes partitions=2 <"$work/bytes" || fail "put_records"
"$put_records" "$work/n" partitions=2 <"$work/numbers" || fail "put_records"
"$deltafs" scan "$work/d" --format csv >"$work/wanted" || fail "scan"

expect 0 "$deltafs" repair "$work/d"
stdout_has "nothing to repair"
stdout_has "300 records in "
[ "$(wc -l <"$work/out")" -eq 2 ] || fail "more than there is to say"

# A job that died: what it left is read, and goes.
cp -R "$work/d" "$work/died"
sed '/^close /d' "$work/d/MANIFEST" >"$work/died/MANIFEST"
cp "$work/died/MANIFEST" "$work/died/MANIFEST.copy"
printf 'Epoch number=4 la' >>"$work/died/MANIFEST"
printf 'half a block' >>"$work/died/00/p00000000.data"
cp -R "$work/died" "$work/before"
expect 1 "$deltafs" repair "$work/died"
stdout_has "to do: $work/died/MANIFEST: an incomplete last line is removed: 17 bytes"
stdout_has "to do: $work/died/00/p00000000.data: data after the last committed epoch is truncated: 12 bytes"
stdout_has "nothing is changed yet; the same command with --apply does it"
diff -r "$work/before" "$work/died" >&2 || fail "a dry run changed something"
expect 0 "$deltafs" repair --apply "$work/died"
stdout_has "$work/died: the directory is closed"
stdout_has "$work/died: done; 'deltafs verify $work/died' reads everything, and says if more is damaged"
expect 0 "$deltafs" repair "$work/died"
stdout_has "nothing to repair"
expect 0 "$deltafs" verify "$work/died"
expect 0 "$deltafs" scan "$work/died" --format csv
same "$work/wanted" "$work/out" "a repaired directory has other records"

# An index log that is gone: keys of bytes stand in the data log, numbers do not.
rm "$work/d/01/p00000001.index" "$work/n/01/p00000001.index"
expect 1 "$deltafs" repair "$work/d"
stdout_has "it is rebuilt from the data log"
expect 0 "$deltafs" repair "$work/d" --apply
expect 0 "$deltafs" verify "$work/d"
expect 0 "$deltafs" scan "$work/d" --format csv
same "$work/wanted" "$work/out" "a rebuilt index finds other records"
expect 3 "$deltafs" repair "$work/n" --apply
says "cannot be repaired: $work/n/01/p00000001.index"
[ ! -e "$work/n/LEASE" ] || fail "the lease is left"
expect 3 "$deltafs" repair "$work/missing"
says "$work/missing"
# What readers advise is not repeated by the command that they advise.
cp -R "$work/d" "$work/line"
printf X | dd of="$work/line/MANIFEST" bs=1 seek=100 conv=notrunc 2>"$work/dd"
expect 3 "$deltafs" info "$work/line"
says "does not match its checksum; nothing can be read while it is so: 'deltafs repair $work/line' says whether its copy can restore it"
expect 1 "$deltafs" repair "$work/line"
stdout_has "does not match its checksum; it is restored from MANIFEST.copy"
grep -q "deltafs repair" "$work/out" "$work/err" && fail "repair advises a repair: $(cat "$work/out" "$work/err")"
cp "$work/line/MANIFEST" "$work/line/MANIFEST.copy"
expect 3 "$deltafs" repair "$work/line"
says "does not match its checksum; $work/line/MANIFEST.copy does not help: restore a backup of one of the two"
grep -q "deltafs repair\|remove the copy" "$work/out" "$work/err" && fail "bad advice: $(cat "$work/out" "$work/err")"
echo junk >"$work/line/MANIFEST"
expect 3 "$deltafs" info "$work/line"
says "not the manifest of a DeltaFS directory; if it was one, restore a backup; see 'deltafs repair $work/line'"
expect 3 "$deltafs" repair "$work/line"
says "not the manifest of a DeltaFS directory; if it was one, restore a backup"
grep -q "deltafs repair" "$work/out" "$work/err" && fail "repair advises a repair: $(cat "$work/out" "$work/err")"
cp -R "$work/d" "$work/gone"
rm "$work/gone/MANIFEST"
expect 3 "$deltafs" info "$work/gone"
says "$work/gone: has no MANIFEST, but its copy; see 'deltafs repair $work/gone'"
expect 1 "$deltafs" repair "$work/gone"
stdout_has "$work/gone: has no MANIFEST, but its copy; it is restored from MANIFEST.copy"
printf X | dd of="$work/gone/MANIFEST.copy" bs=1 seek=100 conv=notrunc 2>"$work/dd"
expect 3 "$deltafs" repair "$work/gone"
says "$work/gone: has no MANIFEST, but its copy; MANIFEST.copy does not help: restore a backup of one of the two"
cp -R "$work/d" "$work/two"
cp -R "$work/d" "$work/other"
expect 0 "$deltafs" attr "$work/two" a=1
expect 0 "$deltafs" attr "$work/other" b=2
expect 0 "$deltafs" attr "$work/other" c=3
cp "$work/other/MANIFEST.copy" "$work/two/MANIFEST.copy"
expect 3 "$deltafs" repair "$work/two"
says "restore a backup of one of the two; or remove the copy, if it is the one that is damaged"
rm "$work/two/MANIFEST.copy"
expect 0 "$deltafs" verify "$work/two"
# Compacted epochs cannot be discarded.
cp -R "$top_srcdir/tests/corpus/compacted" "$work/compacted"
rm "$work/compacted/00/p00000000.index"
expect 3 "$deltafs" repair "$work/compacted"
says "$work/compacted: restore a copy; or remove the directory, and compact the source again"
mkdir "$work/half"
expect 3 "$deltafs" repair "$work/half"
says "$work/half: a folder, not a DeltaFS directory: it has no MANIFEST"

# What is lost is said each time, also by a second repair, which said that there was nothing to repair. With bytes as keys
# the index log has a note of what could not be rebuilt.
cp -R "$work/d" "$work/lossy"
rm "$work/lossy/00/p00000000.index"
printf 'XXXX' | dd of="$work/lossy/00/p00000000.data" bs=1 seek=100 conv=notrunc 2>"$work/dd"
expect 3 "$deltafs" repair "$work/lossy"
stdout_has "to do: $work/lossy"
stdout_has "$work/lossy: nothing is changed yet; the same command with --apply does what can be done"
for again in 1 2 3; do
    expect 3 "$deltafs" repair --apply "$work/lossy"
    says "cannot be repaired: $work/lossy"
    grep -q "nothing to repair" "$work/out" && fail "there is nothing to repair, and records are lost"
    expect 3 "$deltafs" verify "$work/lossy"
done
expect 3 "$deltafs" repair "$work/lossy"
says "$work/lossy: records are lost, of epoch 1 and perhaps of later ones, as an earlier repair recorded"
says "discard 4 epochs (epochs that stay: 0) with 'deltafs repair --drop-from 1 $work/lossy'"
expect 0 "$deltafs" repair --apply --drop-from 1 "$work/lossy"
expect 0 "$deltafs" repair "$work/lossy"
stdout_has "nothing to repair"

# A damaged block is no work for repair, and not passed over.
cp -R "$work/d" "$work/block"
printf 'XXXX' | dd of="$work/block/00/p00000000.data" bs=1 seek=100 conv=notrunc 2>"$work/dd"
for again in "" --apply; do
    expect 3 "$deltafs" repair $again "$work/block"
    says "$work/block/00/p00000000.data: damaged at offset 32: "
    says "$work/block: repair cannot restore this; restore a copy of what is damaged"
done

# A job on another host may live.
cp -R "$work/before" "$work/elsewhere"
printf 'host=elsewhere.example pid=1 job=- session=01234567-89ab-4def-8123-456789abcdef renewed=%020d\n' \
    "$(date +%s)" >"$work/elsewhere/LEASE"
expect 3 "$deltafs" repair --apply "$work/elsewhere"
says "give the option lease=0 ('--lease 0' of a command, or DELTAFS_LEASE=0 in the environment;"
grep -q "is closed" "$work/out" && fail "it is said to be closed, and was not"
cp -R "$work/elsewhere" "$work/removed"
expect 3 "$deltafs" rm "$work/removed"
says "DELTAFS_LEASE=0 in the environment"
expect 0 env DELTAFS_LEASE=0 "$deltafs" rm "$work/removed"
[ ! -e "$work/removed" ] || fail "it is still there"
expect 0 "$deltafs" repair --apply --lease 0 "$work/elsewhere"
stdout_has "$work/elsewhere: the directory is closed"

# A dry run changes nothing, and says who is writing.
cp -R "$work/before" "$work/held"
printf 'host=elsewhere.example pid=77 job=55.0 session=01234567-89ab-4def-8123-456789abcdef renewed=%020d\n' \
    "$(($(date +%s) - 5))" >"$work/held/LEASE"
expect 1 "$deltafs" repair "$work/held"
says "process 77 on host elsewhere.example (job 55.0), which renewed it "
says "may be writing the directory"

# A lease that was left behind in a sound directory is nothing to do, whatever it notes. Its process may have ended, or
# its PID may be that of another process by now, which does not hold the lock. (The dry run said refused then.)
for pid in 999999999 $$; do
    rm -rf "$work/stale"
    cp -R "$work/elsewhere" "$work/stale"
    printf 'host=%s pid=%d job=- session=01234567-89ab-4def-8123-456789abcdef renewed=%020d epoch=%020d label=%020d records=%020d stored=%020d\n' \
        "$(uname -n)" $pid "$(date +%s)" 3 99 1 1 >"$work/stale/LEASE"
    expect 0 "$deltafs" repair "$work/stale"
    says "has ended without closing the directory; the next writer takes it over"
    stdout_has "nothing to repair"
    expect 0 "$deltafs" repair --apply "$work/stale"
    [ ! -e "$work/stale/LEASE" ] || fail "the lease is left"
done

# A tail that is truncated is called so.
cp -R "$work/elsewhere" "$work/reopened"
sed '/^close /d' "$work/elsewhere/MANIFEST" >"$work/reopened/MANIFEST"
cp "$work/reopened/MANIFEST" "$work/reopened/MANIFEST.copy"
expect 1 "$deltafs" repair "$work/reopened"
stdout_has "$work/reopened/00/p00000000.index: the tail, "
grep -q "no commit" "$work/out" && fail "a tail is taken for something else"

# Epochs whose logs are gone are discarded by name only.
expect 2 "$deltafs" repair --drop-from x "$work/n"
expect 2 "$deltafs" repair --drop-from 1 --label 2 "$work/n"
cp "$work/n/00/p00000000.index" "$work/n/01/p00000001.index"
expect 3 "$deltafs" repair --apply "$work/n"
says "discard 4 epochs (epochs that stay: 0) with 'deltafs repair --drop-from 1 $work/n'"
expect 0 "$deltafs" repair --apply --drop-from 1 "$work/n"
stdout_has "is discarded"
stdout_has "saved as MANIFEST.damaged"
expect 0 "$deltafs" verify "$work/n"

# A committed epoch whose line is gone from the MANIFEST of a directory that is not closed: its copy has it. (verify said
# that all was well, and reopening or repairing cut the epoch off.)
sed -n '/^Epoch number=3/q;p' "$work/d/MANIFEST" >"$work/short"
sed '/^Epoch number=3/q' "$work/d/MANIFEST.copy" >"$work/copy"
cp -R "$work/d" "$work/lost"
cp "$work/short" "$work/lost/MANIFEST"
cp "$work/copy" "$work/lost/MANIFEST.copy"
for command in "verify" "scan" "get --format csv" "info"; do
    expect 3 "$deltafs" $command "$work/lost" $([ "$command" != "get --format csv" ] || echo 00000001)
    says "$work/lost/MANIFEST: damaged at offset $(wc -c <"$work/short"): a line is lost"
done
expect 1 "$deltafs" repair "$work/lost"
stdout_has "MANIFEST: is written again"
expect 0 "$deltafs" repair --apply "$work/lost"
expect 0 "$deltafs" verify "$work/lost"
expect 0 "$deltafs" scan "$work/lost" --format csv
same "$work/wanted" "$work/out" "an epoch whose line was lost"

# A terminal does not take a name for commands, also on standard output.
escape=$(printf '\033[31m')
cp -R "$work/d" "$work/x$escape"
for command in verify repair; do
    expect 0 "$deltafs" $command "$work/x$escape"
    stdout_has 'x\x1b[31m: '
done

# A directory whose manifest is damaged is still listed as one.
mkdir "$work/listed"
for how in begin middle copy; do
    cp -R "$work/d" "$work/listed/$how"
done
echo garbage >"$work/listed/begin/MANIFEST"
printf X | dd of="$work/listed/middle/MANIFEST" bs=1 seek=30 conv=notrunc 2>"$work/dd"
rm "$work/listed/copy/MANIFEST"
expect 3 "$deltafs" ls -l "$work/listed"
for how in begin middle copy; do
    grep -qE "^directory +damaged +$how$" "$work/out" || fail "ls of a damaged directory: $(cat "$work/out")"
done
for how in begin middle copy; do
    expect 3 "$deltafs" rm "$work/listed/$how"
    [ -e "$work/listed/$how/MANIFEST.copy" ] || fail "rm removes what it is not sure of: $how"
    expect 1 "$deltafs" repair "$work/listed/$how"
    expect 0 "$deltafs" repair --apply "$work/listed/$how"
done
expect 0 "$deltafs" ls -l "$work/listed"

# The copy is longer, and damaged where MANIFEST ends: it seems to have a line more, and repair was refused, too.
cp -R "$work/d" "$work/longer"
head -c -1 "$work/d/MANIFEST" >"$work/longer/MANIFEST.copy"
printf 'Xjunk' >>"$work/longer/MANIFEST.copy"
expect 3 "$deltafs" info "$work/longer"
expect 1 "$deltafs" repair "$work/longer"
expect 0 "$deltafs" repair --apply "$work/longer"
expect 0 "$deltafs" verify "$work/longer"
cmp -s "$work/longer/MANIFEST" "$work/longer/MANIFEST.copy" || fail "the copy differs from the manifest"

# Both manifests are no manifests: repair does not send to itself.
cp -R "$work/d" "$work/both"
echo garbage >"$work/both/MANIFEST"
rm "$work/both/MANIFEST.copy"
expect 3 "$deltafs" repair "$work/both"
says "if it was one, restore a backup"
