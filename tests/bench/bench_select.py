"""bench_select.py DELTAFS DELTAFS_MPI FOLDER RECORDS RUNS [VPIC_FOLDER]: what `deltafs select` costs beside NumPy over raw
dumps and DuckDB over the same records in Parquet, and what a scan of 3 of 8 columns costs beside a scan of all.

Processor time, user and system, everything in the page cache. That of deltafs includes the start of the process; those of NumPy and
DuckDB, which run on one thread, do not. In each run everything is measured once, in turn."""

import glob
import os
import resource
import statistics
import subprocess
import sys
import time

import duckdb
import numpy as np

COLUMNS = "abcdefgh"
RECORD = np.dtype([(c, "<f4") for c in COLUMNS] + [("id", "<u8")])
VPIC = np.dtype([(c, "<i4" if c == "i" else "<f4") for c in ("dx", "dy", "dz", "i", "ux", "uy", "uz", "w")])
TOP = 10


def make_dumps(folder, records):
    """Positions and weights like those of particles, in two files."""
    rng = np.random.default_rng(1)
    ids = rng.permutation(records).astype("<u8")
    names = []
    for part in range(2):
        n = records // 2
        a = np.empty(n, RECORD)
        for c in "abc":
            a[c] = rng.uniform(-1, 1, n)
        for c in "def":
            a[c] = rng.normal(0, 0.1, n)
        for c in "gh":
            a[c] = rng.normal(0, 1, n)
        a["id"] = ids[part * n : (part + 1) * n]
        names.append(os.path.join(folder, "dump.%d" % part))
        a.tofile(names[-1])
    return names


def make_parquet(path, arrays):
    connection = duckdb.connect()
    connection.register("records", arrays)
    connection.execute("COPY (SELECT * FROM records) TO '%s' (FORMAT parquet)" % path)
    connection.close()


