#!/bin/sh
# deltafs plot: which columns, what the picture shows, the file that is made or not, mistakes.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

# Particle 1 goes through the right side of a box and comes in on the left, 2 is alone, 3 has a NaN in the middle, the
# last has no numbers; y hardly changes.
"$PYTHON3" - >"$work/records" <<'END'
import struct
nan = float("nan")
tracks = {
    1: [(6, 5), (7.5, 6), (9, 7), (0.5, 8), (2, 9)],
    2: [(4, 1)],
    3: [(1, 1), (2, 2), (nan, 3), (4, 4), (5, 5)],
    2**64 - 1: [(nan, 1), (1, nan)],
}
for epoch in range(5):
    for key, points in tracks.items():
        if epoch < len(points):
            x, z = points[epoch]
            print(10 * epoch, key, struct.pack("<fffi3s", x, 100 + epoch / 1000, z, epoch - 2, b"abc").hex())
END
"$put_records" "$work/d" schema=x:f4,y:f4,z:f4,q:i4,t:S3 partitions=2 <"$work/records" || fail put_records

# picture ARGUMENT...: makes $work/p.svg, and says in $work/shown what it shows.
picture() {
    expect 0 "$deltafs" plot "$work/d" "$@" -o "$work/p.svg"
    [ ! -s "$work/out" ] && [ ! -s "$work/err" ] || fail "a plot prints: $(cat "$work/out" "$work/err")"
    "$PYTHON3" -SE "$cli/plot_check.py" svg "$work/p.svg" >"$work/shown" || fail "plot $*"
}
# shown LINE...: the picture shows these.
shown() {
    for line; do
        grep -qxF -- "$line" "$work/shown" || fail "the picture does not show '$line': $(cat "$work/shown")"
    done
}

# ---- What it shows

# x and z, because y does not change; both with the same scale.
picture 1 2 3
shown "track 1: parts=2 points=5 colors=1" "track 2: parts=0 points=1 colors=1" "track 3: parts=2 points=4 colors=1"
shown "text x" "text z" "text 1" "text 2" "text 3" "text 8"
cut -d ' ' -f 2 "$work/records" | sort -u >"$work/keys"
picture 3 --keys "$work/keys" --epochs :30
[ "$(sed -n 's/^track \([0-9]*\):.*/\1/p' "$work/shown" | xargs)" = "3 1 18446744073709551615 2" ] ||
    fail "other tracks, or in another order: $(cat "$work/shown")"
shown "track 1: parts=1 points=4 colors=1" "track 18446744073709551615: parts=0 points=0 colors=0"
# Over time; integers have no ticks between them.
picture 1 --y q
shown "text epoch" "text q" "text 40" "text −2" "text 2" "track 1: parts=1 points=5 colors=1"
! grep -q 'text .*[.]' "$work/shown" || fail "an integer has a fraction"
"$deltafs" attr "$work/d" time=0 --unit s && "$deltafs" attr "$work/d" time=1e-6 --from 20 --unit s || fail attr
"$deltafs" attr "$work/d" "e==x*x" --unit "kg m^2 s^-2" && "$deltafs" attr "$work/d" z= --unit "1e-6 m" || fail attr
picture 1 --y e
shown "text time (10⁻⁶ s)" "text e (m² kg s⁻²)" "text 0.2"
picture 1 --x epoch --y z
shown "text epoch" "text z (10⁻⁶ m)" "track 1: parts=1 points=5 colors=1"
# Colours instead of a legend.
picture 1 3 --x x --y z --color q
shown "text q" "track 1: parts=3 points=5 colors=8"
! grep -q '^text 3$' "$work/shown" || fail "a legend with colours"
picture 1 --x key --y epoch
shown "track 1: parts=1 points=5 colors=1"

# A box that is known by its grid: half of it is a jump.
for value in x0=0,20 hx=1,1 nx=20,20; do
    "$deltafs" attr "$work/d" "$value" || fail attr
done
picture 1 --x x --y y
shown "track 1: parts=1 points=5 colors=1"
"$deltafs" attr "$work/d" x0=0,5 && "$deltafs" attr "$work/d" nx=5 || fail attr
picture 1 --x x --y y
shown "track 1: parts=2 points=5 colors=1"

# Many keys: no legend, no marks.
"$PYTHON3" -c '
import struct
for epoch in range(50):
    for key in range(30):
        print(epoch, key, struct.pack("<dd", 1e6 * key + epoch, 3e-9 * epoch * key).hex())' |
    "$put_records" "$work/many" schema=u:f8,v:f8 || fail put_records
"$deltafs" select "$work/many" --format keys >"$work/keys" || fail select
expect 0 "$deltafs" plot "$work/many" --keys "$work/keys" --x u --y v -o "$work/p.svg"
"$PYTHON3" -SE "$cli/plot_check.py" svg "$work/p.svg" >"$work/shown" || fail "many keys"
[ "$(grep -c 'parts=1 points=0' "$work/shown")" -eq 29 ] || fail "29 lines expected: $(cat "$work/shown")"
shown "track 0: parts=0 points=1 colors=1" "text u (×10⁷)" "text v (×10⁻⁶)" "text 0"
expect 0 "$deltafs" plot "$work/many" 1 -o "$work/p.svg"
grep -q '>u (×10⁶)<' "$work/p.svg" || fail "the first column over epochs"

