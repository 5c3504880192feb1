"""Files of the layouts that particle codes write, and of odd ones, by h5py; and whether what h5rows_show says of where
their rows stand gives the values that h5py reads.

    h5rows.py SHOW LIBHDF5|'' FOLDER
"""
import json
import os
import subprocess
import sys

import h5py
import numpy

show, library, folder = sys.argv[1:4]
rng = numpy.random.default_rng(8)
checked = 0


def ask(path, pattern, *how):
    return subprocess.run([show, path, pattern] + ([library] if library else []) + list(how), capture_output=True,
                          text=True)


def dtype_of(text):
    order, kind, size = text[0], text[1], text[2:]
    return numpy.dtype(("V" if kind in "SV" else order + kind) + size)


def rows_of(path, raw, column, rows):
    """A column's values, by its places in the file."""
    kind = dtype_of(column["type"])
    if "constant" in column:
        return numpy.frombuffer(bytes.fromhex(column["constant"]) * rows, dtype=kind)
    if "dataset" in column:
        with h5py.File(path, "r") as f:
            elements = numpy.frombuffer(f[column["dataset"]][...].tobytes(), "u1").reshape(rows, column["stride"])
        return numpy.frombuffer(elements[:, column["offset"]:][:, :kind.itemsize].tobytes(), dtype=kind)
    pieces = column["pieces"] or [[0, rows, column["offset"]]]
    values = []
    next_row = 0
    for first, count, offset in pieces:
        assert first == next_row, "pieces with a gap"
        next_row += count
        place = offset + numpy.arange(count, dtype="u8") * column["stride"]
        at = place[:, None] + numpy.arange(kind.itemsize, dtype="u8")
        values.append(raw[at].tobytes())
    assert next_row == rows, "pieces of %d rows of %d" % (next_row, rows)
    return numpy.frombuffer(b"".join(values), dtype=kind)


def check(path, pattern, expected):
    """expected: name of the table -> (label, key's name, {column: values}), in the order of labels."""
    global checked
    result = ask(path, pattern)
    assert result.returncode == 0, result.stderr
    assert not library or ask(path, pattern, "each").stdout == result.stdout, (path, pattern)
    tables = json.loads(result.stdout)
    raw = numpy.memmap(path, dtype="u1", mode="r")
    assert [t["name"] for t in tables] == list(expected), (pattern, [t["name"] for t in tables])
    for table in tables:
        label, key, columns = expected[table["name"]]
        assert table["label"] == label, (table["name"], table["label"], label)
        assert table["columns"][table["key"]]["name"] == key, table
        assert sorted(c["name"] for c in table["columns"]) == sorted(columns), (
            table["name"], [c["name"] for c in table["columns"]], sorted(columns))
        for column in table["columns"]:
            want = numpy.ascontiguousarray(columns[column["name"]])
            got = rows_of(path, raw, column, table["rows"])
            if got.dtype.kind == "V":
                assert got.tobytes() == want.tobytes(), (table["name"], column["name"])
            else:
                assert got.dtype.kind == want.dtype.kind and got.itemsize == want.itemsize, (column, want.dtype)
                assert (got == want).all(), (table["name"], column["name"])
            checked += len(got)


def refused(path, pattern, text):
    result = ask(path, pattern)
    assert result.returncode == 1 and text in result.stderr, (pattern, result.returncode, result.stderr, result.stdout)
    print("refused:", result.stderr.strip()[-160:])


def particles(n):
    return {
        "id": rng.permutation(n).astype("u8") + 1,
        "x": rng.random(n, dtype="f4"),
        "y": rng.random(n),
        "cell": rng.integers(-5, 5, n).astype("i4"),
    }


def name(text):
    return os.path.join(folder, text)


# h5part, VPIC and others: a group a step, datasets of one dimension; steps that HDF5 sorts by their names.
for form, pattern in (("Step#%d", "/Step#*/id"), ("Timestep_%d", "/Timestep_*/id"), ("T.%d", "/T.*/id"),
                      ("%05d", "/[0-9]*/id"), ("T.%d", "id"), ("a/b/it%d/p0", "/a/?/it*/p0/id"), ("run3_%d", "run*/id")):
    expected = {}
    with h5py.File(name("steps.h5"), "w") as f:
        for step in (0, 5, 10, 100):
            group = f.create_group(form % step)
            rows = particles(50 + step)
            for column, values in rows.items():
                group[column] = values
            group["other"] = numpy.arange(7)
            group["scalar"] = 5
            group["texts"] = ["a"] * len(rows["id"])
            group["soft"] = h5py.SoftLink("/nowhere")
            group["outside"] = h5py.ExternalLink("nowhere.h5", "/x")
            expected["/" + form % step] = (step, "id", rows)
    check(name("steps.h5"), pattern, expected)
