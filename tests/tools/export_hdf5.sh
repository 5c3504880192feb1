#!/bin/sh
# deltafs export to openpmd and vtkhdf: what is in the files, by h5dump; units; what cannot be written; a full disk.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python
unset HDF5_DRIVER HDF5_PLUGIN_PATH
printf '1 5 0000803f0000004000004040\n' | "$put_records" "$work/one" schema=x:f4,y:f4,z:f4 || fail put_records

# ---- No HDF5

for format in openpmd vtkhdf; do
    expect 3 env DELTAFS_HDF5=/nowhere "$deltafs" export "$work/one" --format $format -o "$work/x"
    says "HDF5 cannot be loaded: /nowhere"
done
"$deltafs" export "$work/one" --format openpmd -o "$work/x" 2>"$work/err" || {
    says "HDF5's shared library is not found"
    says "libhdf5-320), or name it in the environment variable DELTAFS_HDF5"
    skip "there is no HDF5"
}
rm "$work/x"

# ---- Mistakes

mkdir "$work/f"
# wrong DIR TEXT ARGUMENT...
wrong() {
    dir=$1 text=$2
    shift 2
    for format in openpmd vtkhdf; do
        expect 2 "$deltafs" export "$work/$dir" "$@" --format $format -o "$work/f/x"
        says "export: $format $text"
    done
}
wrong one "needs the columns x, y and z, and y is missing" --fields z,x
says "name it in --fields, or define it, as by 'deltafs attr DIR y==0'"
printf '1 6262 -\n' | "$put_records" "$work/bytes" keys=bytes || fail put_records
wrong bytes "has no place for keys of bytes; use csv, jsonl or parquet"
printf '1 5 0000803f4142\n' | "$put_records" "$work/text" schema=x:f4,name:S2 || fail put_records
wrong text "has no place for the column name, which is no number; choose others with --fields"
expect 2 "$deltafs" export "$work/one" --format vtkhdf -o -
says "vtkhdf cannot be written to standard output"
expect 3 "$deltafs" export "$work/one" --format vtkhdf -o "$work/f/none/x"
says "cannot be made in $work/f/none"
[ -z "$(ls -A "$work/f")" ] || fail "a mistake has left: $(ls -A "$work/f")"

# ---- Columns of all types; epochs of one block and of several; keys that have gaps, and one twice in an epoch

"$PYTHON3" - >"$work/records" <<'END'
import random, struct
r = random.Random(1)
for epoch, n in ((0, 30), (7, 13000)):
    for key in [2**64 - 1] + r.sample(range(1, 2**20), n) + [2**64 - 1]:
        floats = [r.random() for _ in range(5)]
        print(epoch, key, struct.pack("<fdbfiqBHIQdf", *floats[:2], r.randrange(-128, 128), floats[2], -r.getrandbits(31),
                                      -r.getrandbits(63), r.getrandbits(8), r.getrandbits(16), r.getrandbits(32),
                                      r.getrandbits(64), *floats[3:]).hex())
END
"$put_records" "$work/d" schema=x:f4,y:f8,z:i1,w:f4,i:i4,j:i8,b:u1,h:u2,id:u4,u:u8,ux:f8,charge:f4 partitions=3 <"$work/records" ||
    fail put_records
expect 0 "$deltafs" attr "$work/d" time=1.5
expect 0 "$deltafs" attr "$work/d" time=0.25 --from 7 --unit "1e-3 s"
expect 0 "$deltafs" attr "$work/d" c==x+1 --unit kg/s
awk 'NR % 50 == 1 { print $2 }' "$work/records" | sort -u >"$work/keys"

expect 0 "$deltafs" export "$work/d" --format openpmd -o "$work/all.h5"
expect 0 "$deltafs" export "$work/d" --format vtkhdf -o "$work/all.vtkhdf"
expect 0 "$deltafs" export "$work/d" --keys "$work/keys" --format vtkhdf -o "$work/keys.vtkhdf"

# ---- A full disk

for full in "openpmd 100" "openpmd 1" "vtkhdf 1000" "vtkhdf 1500" "vtkhdf 1"; do
    # shellcheck disable=SC2086 # two words
    set -- $full
    (
        trap '' XFSZ
        ulimit -f "$2"
        exec "$deltafs" export "$work/d" --format "$1" -o "$work/f/x" 2>"$work/err"
    )
    [ $? -eq 3 ] || fail "$full: a full disk: $(cat "$work/err")"
    says "cannot write to $work/f/x: File too large"
    [ -z "$(ls -A "$work/f")" ] || fail "$full: a full disk has left: $(ls -A "$work/f")"
