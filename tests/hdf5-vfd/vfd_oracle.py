"""What HDF5's tools print of particles through the driver, against what `deltafs get` says, or a file of the right answers.

    vfd_oracle.py dumps DELTAFS DIR KEY...      the bytes of h5dump -b, of each key
    vfd_oracle.py csv DIR TRAJECTORIES.CSV      the text of h5dump, every value
    vfd_oracle.py records DELTAFS DIR           the records of the directory's own file, by h5dump -b
    vfd_oracle.py computed DELTAFS DIR COLUMN=DATASET...    computed columns, of all trajectories and epochs
"""
import collections
import csv
import json
import os
import re
import struct
import subprocess
import sys
import tempfile


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def dump(path, dataset):
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "bytes")
        run("h5dump", "-d", dataset, "-b", "FILE", "-o", name, path)
        with open(name, "rb") as f:
            return f.read()


def values_of(deltafs, folder, key):
    """Label and value of each record, in order."""
    epochs = [r["epoch"] for r in json.loads(run(deltafs, "get", folder, key, "--format", "json"))]
    found = []
    for epoch, n in collections.Counter(epochs).items():
        raw = run(deltafs, "get", folder, key, "--format", "raw", "--epochs", str(epoch))
        text = json.loads(run(deltafs, "get", folder, key, "--format", "json", "--epochs", str(epoch)))
        sizes = [r["size"] for r in text] if "size" in text[0] else [len(raw) // n] * n
        at = 0
        for size in sizes:
            found.append((epoch, raw[at:at + size]))
            at += size
        assert at == len(raw)
    return found


def dumps(deltafs, folder, *keys):
    for key in keys:
        records = values_of(deltafs, folder, key)
        got = dump(folder + "/" + key, "trajectory")
        if len({len(v) for _, v in records}) == 1:
            want = b"".join(struct.pack("<Q", e) + v for e, v in records)
        else:
            want = b""
            at = 0
            for epoch, value in records:
                want += struct.pack("<QQQ", epoch, at, len(value))
                at += len(value)
            assert dump(folder + "/" + key, "values") == b"".join(v for _, v in records), key
        assert got == want, (key, len(got), len(want))
    print(len(keys), "keys")


def text_of(path):
    text = run("h5dump", "-y", "-m", "%.9g", "-w", "0", "-d", "trajectory", path).decode()
    data = text[text.index("\n   DATA {"):]
    return [[w.strip() for w in row.split(",")] for row in re.findall(r"\{([^{}]*)\}", data)]


def check_csv(folder, answers):
    want = collections.defaultdict(list)
    with open(answers, newline="") as f:
        for row in csv.DictReader(f):
            want[row["id"]].append(row)
    values = 0
    for key, rows in want.items():
        got = text_of(folder + "/" + key)
        assert len(got) == len(rows), (key, len(got), len(rows))
        for g, r in zip(got, rows):
            names = ["step", "dx", "dy", "dz", "i", "ux", "uy", "uz", "w", "rank"]
            assert len(g) == len(names), g
            for name, value in zip(names, g):
                if name in ("step", "i"):
                    assert int(value) == int(r[name]), (key, name)
                else:
                    assert struct.pack("<f", float(value)) == struct.pack("<f", float(r[name])), (key, name)
                values += 1
    print(len(want), "keys,", values, "values")


def records(deltafs, folder):
    """Of a directory whose keys are numbers and whose values have one size."""
    n = 0
    for row in json.loads(run(deltafs, "info", "--json", folder))["epochs"]:
        label = str(row["label"])
        raw = run(deltafs, "scan", folder, "--format", "raw", "--epochs", label)
        keys = [r.split(",")[0] for r in run(deltafs, "scan", folder, "--format", "csv", "--epochs", label).decode().split("\n")[1:-1]]
        size = len(raw) // len(keys)
        want = b"".join(struct.pack("<Q", int(k)) + raw[i * size:(i + 1) * size] for i, k in enumerate(keys))
        assert dump(folder, label + "/records") == want, label
        n += len(keys)
    print(n, "records")


def computed(deltafs, folder, *columns):
    rows = json.loads(run(deltafs, "scan", folder, "--format", "json"))
    for column, dataset in (c.split("=") for c in columns):
        for key in {r["key"] for r in rows}:
            wanted = sorted((r["epoch"], r[column]) for r in rows if r["key"] == key)
            got = dump("%s/%d" % (folder, key), dataset)
            assert got == struct.pack("<%dd" % len(wanted), *(v for _, v in wanted)), (key, column)
        for label in {r["epoch"] for r in rows}:
            wanted = [r[column] for r in rows if r["epoch"] == label]
            assert dump(folder, "%d/%s" % (label, dataset)) == struct.pack("<%dd" % len(wanted), *wanted), (label, column)
    print(len(rows), "rows")


if __name__ == "__main__":
    {"dumps": dumps, "csv": check_csv, "records": records, "computed": computed}[sys.argv[1]](*sys.argv[2:])
