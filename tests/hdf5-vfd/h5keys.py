"""Particles in HDF5 files by h5py, which knows nothing of DeltaFS, and the rows of each ID by reading everything.

    h5keys.py make FILE LAYOUT STEP... [rows=N] [seed=N] [mode=a]
    h5keys.py leave ...                             the same, and does not close the file
    h5keys.py ids LAYOUT FILE...                    all IDs, one a line
    h5keys.py right DELTAFS WHAT LAYOUT FILE...     whether `deltafs get WHAT` and `deltafs select WHAT` say so of all
"""
import collections
import json
import re
import subprocess
import sys

import h5py
import numpy

def ids(rng, rows):
    """Of most particles, in any order; in each step some are missing, and one is there twice."""
    picked = rng.permutation(rows + rows // 10)[:rows].astype("u8") * 3 + 1
    picked[-1] = picked[0]
    return picked


def make(f, layout, step, rows, rng):
    key = ids(rng, rows)
    if layout == "vpic":
        group = f.create_group("Timestep_%d" % step)
        group["id1"] = key.astype("i4")
        group["id2"] = rng.integers(-9, 9, rows).astype("i4")
        for name in ("x", "y", "z", "px", "py", "pz"):
            group[name] = rng.random(rows, dtype="f4")
    elif layout == "h5part":
        group = f.create_group("Step#%d" % step)
        group.create_dataset("id", data=key.astype("i8"), chunks=(97,))
        group.create_dataset("x", data=rng.random(rows), chunks=(rows // 3,))
        group["y"] = rng.random(rows)
        group["bins"] = numpy.arange(5)
    elif layout == "openpmd":
        for species, some in (("e", key), ("ions", ids(rng, rows // 2))):
            base = f.create_group("data/%d/particles/%s" % (step, species))
            base["id"] = some
            for record in ("position", "momentum"):
                for axis in "xyz":
                    base["%s/%s" % (record, axis)] = rng.random(len(some), dtype="f4")
            base.create_group("charge").attrs["value"] = -1.0
            for name, value in (("mass", 1836.25), ("positionOffset/x", numpy.float32(3)), ("weight", numpy.int64(-7))):
                constant = base.create_group(name)
                constant.attrs["value"] = value
                constant.attrs["shape"] = numpy.array([len(some)], dtype="u8")
    elif layout == "compound":
        data = numpy.zeros(rows, dtype=[("tag", "S6"), ("id", ">u4"), ("v", "f8", (3,)), ("n", ">i2"), ("t", "f4")])
        data["id"] = key
        data["tag"] = [b"%d" % (k % 1000) for k in key]
        data["v"] = rng.random((rows, 3))
        data["n"] = rng.integers(-300, 300, rows)
        data["t"] = step
        f["dump_%d/electrons" % step] = data
    elif layout == "big":
        group = f.create_group("big_%d" % step)
        group.create_dataset("q", data=key.astype(">i8"))
        group.create_dataset("w", data=rng.random(rows), dtype=">f8")
        group.create_dataset("u", data=rng.random(rows), dtype=">f4")
        group.create_dataset("i", data=rng.integers(-9, 9, rows), dtype=">i4")
    elif layout == "gadget":
        group = f.create_group("PartType1")
        group["ParticleIDs"] = key
        group["Coordinates"] = rng.random((rows, 3))
        group.create_dataset("Velocities", data=rng.random((rows, 3), dtype="f4"), chunks=(128, 3))
    elif layout == "packed":
        f.create_dataset("p_%d/id" % step, data=key, compression="gzip")
        f.create_dataset("p_%d/v" % step, data=rng.random(rows, dtype="f4"), shuffle=True, chunks=(64,))
        f.create_dataset("p_%d/x" % step, data=rng.random((rows, 3)), chunks=(50, 2), compression="gzip", fletcher32=True)
        f["p_%d/plain" % step] = rng.random(rows)
    elif layout == "strange":
        f.create_dataset("p_%d/id" % step, data=key)
        f.create_dataset("p_%d/v" % step, data=numpy.arange(rows) // 100, compression="lzf")
    elif layout == "virtual":
        f["real"] = key
        made = h5py.VirtualLayout((rows,), key.dtype)
        made[:] = h5py.VirtualSource(f["real"])
        f.create_virtual_dataset("p_%d/id" % step, made)
    f.create_dataset("fields/%d" % step, data=rng.random((20, 20)), compression="gzip")


def tables(f, layout, path):
    """(label, the key's values, {column: values}) of each, in no order."""
    def flat(group, prefix, rows):
        for name, item in group.items():
            if isinstance(item, h5py.Group) and "shape" in item.attrs:
                if tuple(item.attrs["shape"]) == (rows,):
                    yield prefix + name, numpy.full(rows, item.attrs["value"])
            elif isinstance(item, h5py.Group):
                yield from flat(item, prefix + name + ".", rows)
            elif item.ndim == 2 and len(item) == rows:
                for i in range(item.shape[1]):
                    yield "%s%s.%d" % (prefix, name, i), item[:, i]
            elif item.ndim == 1 and len(item) == rows:
                yield prefix + name, item[...]

    if layout == "openpmd":
        for step in f["data"]:
            for group in f["data"][step]["particles"].values():
                columns = dict(flat(group, "", len(group["id"])))
                yield int(step), columns.pop("id"), columns
    elif layout == "compound":
        for name in f:
            if name.startswith("dump_"):
                data = f[name]["electrons"][...]
                columns = {n: data[n] for n in ("tag", "n", "t")}
                for i in range(3):
                    columns["v.%d" % i] = data["v"][:, i]
                yield int(name[5:]), data["id"], columns
    elif layout == "gadget":
        columns = dict(flat(f["PartType1"], "", len(f["PartType1/ParticleIDs"])))
        yield int(re.search(r"_([0-9]+)\.h5$", path).group(1)), columns.pop("ParticleIDs"), columns
    else:
        prefix, key = {"vpic": ("Timestep_", "id1"), "h5part": ("Step#", "id"), "big": ("big_", "q"), "packed": ("p_", "id")}[layout]
        for name in f:
            if name.startswith(prefix):
                columns = dict(flat(f[name], "", len(f[name][key])))
                yield int(name[len(prefix):]), columns.pop(key), columns


def everything(layout, paths):
    """ID -> sorted [(label, ((column, value), ...)), ...]"""
    rows = collections.defaultdict(list)
    for path in paths:
        with h5py.File(path, "r") as f:
            for label, keys, columns in tables(f, layout, path):
                names = sorted(columns)
                plain = [columns[n].tolist() for n in names]
                for i, key in enumerate(keys.tolist()):
                    values = tuple((n, v[i].decode() if isinstance(v[i], bytes) else v[i]) for n, v in zip(names, plain))
                    rows[key].append((label, values))
    return {key: sorted(some) for key, some in rows.items()}


def check_rows(answers, right):
    got = collections.defaultdict(list)
    labels = collections.defaultdict(list)
    for row in json.loads(answers):
        key, label = row.pop("key"), row.pop("epoch")
        got[key].append((label, tuple(sorted(row.items()))))
        labels[key].append(label)
    for key, some in labels.items():
        assert some == sorted(some), "rows of %d are not in the order of their labels" % key
    for key, some in right.items():
        assert sorted(got[key]) == some, "key %d: %s instead of %s" % (key, sorted(got[key])[:3], some[:3])
    assert set(got) == set(right), "keys that no row has"


def check(deltafs, what, layout, paths):
    right = everything(layout, paths)
    for command in (["get", what, "--keys", "-"], ["select", what]):
        answers = subprocess.run([deltafs, *command, "--format", "json"], stdout=subprocess.PIPE,
                                 input="\n".join(map(str, right)).encode(), check=True).stdout
        check_rows(answers, right)
    print("%d IDs, %d rows, %d values: right" % (len(right), sum(map(len, right.values())),
                                                 sum(len(row[1]) for some in right.values() for row in some)))


def main():
    what, *rest = sys.argv[1:]
    if what in ("make", "leave"):
        path, layout, *rest = rest
        given = dict(r.split("=") for r in rest if "=" in r)
        f = h5py.File(path, given.get("mode", "w"))
        for step in (int(r) for r in rest if "=" not in r):
            rng = numpy.random.default_rng([int(given.get("seed", 1)), step])
            make(f, layout, step, int(given.get("rows", 1000)), rng)
        if what == "make":
            f.close()
    elif what == "ids":
        for key in sorted(everything(rest[0], rest[1:])):
            print(key)
    elif what == "right":
        check(*rest[:3], rest[3:])
    else:
        sys.exit(__doc__)


main()
