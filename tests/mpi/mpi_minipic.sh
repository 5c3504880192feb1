#!/bin/sh
# minipic: what DeltaFS gives back is what was dumped, on any number of ranks.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

[ -n "$PYTHON3" ] || skip "no Python to compare floats with"

# As 32-bit floats the numbers are the same, whatever digits stand for them.
cat >"$work/compare.py" <<'END'
import csv, struct, sys

def rows(path, skip):
    with open(path, newline="") as f:
        lines = list(csv.reader(f))
    return [[int(r[skip])] + [struct.pack("<f", float(x)) for x in r[skip + 1:-1]] + [int(r[-1])] for r in lines[1:]]

recorded, got = rows(sys.argv[1], 0), rows(sys.argv[2], 1)
if not recorded or recorded != got:
    sys.exit("%s and %s differ:\n%s\n%s" % (sys.argv[1], sys.argv[2], recorded, got))
END

for ranks in 1 3 4; do
    fresh
    check "$ranks" ./minipic -o "$data/d" --steps 60 --every 20 -n 4000 -q \
        --record-id 1234 --record-file "$work/record"
    expect 0 "$deltafs" verify "$data/d"
    expect 0 "$deltafs" get --format csv "$data/d" 1234
    [ "$(wc -l <"$work/out")" -eq 4 ] || fail "not three dumps and a head line"
    cp "$work/out" "$work/got"
    "$PYTHON3" "$work/compare.py" "$work/record" "$work/got" || fail "wrong on $ranks ranks"
    : >"$work/trajectories.$ranks"
    for id in 0 1 1234 2718 3999; do
        expect 0 "$deltafs" get --format csv "$data/d" "$id"
        cat "$work/out" >>"$work/trajectories.$ranks"
    done
    cmp "$work/trajectories.1" "$work/trajectories.$ranks" || fail "1 and $ranks ranks give different trajectories"
    expect 1 "$deltafs" get "$data/d" 4000
done
