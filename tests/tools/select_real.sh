#!/bin/sh
# Select from the dumps of a real run: the most energetic electrons, and conditions, as Python finds them in the dumps. The
# picture of the most energetic ones.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python
[ -d "$real" ] || skip "no dumps of a real run in $real (VPIC_HARRIS may name their folder)"

expect 0 import 3 --format vpic -o "$work/d" "$real"/eparticle.*
"$PYTHON3" - "$cli" "$deltafs" "$work/d" "$real" <<'END' || fail "other records than Python finds"
import glob, math, struct, subprocess, sys, xml.etree.ElementTree
sys.path.insert(0, sys.argv[1])
from oracle import VALUE, grid_of, place, read_all, text_value
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

# Tracks of the ten: where they are, as the headers say. A step of a track is not longer than light goes between two dumps,
# where the shorter way counts in y and z, in which the box is periodic.
top = [key for _, key, _ in last[:10]]
tracks = {key: [] for key in top}
for step in sorted(epochs):
    for key, value in epochs[step]:
        if key in tracks:
            tracks[key].append((step, *place(step, value)))
nx, ny, nz, dt, hx, hy, hz, x0, y0, z0 = grid_of[0, 0]
with open(real + "/eparticle.0.0", "rb") as f:
    cvac = struct.unpack("<f", f.read()[75:79])[0]
box = nx * hx, 4 * ny * hy, nz * hz

def is_wrap(axis, a, b):
    return abs(b[axis] - a[axis]) > box[axis - 1] / 2

wraps = {key: 0 for key in top}
for key, track in tracks.items():
    for a, b in zip(track, track[1:]):
        step = [abs(b[axis] - a[axis]) for axis in (1, 2, 3)]
        step[1:] = [min(s, size - s) for s, size in zip(step[1:], box[1:])]
        if math.hypot(*step) > (b[0] - a[0]) * dt * cvac:
            sys.exit("key %d, step %d: it moves by %r" % (key, b[0], step))
        wraps[key] += is_wrap(3, a, b)
if [len(track) for track in tracks.values()] != [11] * 10 or not any(wraps.values()):
    sys.exit("tracks that say little: %r" % wraps)

# The picture: each point where it belongs, no line across the box.
keys = d + ".keys"
with open(keys, "w") as f:
    subprocess.check_call([deltafs, "select", d, "--top=10", "--by=" + expr, "--epochs=480", "--format=keys"], stdout=f)
if open(keys).read().split() != [str(key) for key in top]:
    sys.exit("other keys")
subprocess.check_call([deltafs, "plot", d, "--keys", keys, "--x=x", "--y=z", "-o", d + ".svg"])
SVG = "{http://www.w3.org/2000/svg}"
groups = list(xml.etree.ElementTree.parse(d + ".svg").getroot().iter(SVG + "g"))
if [g.find(SVG + "title").text for g in groups] != [str(key) for key in top]:
    sys.exit("other tracks in the picture")
dots = [(float(c.get("cx")), float(c.get("cy"))) for g in groups for c in g.iter(SVG + "circle")]
places = [(t[1], t[3]) for key in top for t in tracks[key]]
if len(dots) != len(places):
    sys.exit("%d points instead of %d" % (len(dots), len(places)))
low, high = min(range(len(places)), key=lambda i: places[i][1]), max(range(len(places)), key=lambda i: places[i][1])
scale = (dots[high][1] - dots[low][1]) / (places[high][1] - places[low][1])
for dot, at in zip(dots, places):
    want = dots[low][0] - scale * (at[0] - places[low][0]), dots[low][1] + scale * (at[1] - places[low][1])
    if math.dist(dot, want) > 0.03:
        sys.exit("a point at %r instead of %r" % (dot, want))
for key, group in zip(top, groups):
    if "".join(p.get("d") for p in group.iter(SVG + "path")).count("M") != 1 + wraps[key]:
        sys.exit("key %d: a line across the box, or one that is missing" % key)
END

# The same with ranks.
for options in "--top 1000 --by ux*ux+uy*uy+uz*uz" "--where ux>0.3 --fields x,z,ux --epochs 240:480"; do
    # shellcheck disable=SC2086 # a list of options
    "$deltafs" select "$work/d" --format csv $options >"$work/wanted" || fail "select $options"
    # shellcheck disable=SC2086
    mpi 3 "$deltafs_mpi" select "$work/d" --format csv $options >"$work/got" || fail "deltafs-mpi select $options"
    same "$work/wanted" "$work/got" "deltafs-mpi select $options"
done
