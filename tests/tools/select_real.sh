#!/bin/sh
# Select from the dumps of a real run: the most energetic electrons, and conditions, as Python finds them in the dumps.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python
[ -d "$real" ] || skip "no dumps of a real run in $real (VPIC_HARRIS may name their folder)"

expect 0 import 3 --format vpic -o "$work/d" "$real"/eparticle.*
"$PYTHON3" - "$cli" "$deltafs" "$work/d" "$real" <<'END' || fail "other records than Python finds"
import glob, subprocess, sys
sys.path.insert(0, sys.argv[1])
from oracle import VALUE, read_all, text_value
deltafs, d, real = sys.argv[2:]
epochs = read_all(glob.glob(real + "/eparticle.*"))

def select(*options):
    return subprocess.check_output([deltafs, "select", d, "--format=csv", "--fields=dx,dy,dz,i,ux,uy,uz,w,rank", *options]).decode()

def check(name, got, records):
    want = "key,epoch,dx,dy,dz,i,ux,uy,uz,w,rank\n" + "".join("%d,%d,%s\n" % (k, e, text_value(v)) for e, k, v in records)
    if got != want:
        sys.exit("%s: %d lines instead of %d" % (name, got.count("\n"), want.count("\n")))

def energy(value):
    _, _, _, _, ux, uy, uz, _, _ = VALUE.unpack(value)
    return ux * ux + uy * uy + uz * uz

expr = "ux*ux+uy*uy+uz*uz"
last = sorted(((480, k, v) for k, v in epochs[480]), key=lambda r: (-energy(r[2]), r[1]))
check("top 10", select("--top=10", "--by=" + expr, "--epochs=480"), last[:10])
every = sorted(((e, k, v) for e in epochs for k, v in epochs[e]), key=lambda r: (-energy(r[2]), r[1], r[0]))
check("top 1000 of all", select("--top=1000", "--by=" + expr), every[:1000])
most = every[5000]
chosen = sorted((r for r in every if energy(r[2]) > energy(most[2])), key=lambda r: (r[0], r[1]))
check("where", select("--where=%s > %r" % (expr, energy(most[2]))), chosen)
check("all of an epoch", select("--epochs=480"), sorted(last, key=lambda r: r[1]))
END
