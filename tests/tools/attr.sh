#!/bin/sh
# deltafs attr: sets, lists and shows the attributes of a closed directory, and info shows them; what is wrong changes nothing.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"

printf '1 5 0000803f00000040\n2 6 0000803f00000040\n' | "$put_records" "$work/d" schema=ux:f4,uy:f4 || fail put_records
d=$work/d
"$deltafs" scan "$d" --format csv >"$work/wanted" || fail scan
expect 0 "$deltafs" attr "$d"
[ ! -s "$work/out" ] || fail "attributes of a new directory"

# What is set is printed as it can be set again.
set_all() {
    expect 0 "$deltafs" attr "$1" lx=2.5 --unit 1e-6\ m
    expect 0 "$deltafs" attr "$1" x0=0,0.1,-1e300,nan,5,6,7,8,9.5
    expect 0 "$deltafs" attr "deltafs:$1" n=-3
    expect 0 "$deltafs" attr "$1" big=18446744073709551615
    expect 0 "$deltafs" attr "$1" 'note="two words, 100 %
"'
    expect 0 "$deltafs" attr "$1" 'energy==sqrt(1 + ux**2) - 1' --unit 'kg m^2/s^2'
    expect 0 "$deltafs" attr "$1" ux= --unit m/s
    expect 0 "$deltafs" attr "$1" time=0.5 --from 1
    expect 0 "$deltafs" attr "$1" time=1.5 --from 2
}
set_all "$d"
cat >"$work/list" <<'END'
lx=2.5  unit 1e-06 m
x0=0.0,0.1,-1e+300,nan,5.0,6.0,7.0,8.0,... (9 numbers)
n=-3
big=18446744073709551615
note="two words, 100 %\n"
energy==sqrt(1 + ux**2) - 1  unit m^2 kg s^-2
ux=  unit m s^-1
time=0.5  from 1
time=1.5  from 2
END
expect 0 "$deltafs" attr "$d"
same "$work/list" "$work/out" "the list is another"
expect 0 "$deltafs" attr "$d" x0
[ "$(cat "$work/out")" = "x0=0.0,0.1,-1e+300,nan,5.0,6.0,7.0,8.0,9.5" ] || fail "x0: $(cat "$work/out")"
expect 0 "$deltafs" attr "$d" time
[ "$(wc -l <"$work/out")" -eq 2 ] || fail "time has two values"
expect 0 "$deltafs" info "$d"
sed 's/^/  /' "$work/list" >"$work/indented"
sed '1,/^attributes$/d' "$work/out" >"$work/shown"
same "$work/indented" "$work/shown" "info has other attributes"
if [ -n "${PYTHON3:-}" ]; then
    expect 0 "$deltafs" info "$d" --json
    "$PYTHON3" - "$work/out" <<'END' || fail "info --json"
import json, sys
a = {(x["name"], x["from"]): x for x in json.load(open(sys.argv[1]))["attributes"]}
assert a["lx", 0] == {"name": "lx", "from": 0, "type": "f8", "value": 2.5, "unitSI": 1e-6,
                      "unitDimension": [1, 0, 0, 0, 0, 0, 0]}, a
assert a["x0", 0]["value"] == [0, 0.1, -1e300, "nan", 5, 6, 7, 8, 9.5]
assert a["note", 0]["value"] == "two words, 100 %\n" and a["n", 0]["value"] == -3
assert a["energy", 0]["type"] == "expression" and a["time", 2]["value"] == 1.5
assert a["ux", 0]["value"] is None and a["ux", 0]["unitDimension"] == [1, 0, -1, 0, 0, 0, 0]
END
fi

# The records are as they were, and the copy of the manifest is complete.
expect 0 "$deltafs" verify "$d"
expect 0 "$deltafs" repair "$d"
stdout_has "nothing to repair"
expect 0 "$deltafs" scan "$d" --format csv
cut -d , -f 1-4 "$work/out" >"$work/stored"
same "$work/wanted" "$work/stored" "a directory with attributes has other records"
cmp "$d/MANIFEST" "$d/MANIFEST.copy" || fail "the copy of the manifest"
[ ! -e "$d/LEASE" ] || fail "a lease is left"

# A damaged or lost line of an attribute is restored.
cp -R "$d" "$work/damaged"
sed 's/two%20words/too%20words/' "$d/MANIFEST" >"$work/damaged/MANIFEST"
expect 3 "$deltafs" attr "$work/damaged"
expect 0 "$deltafs" repair --apply "$work/damaged"
expect 0 "$deltafs" attr "$work/damaged"
same "$work/list" "$work/out" "a repaired directory has other attributes"
cp -R "$d" "$work/lost"
sed '$d' "$d/MANIFEST" >"$work/lost/MANIFEST"
expect 3 "$deltafs" attr "$work/lost"
expect 0 "$deltafs" repair --apply "$work/lost"
expect 0 "$deltafs" attr "$work/lost"
same "$work/list" "$work/out" "a repaired directory has lost attributes"

