"""bench_index.py LIBRARY DELTAFS DELTAFS_MPI SLOW_WRITE FOLDER RECORDS RUNS: what an index by value saves `deltafs select`, beside
DuckDB on Parquet sorted by the same value, and what it costs to write it together with the directory. SLOW_WRITE: the library of
slow_write.c.

Everything is in the page cache; once more, what is written takes as long as to storage of SLOW bytes per second. The times of deltafs include the start of the process and the printing of the rows; those of
DuckDB do not. In each run everything is measured once, in turn."""

import ctypes
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

import duckdb
import numpy as np

COLUMNS = "abcdefgh"
RECORD = np.dtype([("id", "<u8")] + [(c, "<f4") for c in COLUMNS])
SCHEMA = ",".join(c + ":f4" for c in COLUMNS)
VALUE = "d*d+e*e+f*f"
DUCKDB_VALUE = "d::DOUBLE*d::DOUBLE + e::DOUBLE*e::DOUBLE + f::DOUBLE*f::DOUBLE"
AT_ONCE = 1 << 21
SHARE = 0.001
TOP = 100
SITU = 4 * AT_ONCE
SLOW = 100e6


def make_records(ids, seed):
    """Positions, momenta and weights like those of particles."""
    rng = np.random.default_rng(seed)
    a = np.empty(len(ids), RECORD)
    a["id"] = ids
    for c in "abc":
        a[c] = rng.uniform(-1, 1, len(ids))
    for c in "def":
        a[c] = rng.normal(0, 0.1, len(ids))
    for c in "gh":
        a[c] = rng.normal(0, 1, len(ids))
    return a


def make_dumps(folder, records):
    ids, names, value = np.random.default_rng(0).permutation(records), [], []
    for at in range(0, records, AT_ONCE):
        a = make_records(ids[at : at + AT_ONCE], at)
        names.append(os.path.join(folder, "dump.%d" % len(names)))
        a.tofile(names[-1])
        value.append(sum(a[c].astype("f8") ** 2 for c in "def"))
    return names, float(np.quantile(np.concatenate(value), 1 - SHARE))


def make_parquet(path, names):
    """Sorted by the value."""
    connection = duckdb.connect(path + ".db")
    for name in names:
        a = {c: np.fromfile(name, RECORD)[c] for c in RECORD.names}
        connection.register("dump", a)
        select = "SELECT *, %s AS value FROM dump" % DUCKDB_VALUE
        connection.execute(("CREATE TABLE r AS " if name == names[0] else "INSERT INTO r ") + select)
        connection.unregister("dump")
    connection.execute("COPY (SELECT * FROM r ORDER BY value) TO '%s' (FORMAT parquet)" % path)
    connection.close()
    os.remove(path + ".db")


