"""An h5py script that knows nothing of DeltaFS: makes a file, or prints a digest of one.

    vfd_script.py make FILE
    vfd_script.py digest FILE
    vfd_script.py trajectories DIR TRAJECTORIES.CSV
"""
import collections
import csv
import hashlib
import sys

import h5py
import numpy


def make(name):
    rng = numpy.random.default_rng(7)
    with h5py.File(name, "w") as f:
        f["gone"] = numpy.arange(100000, dtype="i8")
        group = f.create_group("a/b")
        group.create_dataset("c", data=rng.random((300, 200)), chunks=(32, 32), compression="gzip")
        group.attrs["text"] = "some text"
        grown = f.create_dataset("grown", (0,), maxshape=(None,), dtype="f4", chunks=(100,))
        for i in range(20):
            grown.resize(((i + 1) * 50,))
            grown[i * 50:] = rng.random(50)
        texts = f.create_dataset("texts", (100,), dtype=h5py.string_dtype())
        texts[:] = ["x" * (i % 17) for i in range(100)]
        strided = f.create_dataset("strided", (1000, 1000), dtype="i4")
        strided[::3, ::7] = 5
        strided[500:600, 100:300] = numpy.arange(200)
        table = numpy.zeros(1000, dtype=[("a", "f8"), ("b", "i2"), ("c", "S5")])
        table["a"] = rng.random(1000)
        f["table"] = table
        del f["gone"]
        f.flush()
        f["late"] = numpy.arange(100)
    with h5py.File(name, "r+") as f:
        f["again"] = [1, 2, 3]
        f["strided"][10, :] = 9
        f["link"] = h5py.SoftLink("/a/b/c")
        f["reference"] = f["table"].ref


def digest(name):
    h = hashlib.sha256()

    def visit(path, o):
        h.update(path.encode())
        for key, value in sorted(o.attrs.items()):
            h.update(repr((key, value)).encode())
        if isinstance(o, h5py.Dataset):
            value = o[...]
            h.update(repr((value.dtype, value.shape)).encode())
            if value.dtype == object:
                h.update(repr(value.tolist()).encode() if path != "reference" else b"reference")
            else:
                h.update(value.tobytes())

    with h5py.File(name, "r") as f:
        f.visititems(visit)
    print(h.hexdigest())


def trajectories(folder, answers):
    want = collections.defaultdict(list)
    with open(answers, newline="") as f:
        for row in csv.DictReader(f):
            want[int(row["id"])].append(row)
    for key, rows in want.items():
        with h5py.File("%s/%d" % (folder, key), "r") as f:
            got = f["trajectory"][:]
            assert f.attrs["key"] == key
        assert len(got) == len(rows), key
        for g, r in zip(got, rows):
            assert int(g["epoch"]) == int(r["step"]) and int(g["i"]) == int(r["i"]), key
            for name in ("dx", "dy", "dz", "ux", "uy", "uz", "w"):
                assert g[name].tobytes() == numpy.float32(r[name]).tobytes(), (key, name)
    print(len(want), "keys")


if __name__ == "__main__":
    {"make": make, "digest": digest, "trajectories": trajectories}[sys.argv[1]](*sys.argv[2:])