# A writer that died, or died while it set one.
cp -R "$d" "$work/died"
grep -v '^close ' "$d/MANIFEST" >"$work/died/MANIFEST"
cp "$work/died/MANIFEST" "$work/died/MANIFEST.copy"
expect 3 "$deltafs" attr "$work/died" n=4
grep -q "repair --apply $work/died" "$work/err" || fail "a directory that is not closed: $(cat "$work/err")"
expect 0 "$deltafs" attr "$work/died" n
expect 0 "$deltafs" repair --apply "$work/died"
expect 0 "$deltafs" attr "$work/died" n=4
cp -R "$d" "$work/torn"
printf 'attribute name=n from=0 type=i8 val' >>"$work/torn/MANIFEST"
expect 0 "$deltafs" attr "$work/torn"
same "$work/list" "$work/out" "a line that was cut short counts"
expect 3 "$deltafs" attr "$work/torn" n=4
grep -q "deltafs repair" "$work/err" || fail "a manifest with a torn line: $(cat "$work/err")"
expect 0 "$deltafs" repair --apply "$work/torn"
expect 0 "$deltafs" attr "$work/torn" n=4

# What is removed, is gone; the rest stays. A mistake in an expression is shown.
cp -R "$d" "$work/removed"
expect 0 "$deltafs" attr "$work/removed" time= --from 2
expect 0 "$deltafs" attr "$work/removed" ux=
expect 0 "$deltafs" attr "$work/removed" energy=
expect 0 "$deltafs" attr "$work/removed"
grep -v '^ux=\|^energy=\|from 2$' "$work/list" >"$work/wanted"
same "$work/wanted" "$work/out" "attributes after others were removed"
expect 3 "$deltafs" attr "$work/removed" energy=
says "has no attribute 'energy'"
expect 0 "$deltafs" scan "$work/removed" --format csv
[ "$(sed -n 1p "$work/out")" = key,epoch,ux,uy ] || fail "a column that was removed: $(cat "$work/out")"
cp "$work/removed/MANIFEST" "$work/before"
expect 3 "$deltafs" attr "$work/removed" 'energy==sqrt(1 + ux**2'
says "'energy': offset 14: "
printf '    sqrt(1 + ux**2\n    %14s^\n' '' >"$work/wanted"
sed -n '2,3p' "$work/err" >"$work/caret"
same "$work/wanted" "$work/caret" "the place of the mistake"
cmp "$work/before" "$work/removed/MANIFEST" || fail "an expression with a mistake has changed the manifest"

# A name in an expression that is none, at its first label or at later ones; itself; a text. What is set for other epochs
# only is no mistake.
cp -R "$d" "$work/named"
expect 0 "$deltafs" attr "$work/named" word=1
expect 0 "$deltafs" attr "$work/named" 'word="x"' --from 2
cp "$work/named/MANIFEST" "$work/before"
expect 3 "$deltafs" attr "$work/named" 'v==2 * uxx'
says "'v': offset 4: no column or attribute is named 'uxx'; did you mean 'ux'?"
printf '    2 * uxx\n        ^\n' >"$work/wanted"
sed -n '2,3p' "$work/err" >"$work/caret"
same "$work/wanted" "$work/caret" "the place of the name"
expect 3 "$deltafs" attr "$work/named" 'v==ux + v'
says "'v': computed column 'v': offset 5: "
expect 3 "$deltafs" attr "$work/named" 'energy==sqrt(energy)'
expect 3 "$deltafs" attr "$work/named" 'v==ux + note'
says "'v': offset 5: expected a number, but the attribute 'note' is a text"
expect 3 "$deltafs" attr "$work/named" 'v==ux + word'
says "'v': offset 5: expected a number, but the attribute 'word' is a text"
cmp "$work/before" "$work/named/MANIFEST" || fail "an expression that was refused has changed the manifest"
expect 0 "$deltafs" attr "$work/named" 'v==time * x0[1] + energy + epoch > 0'
printf '1 61 00\n' | "$put_records" "$work/bytes" keys=bytes || fail put_records
expect 3 "$deltafs" attr "$work/bytes" v==key
says "'v': offset 0: expected a number, but the column 'key' holds bytes"
expect 3 "$deltafs" attr "$work/bytes" v==ux
says "no column or attribute is named 'ux'"
expect 0 "$deltafs" attr "$work/bytes" v==epoch/2

# Units that have names of their own are stored as base units, and their factor.
cp -R "$d" "$work/units"
while IFS='|' read -r unit shown; do
    expect 0 "$deltafs" attr "$work/units" lx=1 --unit "$unit"
    expect 0 "$deltafs" attr "$work/units" lx
    stdout_has "lx=1  unit $shown"
    [ "$(grep -c "unit $shown\$" "$work/out")" -eq 1 ] || fail "$unit: $(cat "$work/out")"