refused(name("steps.h5"), "/Timestep_*/ID", "it has no dataset /Timestep_*/ID")
refused(name("steps.h5"), "/run*/x", "is no key: keys are integers")
refused(name("steps.h5"), "/run*/[ic]*", "is the second dataset of its group")
refused(name("steps.h5"), "/run*/scalar", "not of one dimension")
refused(name("steps.h5"), "/", "is no path")
with open(name("text"), "w") as f:
    f.write("no HDF5 at all\n")
refused(name("text"), "/id", "HDF5 cannot open it")
refused(name("nothing.h5"), "/id", "HDF5 cannot open it")

# openPMD: records in groups, species, constant components as groups without datasets.
expected = {}
with h5py.File(name("openpmd.h5"), "w") as f:
    for step in (100, 20):
        for species in ("e", "p1"):
            rows = particles(64)
            base = f.create_group("data/%d/particles/%s" % (step, species))
            base["id"] = rows["id"]
            columns = {"id": rows["id"]}
            for record in ("position", "momentum"):
                for axis in "xyz":
                    base["%s/%s" % (record, axis)] = columns["%s.%s" % (record, axis)] = rng.random(64)
            base.create_group("charge").attrs["value"] = 1.0
            expected["/data/%d/particles/%s" % (step, species)] = (step, "id", columns)
expected = dict(sorted(expected.items(), key=lambda e: (e[1][0], e[0])))
check(name("openpmd.h5"), "particles/*/id", expected)
check(name("openpmd.h5"), "/data/*/particles/e/id", {k: v for k, v in expected.items() if k.endswith("/e")})

# Compound datasets, with members that nest, arrays, texts, bytes, and some that have no place in a row.
inner = numpy.dtype([("a", "i2"), ("b", ">u4")])
row = numpy.dtype([("id", "u4"), ("pos", "f4", (3,)), ("in", inner), ("tag", "S5"), ("raw", "V3"), ("half", "f2"),
                   ("big", ">f8"), ("many", "f4", (20,)), ("flag", "?")])
rows = numpy.zeros(40, dtype=row)
rows["id"] = rng.permutation(40)
rows["pos"] = rng.random((40, 3))
rows["in"]["b"] = rng.integers(0, 2**32, 40)
rows["tag"] = [b"t%d" % i for i in range(40)]
rows["raw"] = [bytes([i, i + 1, 2]) for i in range(40)]
rows["half"] = rng.random(40)
rows["big"] = rng.random(40)
want = {"id": rows["id"], "in.a": rows["in"]["a"], "in.b": rows["in"]["b"], "tag": rows["tag"], "raw": rows["raw"],
        "half": rows["half"], "big": rows["big"], "flag": rows["flag"].astype("i1")}
for i in range(3):
    want["pos.%d" % i] = rows["pos"][:, i]
with h5py.File(name("compound_77.h5"), "w") as f:
    f["Step#4/particles"] = rows
    f["dump.9"] = rows
    f["plain"] = rows
    f["Step#4/beside"] = numpy.arange(40)
check(name("compound_77.h5"), "/Step#*/particles.id", {"/Step#4/particles": (4, "id", want)})
check(name("compound_77.h5"), "/dump.*.id", {"/dump.9": (9, "id", want)})
check(name("compound_77.h5"), "/plain.in.b", {"/plain": (77, "in.b", want)})
refused(name("compound_77.h5"), "/plain", "name the member")
refused(name("compound_77.h5"), "/plain.ids", "has no such member")
refused(name("compound_77.h5"), "/plain.pos.1", "is no key")
refused(name("compound_77.h5"), "/plain.in.*", "name one")

# Chunks, a second dimension, what was never written, a user block; Gadget's names.
for user_block in (0, 1024):
    with h5py.File(name("chunks.h5"), "w", userblock_size=user_block) as f:
        n = 1003
        rows = particles(n)
        g = f.create_group("PartType1")
        for column, values in rows.items():
            g.create_dataset(column, data=values, chunks=(100,))
            f.create_dataset("junk" + column, data=values, chunks=(17,))
        positions = rng.random((n, 3))
        g.create_dataset("Coordinates", data=positions, chunks=(64, 3))
        speeds = rng.random((n, 2), dtype="f4")
        g["Velocities"] = speeds
        g["Matrix"] = rng.random((n, 40))
        g.create_dataset("unwritten", (n,), dtype="f8")
        grown = g.create_dataset("grown", (10,), maxshape=(None,), chunks=(16,), dtype="i8")
        for size in (20, 500, n):
            f["more%d" % size] = rng.random(100)
            grown.resize((size,))
            grown[...] = numpy.arange(size)
        for i in range(3):
            rows["Coordinates.%d" % i] = positions[:, i]
        for i in range(2):
            rows["Velocities.%d" % i] = speeds[:, i]
        rows["grown"] = numpy.arange(n, dtype="i8")
    check(name("chunks.h5"), "/PartType*/id", {"/PartType1": (1, "id", rows)})
    check(name("chunks.h5"), "/PartType1/id", {"/PartType1": (1, "id", rows)})
    os.rename(name("chunks.h5"), name("snap_010.hdf5"))
    check(name("snap_010.hdf5"), "/PartType1/id", {"/PartType1": (10, "id", rows)})

