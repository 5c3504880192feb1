#!/bin/sh
# Import of VPIC dumps that are made here, on several numbers of ranks: all records, as the files have them.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

"$PYTHON3" "$cli/make_vpic.py" "$work/dumps" || fail "make_vpic.py"
oracle csv "$work"/dumps/p.* | sort >"$work/expected" || fail "oracle"
[ -s "$work/expected" ] || fail "nothing to compare with"

# check NAME PARTITIONS: the directory $work/NAME has what the dumps have.
check() {
    scan_sorted "$work/$1" "$work/sorted"
    same "$work/expected" "$work/sorted" "$1: records differ from the dumps"
    expect 0 "$deltafs" verify "$work/$1"
    expect 0 "$deltafs" info --json "$work/$1"
    cp "$work/out" "$work/info.json"
    oracle info "$work/info.json" "$2" "$work"/dumps/p.* >"$work/ratio" || fail "$1: info --json"
    oracle raw "$deltafs" "$work/$1" "$work"/dumps/p.* || fail "$1: scan --format raw"
    # One key, all of them printed by the oracle too; then keys that are there in some epochs only.
    for key in 0 18446744073709551615 9223372036854775808 1; do
        expect 0 "$deltafs" get "$work/$1" $key --format csv
        sed 1d "$work/out" | sort >"$work/got"
        grep "^$key," "$work/expected" >"$work/wanted"
        same "$work/wanted" "$work/got" "$1: get $key"
    done
}

for ranks in 1 3 $(in_full 2 7); do
    expect 0 import $ranks --format vpic -o "$work/d$ranks" "$work"/dumps/p.*
    stdout_has "in 3 epochs from 9 files"
    check d$ranks $ranks
done

# Files in another order, another number of partitions, and other options of writing give the same answers.
reversed=$(ls -r "$work"/dumps/p.*)
# shellcheck disable=SC2086
expect 0 import 2 --format=vpic --output "$work/odd" -q --partitions 5 --codec none --memory 8M --block 256 \
    --sync none $reversed
[ ! -s "$work/out" ] || fail "--quiet prints a summary"
check odd 5
DELTAFS_PARTITIONS=4 DELTAFS_BLOCK=64K expect 0 import 3 -q --format vpic -o "$work/env" "$work"/dumps/p.*
check env 4

# The environment counts less than what is said.
DELTAFS_PARTITIONS=4 expect 0 import 1 -q --format vpic --partitions 2 -o "$work/said" "$work"/dumps/p.*
check said 2

# Several species: a directory for each, with what it has alone.
"$PYTHON3" "$cli/make_vpic.py" "$work/two" --name ions --species 1 --particles 300 --seed 5 || fail "make_vpic.py"
"$PYTHON3" "$cli/make_vpic.py" "$work/two" --name electrons --species 0 --seed 6 || fail "make_vpic.py"
expect 0 import 2 --format vpic -o "$work/species" "$work"/two/*
stdout_has "$work/species/electrons: "
stdout_has "$work/species/ions: "
for name in ions electrons; do
    oracle csv "$work"/two/$name.* | sort >"$work/wanted" || fail "oracle"
    scan_sorted "$work/species/$name" "$work/sorted"
    same "$work/wanted" "$work/sorted" "$name: records differ from the dumps"
done
expect 0 import 3 --format vpic --append -o "$work/species" "$work"/two/*
says "9 of 9 files are skipped"
cp "$work/two/ions.7.0" "$work/two/other.7.0"
expect 3 import 2 --format vpic -o "$work/names" "$work"/two/*
says "one species with two names"
mv "$work/two/other.7.0" "$work/electrons.7.0"
expect 3 import 2 --format vpic -o "$work/names" "$work"/two/elec* "$work/electrons.7.0"
says "two species with one name"
[ ! -e "$work/names" ] || fail "a folder is left"
expect 3 import 2 --format vpic -o "$work/d1" "$work"/two/*
says "is a directory with records"

# Everything is checked before anything is written, of all species. A folder that was there stays.
mkdir "$work/there"
expect 3 import 2 --format vpic -o "$work/there" "$work"/two/* "$work/two/ions.7.0"
says "of the same step and rank"
[ -z "$(ls -A "$work/there")" ] || fail "a species is imported before all are checked"
# Dumps of runs with other numbers of ranks do not belong together.
"$PYTHON3" "$cli/make_vpic.py" "$work/eight" --ranks 8 || fail "make_vpic.py"
expect 3 import 2 --format vpic -o "$work/mixed" "$work/dumps/p.7.0" "$work/eight/p.7.5"
says "is of a run with 8 ranks, and another file of its step of one with 3"

# Files without any particle, alone.
"$PYTHON3" "$cli/make_vpic.py" "$work/none" --ranks 2 --steps 5 || fail "make_vpic.py"
expect 0 import 2 --format vpic -o "$work/empty" "$work/none/p.5.1"
expect 0 "$deltafs" scan "$work/empty" --format csv
[ "$(wc -l <"$work/out")" -eq 1 ] || fail "records from a dump without particles"
expect 0 "$deltafs" verify "$work/empty"
expect 1 "$deltafs" get "$work/empty" 0
says "key 0 not found"