done <<'END_OF_UNITS'
C|s A
N|m kg s^-2
Pa|m^-1 kg s^-2
J|m^2 kg s^-2
W|m^2 kg s^-3
V/m|m kg s^-3 A^-1
T|kg s^-2 A^-1
Hz^2|s^-2
1e3 eV|1.602176634e-16 m^2 kg s^-2
keV|1.602176634e-16 m^2 kg s^-2
MeV|1.602176634e-13 m^2 kg s^-2
GeV|1.602176634e-10 m^2 kg s^-2
J/eV|6.241509074460763e+18
C/m^3|m^-3 s A
END_OF_UNITS

# What is no attribute, and changes nothing.
cp "$d/MANIFEST" "$work/before"
for wrong in lx=abc lx=1,,2 lx=1, lx=, lx='"open' 'lx==' 'lx= 1'; do
    expect 2 "$deltafs" attr "$d" "$wrong"
    grep -q "lx=" "$work/err" || fail "$wrong: $(cat "$work/err")"
done
for unit in furlong '' 0 -1 m/ m^x 'm m2' inf EV 'eV^-99'; do
    expect 2 "$deltafs" attr "$d" lx=1 --unit "$unit"
done
expect 2 "$deltafs" attr "$d" lx --from 3
expect 2 "$deltafs" attr "$d" lx=3 --from x
expect 2 "$deltafs" attr
for name in ux key epoch and 3d a-b ''; do
    expect 3 "$deltafs" attr "$d" "$name=1"
done
expect 3 "$deltafs" attr "$d" uz= --unit m
expect 1 "$deltafs" attr "$d" none
expect 3 "$deltafs" attr "$work/none"
expect 3 "$deltafs" attr "$work" lx=1
[ ! -e "$work/LEASE" ] || fail "a lease in a folder that is no directory"
cmp "$work/before" "$d/MANIFEST" || fail "what was refused has changed the manifest"

# What a computed column names stays a number.
printf '1 5 0000803f\n' | "$put_records" "$work/needed" schema=v:f4 || fail put_records
expect 0 "$deltafs" attr "$work/needed" m=2
expect 0 "$deltafs" attr "$work/needed" 'e==m*v'
for value in 'm=' 'm="text"'; do
    expect 3 "$deltafs" attr "$work/needed" "$value"
    says "'m' is a number that the computed column 'e' needs"
done
expect 3 "$deltafs" attr "$work/needed" m=1,2
says "'m' is a single number that the computed column 'e' needs"
expect 0 "$deltafs" attr "$work/needed" k=3,4
expect 0 "$deltafs" attr "$work/needed" 'f==k[1]*v'
expect 0 "$deltafs" attr "$work/needed" k=5,6
expect 0 "$deltafs" attr "$work/needed" m=3
expect 0 "$deltafs" attr "$work/needed" e=
expect 0 "$deltafs" attr "$work/needed" m=

# A value does not replace a computed column, for no label; another expression does.
cp "$work/needed/MANIFEST" "$work/before"
for value in f=5 f=5,6 'f="text"'; do
    expect 3 "$deltafs" attr "$work/needed" "$value" --from 1
    says "'f' is a computed column, whose expression would be lost; remove it before: deltafs attr $work/needed f="
done
cmp "$work/before" "$work/needed/MANIFEST" || fail "a value that was refused has changed the manifest"
expect 0 "$deltafs" attr "$work/needed" 'f==k[0]*v'
expect 0 "$deltafs" get "$work/needed" 5 --format csv
[ "$(sed -n 2p "$work/out")" = 5,1,1.0,5.0 ] || fail "the computed column: $(cat "$work/out")"
expect 0 "$deltafs" attr "$work/needed" f=
expect 0 "$deltafs" attr "$work/needed" f=5

# NAME= --unit UNIT of a computed column keeps its expression; of several, it would lose all but one.
expect 0 "$deltafs" attr "$work/needed" 'g==2*v' --unit s
expect 0 "$deltafs" attr "$work/needed" g= --unit m
expect 0 "$deltafs" attr "$work/needed" 'g==3*v' --from 4
expect 2 "$deltafs" attr "$work/needed" g= --unit s
says "'g' has 2 expressions, from different labels on"
expect 0 "$deltafs" attr "$work/needed" g= --from 4 --unit keV
expect 0 "$deltafs" attr "$work/needed" g
printf 'g==2*v  unit m\ng==3*v  from 4  unit 1.602176634e-16 m^2 kg s^-2\n' >"$work/wanted"
same "$work/wanted" "$work/out" "a computed column with a unit"
expect 3 "$deltafs" attr "$work/needed" g= --from 5 --unit m
cp "$work/needed/MANIFEST" "$work/needed/MANIFEST.copy"
printf 'attribute name=' >>"$work/needed/MANIFEST"
expect 3 "$deltafs" attr "$work/needed" g= --from 4 --unit m
says "deltafs repair"