# What is in no plain list of places is read by HDF5; what is in other files, or was never written, is refused.
with h5py.File(name("bad.h5"), "w") as f:
    n = 100
    read = {"gzip": {"id": numpy.arange(n)}, "sibling": {"id": numpy.arange(n), "x": numpy.arange(n)}}
    f.create_dataset("gzip/id", data=read["gzip"]["id"], compression="gzip")
    f["sibling/id"] = read["sibling"]["id"]
    f.create_dataset("sibling/x", data=read["sibling"]["x"], shuffle=True, chunks=(10,))
    part = f.create_dataset("part/id", (n,), dtype="i8", chunks=(10,))
    part[:15] = 1
    read["part"] = {"id": (numpy.arange(n) < 15).astype("i8")}
    part = f.create_dataset("gap/id", (n,), dtype="i8", chunks=(10,))
    part[50:] = 1
    read["gap"] = {"id": (numpy.arange(n) >= 50).astype("i8")}
    f.create_dataset("never/id", (n,), dtype="i8")
    f["cut/id"] = numpy.arange(n)
    cut = rng.random((n, 3))
    f.create_dataset("cut/x", data=cut, chunks=(10, 2))
    read["cut"] = {"id": numpy.arange(n), **{"x.%d" % i: cut[:, i] for i in range(3)}}
    compound = numpy.zeros(n, dtype=[("a", "f4"), ("b", ">i2"), ("c", "u8", (2,))])
    compound["b"] = numpy.arange(n) - 50
    compound["c"] = rng.integers(0, 99, (n, 2))
    f["whole/id"] = numpy.arange(n)
    f.create_dataset("whole/v", data=compound, compression="gzip", fletcher32=True)
    read["whole"] = {"id": numpy.arange(n), "v.a": compound["a"], "v.b": compound["b"], "v.c.0": compound["c"][:, 0],
                     "v.c.1": compound["c"][:, 1]}
    f["text/id"] = numpy.arange(n)
    f.create_dataset("text/t", data=numpy.zeros(n, dtype=[("a", "f4"), ("t", "S3")]), compression="gzip")
    f.create_dataset("two/id", data=numpy.ones((n, 3), dtype="i8"))
    f.create_dataset("ext/id", (n,), dtype="i8", external=[(name("outside"), 0, 800)])[...] = 3
    layout = h5py.VirtualLayout((n,), "i8")
    layout[:] = h5py.VirtualSource(f["sibling/id"])
    f.create_virtual_dataset("virtual/id", layout)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    f.create_group("compact")
    d = h5py.h5d.create(f["compact"].id, b"id", h5py.h5t.NATIVE_INT64, h5py.h5s.create_simple((n,)), plist)
    read["compact"] = {"id": numpy.arange(n)}
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, read["compact"]["id"])
    f["empty/id"] = numpy.zeros(0, dtype="i8")
    f["constant/id"] = numpy.arange(n)
    constants = {"f": numpy.float32(2.5), "i": numpy.int16(-3), "u": numpy.uint64(2**63 + 1)}
    for constant, value in constants.items():
        f.create_group("constant/" + constant).attrs["value"] = value
        f["constant/" + constant].attrs["shape"] = numpy.array([n], dtype="u8")
    f["constant"].create_group("other").attrs["value"] = 1.0
    f["constant/other"].attrs["shape"] = numpy.array([n + 1], dtype="u8")
    read["constant"] = {"id": numpy.arange(n), **{k: numpy.full(n, v) for k, v in constants.items()}}
    loop = f.create_group("loop")
    loop["self"] = loop
    loop["twice"] = loop
for group, rows in read.items():
    check(name("bad.h5"), "/%s/id" % group, {"/" + group: (0, "id", rows)})
for group, text in (("never", "never written"), ("two", "name one"), ("ext", "in other files"),
                    ("virtual", "is virtual"), ("text", "has texts")):
    refused(name("bad.h5"), "/%s/id" % group, text)
refused(name("bad.h5"), "/empty/id", "has no elements")
refused(name("bad.h5"), "nothing/at/all", "no dataset")

# One binary for many a step.
with h5py.File(name("many.h5"), "w") as f:
    want = {}
    for step in range(300):
        rows = {"id": numpy.arange(10) + step, "v": rng.random(10)}
        for column, values in rows.items():
            f["Timestep_%d/%s" % (step, column)] = values
        want["/Timestep_%d" % step] = (step, "id", rows)
check(name("many.h5"), "/Timestep_*/id", want)
print("%d values at their places" % checked)
