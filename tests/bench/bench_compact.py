"""bench_compact.py LIBRARY DELTAFS DELTAFS_MPI FOLDER PARTICLES EPOCHS KEYS [VPIC_FOLDER]: what `deltafs-mpi compact` costs, and
how much faster trajectories are read after it.

Each trajectory is read by a new process, from the directory as it was written and from the compacted one in turn. The
time is that of deltafs_open and deltafs_get. Cold: the directory's files were taken out of the system's cache before."""

import ctypes
import glob
import os
import random
import resource
import statistics
import subprocess
import sys
import time

STATES = ("cold", "cold, one read at a time", "warm")
FIELDS = ("dx", "dy", "dz", "i", "ux", "uy", "uz", "w")
SCHEMA = "id:u8,dx:f4,dy:f4,dz:f4,i:i4,ux:f4,uy:f4,uz:f4,w:f4"


def make_dumps(folder, particles, epochs):
    """Particles that fly through cells, and change their momentum a little; a file for each epoch."""
    import numpy as np  # here, because a process that reads a trajectory is to start quickly

    record = np.dtype([("id", "<u8")] + [(f, "<i4" if f == "i" else "<f4") for f in FIELDS])
    rng = np.random.default_rng(1)
    place = rng.uniform(0, 64, (3, particles))
    momentum = rng.normal(0, 0.1, (3, particles))
    order = rng.permutation(particles)
    for epoch in range(epochs):
        place = (place + momentum) % 64
        momentum += rng.normal(0, 0.01, (3, particles))
        cell = place.astype("<i4")
        a = np.empty(particles, record)
        a["id"] = np.arange(particles)
        for axis in range(3):
            a["d" + "xyz"[axis]] = 2 * (place[axis] - cell[axis]) - 1
            a["u" + "xyz"[axis]] = momentum[axis]
        a["i"] = cell[0] + 64 * (cell[1] + 64 * cell[2])
        a["w"] = 1
        a[order].tofile(os.path.join(folder, "dump.%d" % epoch))


def run(*command, **environment):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True,
                          env=dict(os.environ, **environment))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(command), done.stderr))
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done


def files(folder):
    return [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]


def forget(folder):
    """Take the files out of the system's cache."""
    for path in files(folder):
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def get_here(library, folder, key):
    """Print how many reads a trajectory takes, and milliseconds."""
    d = ctypes.CDLL(library)
    handle, records, stat = ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_uint64 * 5)(40)
    before = time.perf_counter()
    failed = d.deltafs_open(folder.encode(), None, ctypes.byref(handle))
    failed = failed or d.deltafs_get(handle, ctypes.c_uint64(key), None, ctypes.byref(records))
    after = time.perf_counter()
    d.deltafs_io_stat(handle, stat)
    if failed:
        sys.exit("key %d: error %d" % (key, failed))
    print(stat[1], 1000 * (after - before))


def get(library, folder, key, threads):
    _, done = run(sys.executable, "-S", __file__, "--get", library, folder, str(key), DELTAFS_READ_THREADS=threads)
    reads, ms = done.stdout.split()
    return int(reads), float(ms)


def compare(library, deltafs, deltafs_mpi, source, compacted, keys, name):
    cpu, _ = run(deltafs_mpi, "compact", source, "-o", compacted, "--quiet")
    _, done = run(deltafs, "scan", source, "--format", "csv", "--fields", "w")
    records = done.stdout.count("\n") - 1
    sizes = [sum(os.path.getsize(path) for path in files(folder)) for folder in (source, compacted)]
    print("%s: %d records" % (name, records))
    print("  compaction: %.1f M records per second of processor time" % (records / cpu / 1e6))
    print("  size: %.3f of the source's (%d of %d bytes)" % (sizes[1] / sizes[0], sizes[1], sizes[0]))
    os.sync()
    reads, times = ([], []), {state: ([], []) for state in STATES}
    for key in keys:
        for state in STATES:
            for which, folder in enumerate((source, compacted)):
                if state != "warm":
                    forget(folder)
                got, ms = get(library, folder, key, "0" if "one" in state else "8")
                reads[which].append(got)
                times[state][which].append(ms)
        texts = [run(deltafs, "get", folder, str(key), "--format", "csv")[1].stdout for folder in (source, compacted)]
        if texts[0] != texts[1]:
            sys.exit("key %d: the answers differ" % key)
    print("  reads of a trajectory: at most %d before, %d after" % tuple(max(r) for r in reads))
    for state, (before, after) in times.items():
        before, after = statistics.median(before), statistics.median(after)
        print("  %s: %.2f ms before, %.2f ms after (p50): %.1f times faster" % (state, before, after, before / after))


def main():
    if sys.argv[1] == "--get":
        get_here(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    library, deltafs, deltafs_mpi, folder = sys.argv[1:5]
    particles, epochs, count = (int(v) for v in sys.argv[5:8])
    os.makedirs(folder)
    random.seed(1)
    make_dumps(folder, particles, epochs)
    source = os.path.join(folder, "source")
    run(deltafs_mpi, "import", "--format", "raw", "--schema", SCHEMA, "--key", "id", "-o", source,
        *(os.path.join(folder, "dump.%d" % epoch) for epoch in range(epochs)))
    for path in glob.glob(os.path.join(folder, "dump.*")):
        os.remove(path)
    keys = [random.randrange(particles) for _ in range(count)]
    compare(library, deltafs, deltafs_mpi, source, os.path.join(folder, "compacted"), keys, "%d epochs" % epochs)
    if len(sys.argv) > 8:
        source = os.path.join(folder, "vpic")
        run(deltafs_mpi, "import", "--format", "vpic", "-o", source, *glob.glob(os.path.join(sys.argv[8], "eparticle.*")))
        _, done = run(deltafs, "select", source, "--epochs", "0", "--format", "keys")
        keys = random.sample(done.stdout.split(), count)
        compare(library, deltafs, deltafs_mpi, source, os.path.join(folder, "vpic-compacted"), map(int, keys), sys.argv[8])


main()
