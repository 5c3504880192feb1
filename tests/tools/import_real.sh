#!/bin/sh
# Import of a real run's dumps, on several numbers of ranks. CLI_OTHER_CONTAINER may name directories made of the same
# dumps by another build or MPI, to be asked in the same way.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python
[ -d "$real" ] || skip "no dumps of a real run in $real (VPIC_HARRIS may name their folder)"

awk -F, -v OFS=, '{ print $1, $2, $4, $5, $6, $7, $8, $9, $10, $11, $3 }' "$real/trajectories.csv" |
    sed '1s/^id,step/key,epoch/' >"$work/trajectories"
sed 1d "$work/trajectories" | cut -d, -f1 | uniq >"$work/keys"
[ "$(wc -l <"$work/keys")" -eq 50 ] || fail "trajectories.csv does not have 50 particles"
absent="20480 81920 320480 1099511627776 9223372036854775808"

# ask DIR: trajectories, absent keys, reads.
ask() {
    expect 0 "$deltafs" get "$1" --keys "$work/keys" --format csv
    cut -d, -f1-11 "$work/out" >"$work/got"
    same "$work/trajectories" "$work/got" "$1: trajectories differ"
    # shellcheck disable=SC2046,SC2086
    expect 1 "$deltafs" get "$1" $absent $(cat "$work/keys") --format csv
    cut -d, -f1-11 "$work/out" >"$work/got"
    same "$work/trajectories" "$work/got" "$1: trajectories differ where some keys are absent"
    for key in $absent; do
        says "key $key not found"
    done
    [ "$(wc -l <"$work/err")" -eq 5 ] || fail "$1: other messages than one for each absent key: $(cat "$work/err")"
    for key in $(head -5 "$work/keys"); do
        expect 0 "$deltafs" get "$1" "$key" --stats
        reads=$(sed -n 's/^stats: reads=\([0-9]*\) .*/\1/p' "$work/err")
        [ "${reads:-99}" -le 24 ] || fail "$1: ${reads:-no} reads for 11 epochs; 24 are the most"
        expect 0 "$deltafs" get "$1" "$key" --stats --epochs 96
        reads=$(sed -n 's/^stats: reads=\([0-9]*\) .*/\1/p' "$work/err")
        [ "${reads:-99}" -le 4 ] || fail "$1: ${reads:-no} reads for 1 epoch; 4 are the most"
    done
}

for ranks in 1 2 3 7; do
    expect 0 import $ranks --format vpic -o "$work/d$ranks" "$real"/eparticle.*
    stdout_has "901120 records in 11 epochs from 44 files"
    ask "$work/d$ranks"
    expect 0 "$deltafs" verify "$work/d$ranks"
    expect 0 "$deltafs" info --json "$work/d$ranks"
    cp "$work/out" "$work/info.json"
    ratio=$(oracle info "$work/info.json" $ranks "$real"/eparticle.*) || fail "$ranks ranks: info --json"
    echo "$ranks ranks: $ratio of raw"
    awk "BEGIN { exit !($ratio <= 0.64) }" || fail "$ranks ranks: $ratio of raw; 0.64 is the most"
done

# stored DIR: its bytes_stored.
stored() {
    "$deltafs" info --json "$1" | sed -n 's/^ "bytes_stored": \([0-9]*\),$/\1/p'
}

# Error bounds: nothing else changes, and it takes less.
expect 0 import 2 --format vpic --schema ux:f4~1e-4,dz:f4~1e-3,uz:f4~1e-4 -o "$work/near" "$real"/eparticle.*
expect 0 "$deltafs" info "$work/near"
stdout_has "dx:f4,dy:f4,dz:f4~0.001,i:i4,ux:f4~0.0001,uy:f4,uz:f4~0.0001,w:f4,rank:u4"
expect 0 "$deltafs" get "$work/near" --keys "$work/keys" --format csv
cut -d, -f1-11 "$work/out" | paste -d, "$work/trajectories" - | awk -F, '
    function near(a, b, bound) { return a - b <= bound && b - a <= bound }
    NR > 1 { other += $5 != $16 }
    $1 != $12 || $2 != $13 || $3 != $14 || $4 != $15 || $6 != $17 || $8 != $19 || $10 != $21 || $11 != $22 { bad = 1 }
    NR > 1 && !(near($5, $16, 1e-3) && near($7, $18, 1e-4) && near($9, $20, 1e-4)) { bad = 1 }
    END { exit !(!bad && NR == 551 && other > 500) }' || fail "error bounds: other values"
[ "$(stored "$work/near")" -lt $(($(stored "$work/d2") * 9 / 10)) ] || fail "error bounds save nothing"

# The figure in README.md: 0.37 of raw.
expect 0 import 2 --format vpic --schema dx:f4~1e-4,dy:f4~1e-4,dz:f4~1e-4,ux:f4~1e-4,uy:f4~1e-4,uz:f4~1e-4 -o "$work/six" \
    "$real"/eparticle.*
ratio=$(awk "BEGIN { print $(stored "$work/six") / (40 * 901120) }")
echo "error bounds of 1e-4: $ratio of raw"
awk "BEGIN { exit !($ratio >= 0.36 && $ratio <= 0.39) }" || fail "error bounds of 1e-4: $ratio of raw, not 0.36 to 0.39"
containers=$work/d1,$work/d2,$work/d3,$work/d7

for other in ${CLI_OTHER_CONTAINER:-}; do
    ask "$other"
    containers=$containers,$other
done

# All records of all of them, by their bits.
oracle raw "$deltafs" "$containers" "$real"/eparticle.* || fail "scan --format raw"
"$deltafs" scan "$work/d3" --format csv >"$work/scan" || fail "scan --format csv"
oracle bits "$work/scan" "$real"/eparticle.* || fail "scan --format csv"