done

# ---- Damage: the rest is exported

cp -R "$work/d" "$work/damaged"
printf '\377' | dd of="$work/damaged/00/p00000000.data" bs=1 seek=65 conv=notrunc 2>"$work/dd" || fail dd
"$deltafs" select "$work/damaged" --fields x --format csv >"$work/damaged.csv" 2>"$work/err" && fail "no damage"
for format in openpmd vtkhdf; do
    expect 3 "$deltafs" export "$work/damaged" --format $format -o "$work/damaged.$format"
    says "has the rows that can be read, but not all"
done

# ---- What is in the files

command -v h5dump >"$work/out" || skip "h5dump is missing"
find_numpy
[ -n "$python" ] || skip "no Python with NumPy"
check() {
    "$python" "$cli/export_check_hdf5.py" "$@" || fail "$*"
}
"$deltafs" select "$work/d" --format csv >"$work/all.csv" || fail select
"$deltafs" export "$work/d" --keys "$work/keys" --format csv -o "$work/tracks.csv" || fail export
check dump "$work/all.h5" "$work/all.csv"
check dump "$work/damaged.openpmd" "$work/damaged.csv"
check vdump "$work/all.vtkhdf" "$work/all.csv"
check vdump "$work/keys.vtkhdf" "$work/tracks.csv"

# attribute PATH WANTED: of the openPMD file.
attribute() {
    got=$(h5dump -a "$1" "$work/all.h5" | sed -n 's/^ *([0-9]*): //p' | xargs)
    [ "$got" = "$2" ] || fail "$1 is $got, not $2"
}
attribute /data/0/time 1.5
attribute /data/7/time 0.25
attribute /data/7/timeUnitSI 0.001
attribute /data/7/dt 1
attribute /data/7/particles/particles/c/unitDimension "0, 1, -1, 0, 0, 0, 0"
attribute /data/7/particles/particles/position/unitDimension "1, 0, 0, 0, 0, 0, 0"
attribute /data/7/particles/particles/momentum/unitDimension "1, 1, -1, 0, 0, 0, 0"
attribute /data/7/particles/particles/position/x/unitSI 1
attribute /data/7/particles/particles/mass/shape 13002
attribute /data/7/particles/particles/mass/value 1
attribute /data/7/particles/particles/mass/unitSI 3.33564e-09
h5dump -d /VTKHDF/PointData/time "$work/keys.vtkhdf" | sed -n 's/^ *([0-9]*): //p' | tr -d ' ' | tr ',' '\n' | sort -u >"$work/times"
[ "$(xargs <"$work/times")" = "0.25 1.5" ] || fail "times: $(cat "$work/times")"

# What the directory says of its particles.
expect 0 "$deltafs" attr "$work/one" mass=9.1e-31 --unit kg
expect 0 "$deltafs" attr "$work/one" charge=-1.6e-19 --unit "A s"
expect 0 "$deltafs" attr "$work/one" species='"electron"'
expect 0 "$deltafs" attr "$work/one" dt=0.5
expect 0 "$deltafs" export "$work/one" --format openpmd -f -o "$work/all.h5"
attribute /data/1/dt 0.5
attribute /data/1/particles/electron/mass/value 9.1e-31
attribute /data/1/particles/electron/charge/unitDimension "0, 0, 1, 1, 0, 0, 0"
attribute /data/1/particles/electron/mass/unitDimension "0, 1, 0, 0, 0, 0, 0"

# Readers divide the momentum by mass and speed of light. A mass in kg goes with a momentum in SI only.
# mass VALUE UNIT: of the file.
mass() {
    expect 0 "$deltafs" export "$work/d" --format openpmd -f -o "$work/all.h5"
    attribute /data/7/particles/particles/mass/value "$1"
    attribute /data/7/particles/particles/mass/unitSI "$2"
}
expect 0 "$deltafs" attr "$work/d" mass=2
mass 1 3.33564e-09
expect 0 "$deltafs" attr "$work/d" ux= --unit "10 kg m/s"
mass 1 3.33564e-08
expect 0 "$deltafs" attr "$work/d" mass=2 --unit "1e-3 kg"
mass 2 0.001
expect 0 "$deltafs" attr "$work/d" ux=
mass 1 3.33564e-09