def of_children(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, out


def of_function(function, *arguments):
    before = time.process_time()
    out = function(*arguments)
    return time.process_time() - before, out


def top_of(best, values, ids):
    at = np.argpartition(-values, TOP)[:TOP]
    best += [(-float(values[k]), int(ids[k])) for k in at]


def numpy_raw(names):
    best = []
    for name in names:
        a = np.fromfile(name, RECORD)
        top_of(best, a["d"] * a["d"] + a["e"] * a["e"] + a["f"] * a["f"], a["id"])
    return sorted(key for _, key in sorted(best)[:TOP])


def numpy_where(names):
    found = []
    for name in names:
        a = np.fromfile(name, RECORD)
        found.append(a["id"][a["d"] * a["d"] + a["e"] * a["e"] + a["f"] * a["f"] > 0.2])
    return sorted(np.concatenate(found).tolist())


def read_vpic(name):
    with open(name, "rb") as f:
        data = f.read()
    n = int(np.frombuffer(data, "<i4", 1, 111)[0])
    return np.frombuffer(data, VPIC, n, 115), np.frombuffer(data, "<u8", n, 115 + 32 * n + 12)


def numpy_vpic(names):
    best = []
    for name in names:
        p, ids = read_vpic(name)
        top_of(best, p["ux"] * p["ux"] + p["uy"] * p["uy"] + p["uz"] * p["uz"], ids)
    return sorted(key for _, key in sorted(best)[:TOP])


def duckdb_ids(connection, query):
    return sorted(row[0] for row in connection.execute(query).fetchall())


def keys_of(out):
    return sorted({int(key) for key in out.split()})


class Times:
    def __init__(self):
        self.of = {}

    def add(self, name, seconds):
        self.of.setdefault(name, []).append(seconds)

    def show(self, title, base, names):
        print(title)
        for name in names:
            t, ratio = self.of[name], [x / y for x, y in zip(self.of[name], self.of[base])]
            print(
                "  %-34s %8.3f s   %5.2f times (%.2f to %.2f)"
                % (name, statistics.median(t), statistics.median(ratio), min(ratio), max(ratio))
            )


def compare(times, title, deltafs, numpy, duck):
    """All three once, with the same result."""
    seconds, out = of_children(deltafs)
    times.add(title + "deltafs", seconds)
    want = keys_of(out)
    for name, (function, *arguments) in (("numpy", numpy), ("duckdb", duck)):
        seconds, ids = of_function(function, *arguments)
        times.add(title + name, seconds)
        if sorted(set(ids)) != want:
            sys.exit("%s%s finds others than deltafs" % (title, name))


def main(deltafs, mpi, folder, records, runs, vpic=None):
    os.makedirs(folder)
    records, runs = int(records) // 2 * 2, int(runs)
    schema = ",".join(c + ":f4" for c in COLUMNS) + ",id:u8"
    names = make_dumps(folder, records)
    whole, part = os.path.join(folder, "all"), os.path.join(folder, "part")
    importing = [mpi, "import", "-q", "--format", "raw", "--schema", schema, "--key", "id", "--epoch", "1", "-o"]
    subprocess.run(importing + [whole] + names, check=True)
    np.fromfile(names[0], RECORD, records // 8).tofile(os.path.join(folder, "some"))
    subprocess.run(importing + [part, os.path.join(folder, "some")], check=True)
    parquet = os.path.join(folder, "all.parquet")
    make_parquet(parquet, {c: np.concatenate([np.fromfile(n, RECORD)[c] for n in names]) for c in RECORD.names})
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    if vpic:
        dumps = glob.glob(os.path.join(vpic, "eparticle.*"))
        run, run_parquet = os.path.join(folder, "run"), os.path.join(folder, "run.parquet")
        subprocess.run([mpi, "import", "-q", "--format", "vpic", "-o", run] + dumps, check=True)
        parts = [read_vpic(name) for name in dumps]
        arrays = {c: np.concatenate([p[c] for p, _ in parts]) for c in VPIC.names}
        arrays["id"] = np.concatenate([ids for _, ids in parts])
        make_parquet(run_parquet, arrays)
    times, energy = Times(), "d*d + e*e + f*f"
    select = [deltafs, "select", whole, "--format", "keys"]
    for _ in range(runs):
        query = "SELECT id FROM '%s' ORDER BY %s DESC LIMIT %d" % (parquet, energy, TOP)
        compare(
            times, "top: ", select + ["--top", str(TOP), "--by", energy], (numpy_raw, names), (duckdb_ids, connection, query)
        )
        query = "SELECT id FROM '%s' WHERE %s > 0.2" % (parquet, energy)
        compare(
            times, "where: ", select + ["--where", energy + " > 0.2"], (numpy_where, names), (duckdb_ids, connection, query)
        )
        if vpic:
            energy_of = "ux*ux + uy*uy + uz*uz"
            query = "SELECT id FROM '%s' ORDER BY %s DESC LIMIT %d" % (run_parquet, energy_of, TOP)
            command = [deltafs, "select", run, "--format", "keys", "--fields", "ux", "--top", str(TOP), "--by", energy_of]
            compare(times, "run: ", command, (numpy_vpic, dumps), (duckdb_ids, connection, query))
        times.add("start of deltafs", of_children([deltafs, "--version"])[0])
        times.add("csv: all 8 columns", of_children([deltafs, "scan", part, "--format", "csv"])[0])
        command = [deltafs, "select", part, "--fields", "a,b,c", "--format", "csv"]
        times.add("csv: 3 columns", of_children(command)[0])
        times.add("no rows: all 8 columns", of_children(select + ["--where", "+".join(COLUMNS) + " > 999"])[0])
        times.add("no rows: 3 columns", of_children(select + ["--where", "a+b+c > 999"])[0])
    print("start of deltafs, which its times include: %.3f s" % statistics.median(times.of["start of deltafs"]))
    for title, what in (
        ("top: ", "%d of %d records with the largest %s" % (TOP, records, energy)),
        ("where: ", "all of %d records with %s > 0.2" % (records, energy)),
    ) + ((("run: ", "%d of the real run" % TOP),) if vpic else ()):
        times.show(what, title + "deltafs", [title + name for name in ("deltafs", "numpy", "duckdb")])
    times.show("scan of %d records, as text" % (records // 8), "csv: 3 columns", ["csv: 3 columns", "csv: all 8 columns"])
    times.show("conditions that hold nowhere", "no rows: 3 columns", ["no rows: 3 columns", "no rows: all 8 columns"])


if __name__ == "__main__":
    main(*sys.argv[1:])