def of_child(command):
    """Processor time, wall time, output."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    end, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(command), done.stderr.decode()))
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, end - begin, done.stdout


def of_duckdb(connection, query):
    cpu, begin = time.process_time(), time.perf_counter()
    rows = connection.execute(query).fetchnumpy()
    return time.process_time() - cpu, time.perf_counter() - begin, rows["id"]


class Times:
    def __init__(self):
        self.of = {}

    def add(self, name, cpu, wall):
        self.of.setdefault(name, []).append((cpu, wall))

    def show(self, name, base, word):
        """Medians, and how many times faster than the base; the least and the most of a run."""
        text = "    %-22s" % word
        for which, unit in enumerate(("s processor", "s wall")):
            mine, other = ([t[which] for t in self.of[of]] for of in (name, base))
            ratio = [y / max(x, 1e-4) for x, y in zip(mine, other)]
            text += " %8.4f %s, %5.1f times faster (%.1f to %.1f)" % (
                (statistics.median(mine), unit, statistics.median(ratio), min(ratio), max(ratio))
            )
        print(text)


def compare(deltafs, whole, least, parquet, runs):
    """The indexes are at whole + ".few" and whole + ".all", by what they carry, and take turns in the directory."""
    times, connection = Times(), duckdb.connect()
    where, order = ["--where", "energy > %r" % least], ["--top", str(TOP), "--by", "energy"]
    found = "FROM '%s' WHERE value > %r" % (parquet, least)
    tests = (
        ("keys", ".few", where + ["--format", "keys"], "SELECT id " + found),
        ("columns that it carries", ".few", where + ["--fields", "a,b", "--format", "csv"], "SELECT id, a, b " + found),
        ("other columns", ".few", where + ["--fields", "g,h", "--format", "csv"], "SELECT id, g, h " + found),
        ("all columns, of which it carries 2", ".few", where + ["--format", "csv"], "SELECT * " + found),
        ("all columns, which it carries", ".all", where + ["--format", "csv"], "SELECT * " + found),
        ("top %d" % TOP, ".few", order + ["--format", "keys"], "SELECT id FROM '%s' ORDER BY value DESC LIMIT %d" % (parquet, TOP)),
    )
    by = os.path.join(whole, "by")
    for _ in range(runs):
        for name, index, arguments, query in tests:
            command = [deltafs, "select", whole] + arguments
            os.rename(whole + index, by)
            *cost, rows = of_child(command)
            os.rename(by, whole + index)
            times.add(name + ": index", *cost)
            *cost, wanted = of_child(command)
            times.add(name + ": scan", *cost)
            *cost, ids = of_duckdb(connection, query)
            times.add(name + ": duckdb", *cost)
            keys = [int(line.split(b",")[0]) for line in rows.splitlines() if line[:1].isdigit()]
            if rows != wanted or sorted(keys) != sorted(ids.tolist()):
                sys.exit("%s: by the index, by the scan and by DuckDB: not the same rows" % name)
        cpu, wall, _ = of_child([deltafs, "--version"])
        times.add("start", cpu, wall)
    print("  start of deltafs, which its times include: %.4f s processor" % statistics.median(t[0] for t in times.of["start"]))
    for name, *_ in tests:
        print("  " + name)
        for way, word in (("scan", "scan"), ("index", "index"), ("duckdb", "DuckDB, sorted Parquet")):
            times.show("%s: %s" % (name, way), name + ": scan", word)


def write(library, path, parts, index):
    """One process writes an epoch; returns processor and wall time."""
    options, directory = ctypes.c_void_p(), ctypes.c_void_p()
    library.deltafs_options_create(ctypes.byref(options))
    for name, value in (("schema", SCHEMA), ("partitions", "1"), ("index_by", index)):
        if value:
            library.deltafs_options_set(options, name.encode(), value.encode())
    cpu, begin = time.process_time(), time.perf_counter()
    failed = library.deltafs_create(path.encode(), options, ctypes.byref(directory))
    for keys, values in parts:
        failed = failed or library.deltafs_append_many(
            directory, ctypes.c_size_t(len(keys)), ctypes.c_void_p(keys.ctypes.data), ctypes.c_size_t(8),
            ctypes.c_void_p(values.ctypes.data), ctypes.c_size_t(values.itemsize), ctypes.c_size_t(values.itemsize)
        )
    failed = failed or library.deltafs_epoch_end(directory, ctypes.c_uint64(1)) or library.deltafs_close(directory)
    cost = time.process_time() - cpu, time.perf_counter() - begin
    library.deltafs_options_destroy(options)
    if failed:
        library.deltafs_errmsg.restype = ctypes.c_char_p
        sys.exit("writing %s: %s" % (path, library.deltafs_errmsg(None).decode()))
    return cost


def write_alone(library, path, parts, index):
    """For a process that does nothing else: `parts` is a folder."""
    arrays = [[np.load(os.path.join(parts, n)) for n in (k, "values" + k[4:])] for k in sorted(os.listdir(parts)) if k[:4] == "keys"]
    print(*write(ctypes.CDLL(library), path, arrays, index))


def write_slowly(library, slow_write, path, parts, index):
    environment = dict(os.environ, LD_PRELOAD=slow_write, SLOW_WRITE_BYTES=str(SLOW))
    command = [sys.executable, __file__, "write", library, path, parts, index]
    return tuple(map(float, subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout.split()))


def show_in_situ(cost, records):
    without, with_index = cost.values()
    nanoseconds = [1e9 * (y[0] - x[0]) / records for x, y in zip(without, with_index)]
    print("    processor time per record: %.0f ns (%.0f to %.0f); without it %.0f ns" % (
        statistics.median(nanoseconds), min(nanoseconds), max(nanoseconds),
        1e9 * statistics.median(x[0] for x in without) / records))
    print("    wall time: %.2f s; without it %.2f s; %.2f times" % (
        statistics.median(y[1] for y in with_index), statistics.median(x[1] for x in without),
        statistics.median(y[1] / x[1] for x, y in zip(without, with_index))))


def compare_in_situ(library_path, slow_write, folder, records, runs):
    library, cost, slow, size = ctypes.CDLL(library_path), {"": [], "energy:" + VALUE: []}, {"": [], "energy:" + VALUE: []}, 0
    ids, parts = np.random.default_rng(0).permutation(records), []
    os.makedirs(os.path.join(folder, "parts"))
    for at in range(0, records, AT_ONCE):
        a = make_records(ids[at : at + AT_ONCE], at)
        values = np.empty(len(a), np.dtype([(c, "<f4") for c in COLUMNS]))
        for c in COLUMNS:
            values[c] = a[c]
        parts.append((a["id"].copy(), values))
        for name, array in zip(("keys", "values"), parts[-1]):
            np.save(os.path.join(folder, "parts", "%s.%d.npy" % (name, len(parts))), array)
    for _ in range(runs):
        for index, costs in cost.items():
            path = os.path.join(folder, "situ")
            costs.append(write(library, path, parts, index))
            by = os.path.join(path, "by")
            size = sum(os.path.getsize(os.path.join(w, n)) for w, _, names in os.walk(by) for n in names)
            shutil.rmtree(path)
        for index, costs in slow.items():
            costs.append(write_slowly(library_path, slow_write, path, os.path.join(folder, "parts"), index))
            shutil.rmtree(path)
    print("an index written with its directory, of %d records by one process" % records)
    print("  to memory")
    show_in_situ(cost, records)
    print("  to storage of %.0f MB per second" % (SLOW / 1e6))
    show_in_situ(slow, records)
    print("  size: %.2f bytes per record" % (size / records))


def make_index(mpi, whole, carried, aside):
    cpu, wall, _ = of_child([mpi, "index", "-q", "--by", "energy:%s%s" % (VALUE, "".join(" +" + c for c in carried)), whole])
    os.rename(os.path.join(whole, "by"), aside)
    return cpu, wall


def main(library, deltafs, mpi, slow_write, folder, records, runs):
    os.makedirs(folder)
    records, runs = int(records), int(runs)
    whole, parquet = os.path.join(folder, "whole"), os.path.join(folder, "sorted.parquet")
    names, least = make_dumps(folder, records)
    schema = "id:u8," + SCHEMA
    of_child([mpi, "import", "-q", "--format", "raw", "--schema", schema, "--key", "id", "--epoch", "1", "-o", whole] + names)
    make_parquet(parquet, names)
    for name in names:
        os.remove(name)
    make_index(mpi, whole, COLUMNS, whole + ".all")
    cpu, wall = make_index(mpi, whole, "ab", whole + ".few")
    print("%d records of %d bytes; %s > %.4g holds for %g of them" % (records, RECORD.itemsize, VALUE, least, SHARE))
    print("  index made afterwards: %.0f ns processor time per record, %.2f s wall" % (1e9 * cpu / records, wall))
    compare(deltafs, whole, least, parquet, runs)
    compare_in_situ(library, slow_write, folder, min(records, SITU), runs)


if __name__ == "__main__":
    write_alone(*sys.argv[2:]) if sys.argv[1] == "write" else main(*sys.argv[1:])
