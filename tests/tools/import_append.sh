#!/bin/sh
# Import that goes on: in pieces, on other numbers of ranks, and after a job that died.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

"$PYTHON3" "$cli/make_vpic.py" "$work/dumps" || fail "make_vpic.py"
oracle csv "$work"/dumps/p.* | sort >"$work/expected" || fail "oracle"
steps=$(ls "$work/dumps" | cut -d. -f2 | sort -nu)

# whole NAME: the directory has what all dumps have.
whole() {
    scan_sorted "$work/$1" "$work/sorted"
    same "$work/expected" "$work/sorted" "$1: records differ from the dumps"
    expect 0 "$deltafs" verify "$work/$1"
    [ ! -e "$work/$1/LEASE" ] || fail "$1: the lease is left"
}

# Step by step, each with other ranks; the directory keeps the partitions of the first.
ranks=1
for step in $steps; do
    expect 0 import $ranks --format vpic --append -o "$work/steps" "$work"/dumps/p."$step".*
    ranks=$((ranks % 3 + 2))
done
whole steps
expect 0 "$deltafs" info "$work/steps"
stdout_has "partitions"
grep -q '^partitions *1$' "$work/out" || fail "not the partitions of the first"

# All files at once: those that it has are passed over.
first=$(echo "$steps" | head -1)
expect 0 import 2 -q --format vpic -o "$work/rest" "$work"/dumps/p."$first".*
expect 3 import 2 --format vpic -o "$work/rest" "$work"/dumps/p.*
says "reopen it to append to it (deltafs-mpi import --append)"
expect 0 import 3 --format vpic -a -o "$work/rest" "$work"/dumps/p.*
says "are skipped"
whole rest
expect 0 import 2 --format vpic -a -o "$work/rest" "$work"/dumps/p.*
stdout_has "0 records in 0 epochs from 0 files"
whole rest

# A step that it has passed over before cannot be put between.
last=$(echo "$steps" | tail -1)
expect 0 import 2 -q --format vpic -o "$work/gap" "$work"/dumps/p."$first".* "$work"/dumps/p."$last".*
expect 3 import 2 --format vpic -a -o "$work/gap" "$work"/dumps/p.*
says "is not in $work/gap"
expect 0 import 2 -q --format vpic -a -o "$work/gap" "$work"/dumps/p."$first".* "$work"/dumps/p."$last".*

# What the directory was made with stays.
expect 2 import 2 --format vpic -a --partitions 7 -o "$work/rest" "$work"/dumps/p.*
says "option partitions"
says "leave it out"
printf '123456789012' >"$work/raw"
expect 2 import 1 --format raw --schema id:u8,x:f4 --key id --epoch 99999999 -a -o "$work/rest" "$work/raw"
says "option schema"
says "append values of that schema, or use another directory"
whole rest

# A directory of DeltaFS 0.1 has no ranks, and without them no positions.
echo "1 6 $(printf %064d 0)" |
    "$put_records" "$work/old" schema=dx:f4,dy:f4,dz:f4,i:i4,ux:f4,uy:f4,uz:f4,w:f4 || fail put_records
expect 3 import 2 --format vpic -a -o "$work/old" "$work"/dumps/p."$last".*
says "$work/old has no column rank, since DeltaFS 0.1 imported it: import all files again, into a new directory"

# Files of raw records do not have a label: with the default of 0 they were passed over, as if they were there.
expect 2 import 1 --format raw --schema id:u8,x:f4 --key id -a -o "$work/rest" "$work/raw"
says "has no number in its name"

# What a job leaves that dies while it writes. Its lease is known to be nobody's: nobody has locked it.
n=0
for step in $steps; do
    n=$((n + 1))
    [ $n -lt 3 ] && before="${before:-} $(echo "$work"/dumps/p."$step".*)"
done
# shellcheck disable=SC2086
expect 0 import 2 -q --format vpic -o "$work/killed" $before
printf 'host=%s pid=1 job=- session=01234567-89ab-4def-8123-456789abcdef renewed=00000000000000000001\n' "$(hostname)" \
    >"$work/killed/LEASE"
for log in "$work"/killed/*/*.data "$work"/killed/*/*.index; do
    printf 'what the job had not committed' >>"$log"
done
printf 'Epoch number=2 label=99' >>"$work/killed/MANIFEST"
expect 0 import 3 --format vpic -a -o "$work/killed" "$work"/dumps/p.*
whole killed

# A directory whose creation was interrupted has nothing to go on with.
mkdir -p "$work/half/00"
expect 3 import 2 --format vpic -a -o "$work/half" "$work"/dumps/p.*
says "$work/half: has no MANIFEST"
says "restore a copy"
says "it has no records: remove it"

# A job on another host may live.
printf 'host=elsewhere.example pid=1 job=- session=01234567-89ab-4def-8123-456789abcdef renewed=%020d\n' "$(date +%s)" \
    >"$work/killed/LEASE"
expect 3 import 2 --format vpic -a -o "$work/killed" "$work"/dumps/p.*
says "host elsewhere.example"
says "give the option lease=0 ('--lease 0' of a command, or DELTAFS_LEASE=0 in the environment;"
expect 0 import 2 --lease 0 --format vpic -a -o "$work/killed" "$work"/dumps/p.*
whole killed