# Keys of bytes, with what XML and a legend cannot have.
long=éééééééééééééééééééé
printf '1 3c2622013e 0000803f\n1 61e962efbfbf 0000803f\n1 %s 0000803f\n' "$(printf %s $long | od -An -v -tx1 | tr -d ' \n')" |
    "$put_records" "$work/b" keys=bytes schema=a:f4 || fail put_records
expect 0 "$deltafs" plot "$work/b" --hex 3c2622013e -o "$work/p.svg"
"$PYTHON3" -SE "$cli/plot_check.py" svg "$work/p.svg" >"$work/shown" || fail "keys of bytes"
shown 'track <&"\x01>: parts=0 points=1 colors=1'
expect 0 "$deltafs" plot "$work/b" $long -o "$work/p.svg"
"$PYTHON3" -SE "$cli/plot_check.py" svg "$work/p.svg" >"$work/shown" || fail "keys of bytes"
shown "text éééééééééééééé…"
expect 0 "$deltafs" plot "$work/b" --hex 61e962efbfbf -o "$work/p.svg"
"$PYTHON3" -SE "$cli/plot_check.py" svg "$work/p.svg" >"$work/shown" || fail "keys of bytes"
shown "text a�b�"

# ---- PNG

if "$PYTHON3" -c 'import ctypes; ctypes.CDLL("libcairo.so.2")' 2>"$work/err"; then
    expect 0 "$deltafs" plot "$work/d" 1 2 3 --color e -o "$work/p.png"
    size=$("$PYTHON3" -SE "$cli/plot_check.py" png "$work/p.png") || fail "no complete PNG"
    "$deltafs" plot "$work/d" 1 2 3 --color e -o "$work/p.svg" || fail "plot"
    # shellcheck disable=SC2046 # three words
    set -- $("$PYTHON3" -SE "$cli/plot_check.py" svg "$work/p.svg" | head -n 1)
    [ "$size" = "size $((2 * $2)) $((2 * $3))" ] || fail "the PNG is not twice as large as the SVG: $size, $*"
else
    echo "no PNG is made: there is no cairo"
fi
mkdir "$work/none"
: >"$work/none/libcairo.so.2"
expect 3 env LD_LIBRARY_PATH="$work/none" "$deltafs" plot "$work/d" 1 -o "$work/p2.png"
says "plot: $work/p2.png: PNG needs the library cairo"
[ ! -f "$work/p2.png" ] || fail "a picture without cairo"

# ---- The file

mkdir "$work/f"
left() {
    ls -A "$work/f" | xargs
}
expect 1 "$deltafs" plot "$work/d" 1 5 -o "$work/f/p.svg"
says "plot: key 5 not found"
grep -q '<title>1</title>' "$work/f/p.svg" || fail "the key that is there is not drawn"
expect 0 "$deltafs" plot "$work/d" 3 -o "$work/f/p.svg"
grep -q '<title>3</title>' "$work/f/p.svg" || fail "a picture is not replaced"
rm "$work/f/p.svg"
expect 1 "$deltafs" plot "$work/d" 5 6 -o "$work/f/p.svg"
says "plot: key 6 not found"
expect 1 "$deltafs" plot "$work/d" 18446744073709551615 --x x --y z -o "$work/f/p.svg"
says "plot: nothing to draw: no record has numbers for both x and z"
for suffix in svg png; do
    (
        trap '' XFSZ
        ulimit -f 1
        exec "$deltafs" plot "$work/d" 1 2 3 --color e -o "$work/f/p.$suffix" 2>"$work/err"
    )
    [ $? -eq 3 ] || fail "$suffix: a full disk"
    says " $work/f/p.$suffix: "
done
expect 3 "$deltafs" plot "$work/d" 1 -o "$work/f/none/p.svg"
says "cannot be made in $work/f/none: No such file"

# ---- Mistakes

wrong() {
    text=$1
    shift
    expect 2 "$deltafs" plot "$@"
    says "$text"
    [ -z "$(left)" ] || fail "a mistake has left: $(left)"
}
wrong "--output is missing" "$work/d" 1
wrong "p.pdf: the name of a picture must end with .png or .svg" "$work/d" 1 -o "$work/f/p.pdf"
wrong "must end with .png or .svg" "$work/d" 1 -o .svg
wrong "KEY is missing; give keys, or --keys FILE" "$work/d" -o "$work/f/p.svg"
wrong "key 'x' is no number" "$work/d" x -o "$work/f/p.svg"
wrong "--x needs --y" "$work/d" 1 --x x -o "$work/f/p.svg"
wrong "plot: --y: no column or attribute is named 'vy'" "$work/d" 1 --y vy -o "$work/f/p.svg"
says "The names are: "
wrong "plot: --color: 't' has no numbers, but text or bytes" "$work/d" 1 --color t -o "$work/f/p.svg"
wrong "plot: --y: 'x,y' is more than one column" "$work/d" 1 --y x,y -o "$work/f/p.svg"
wrong "keys of this directory are no numbers" "$work/b" a --y key -o "$work/f/p.svg"
printf '1 1 0102\n' | "$put_records" "$work/v" || fail put_records
wrong "this directory has no schema" "$work/v" 1 -o "$work/f/p.svg"
expect 3 "$deltafs" plot "$work/none" 1 -o "$work/f/p.svg"
