"""The slow and simple second opinion for the tests of the commands; a module too, for what makes their input.

oracle.py csv FILE...                    records of VPIC dumps as `deltafs scan --format csv` prints them, unsorted
oracle.py bits CSV FILE...               whether a scan's CSV has all records of the dumps, bit for bit
oracle.py raw DELTAFS DIR,DIR,... FILE...  the same by `scan --format raw`, partition by partition, in the order of keys
oracle.py info INFO.json RANKS FILE...   whether `deltafs info --json` says of the dumps what they are
oracle.py seal                           lines of standard input, each with the checksum of a manifest's line
"""

import json
import struct
import subprocess
import sys
from bisect import bisect_right

VALUE = struct.Struct("<fffiffffI")
FIELDS = "dx,dy,dz,i,ux,uy,uz,w,rank"
grid_of = {}  # (step, rank) -> nx, ny, nz, dt, hx, hy, hz, x0, y0, z0 of the header


def text_float(v):
    if v != v:
        return "nan"
    if v in (float("inf"), float("-inf")):
        return "inf" if v > 0 else "-inf"
    if not 1e15 <= abs(v) < 1e17:
        return repr(v)
    for digits in (15, 16, 17):
        text = "%.*g" % (digits, v)
        if float(text) == v:
            break
    return text if "." in text or "e" in text else text + ".0"


def text_value(value):
    return ",".join(str(v) if isinstance(v, int) else text_float(v) for v in VALUE.unpack(value))


def place(step, value):
    """x, y, z, as the header's grid gives them."""
    dx, dy, dz, i, _, _, _, _, rank = VALUE.unpack(value)
    nx, ny, nz, dt, hx, hy, hz, x0, y0, z0 = grid_of[step, rank]
    return (
        x0 + (i % (nx + 2) - 1 + (dx + 1) / 2) * hx,
        y0 + (i // (nx + 2) % (ny + 2) - 1 + (dy + 1) / 2) * hy,
        z0 + (i // ((nx + 2) * (ny + 2)) - 1 + (dz + 1) / 2) * hz,
    )


def text_row(step, value):
    return text_value(value) + "," + ",".join(text_float(v) for v in place(step, value))


def read_vpic(path):
    """(step, [(id, value as 36 bytes)]) of a dump: what the file has of a particle, and the rank."""
    with open(path, "rb") as f:
        data = f.read()
    step = struct.unpack_from("<i", data, 31)[0]
    rank = data[87:91]
    grid_of[step, struct.unpack("<i", rank)[0]] = struct.unpack_from("<3i7f", data, 35)
    particle_size, dimensions, n = struct.unpack_from("<3i", data, 103)
    assert (particle_size, dimensions) == (32, 1), path
    ids = 115 + 32 * n
    assert struct.unpack_from("<3i", data, ids) == (8, 1, n) and len(data) == ids + 12 + 8 * n, path
    keys = struct.unpack_from("<%dQ" % n, data, ids + 12)
    return step, [(keys[i], data[115 + 32 * i : 147 + 32 * i] + rank) for i in range(n)]


def count_all(paths):
    """{step: number of particles}, from the headers alone."""
    epochs = {}
    for path in paths:
        with open(path, "rb") as f:
            head = f.read(115)
        step = struct.unpack_from("<i", head, 31)[0]
        epochs[step] = epochs.get(step, 0) + struct.unpack_from("<i", head, 111)[0]
    return epochs


def read_all(paths):
    """{step: [(id, value)]}"""
    epochs = {}
    for path in paths:
        step, records = read_vpic(path)
        epochs.setdefault(step, []).extend(records)
    return epochs


def die(text):
    sys.exit("oracle: " + text)


def print_csv(paths):
    out = []
    for step, records in read_all(paths).items():
        out.extend("%d,%d,%s\n" % (key, step, text_row(step, value)) for key, value in records)
    sys.stdout.writelines(out)


def check_bits(csv, paths):
    expected = {step: dict(records) for step, records in read_all(paths).items()}
    total = sum(len(records) for records in expected.values())
    with open(csv) as f:
        if f.readline() != "key,epoch," + FIELDS + ",x,y,z\n":
            die("wrong header")
        for line in f:
            w = line.split(",")
            value = VALUE.pack(
                *(float(v) for v in w[2:5]), int(w[5]), *(float(v) for v in w[6:10]), int(w[10])
            )
            if tuple(float(v) for v in w[11:14]) != place(int(w[1]), value):
                die("x, y, z are not those of the header's grid: " + line)
            # Taken out, so that a record printed twice is found.
            if expected[int(w[1])].pop(int(w[0]), None) != value:
                die("not in the dumps: " + line)
    missing = sum(len(records) for records in expected.values())
    if missing:
        die("%d of %d records are missing" % (missing, total))


def check_raw_partition(deltafs, container, step, partition, keys_of, partition_of):
    """Returns the number of records."""
    where = "%s, epoch %d, partition %d" % (container, step, partition)
    data = subprocess.check_output(
        [deltafs, "scan", container, "--format=raw", "--epochs=%d" % step, "--partition=%d" % partition]
    )
    if len(data) % VALUE.size:
        die(where + ": no whole number of records")
    last = -1
    for at in range(0, len(data), VALUE.size):
        keys = keys_of.get(data[at : at + VALUE.size])
        if not keys:
            die("%s: record %d is not in the dumps" % (where, at // VALUE.size))
        i = 0 if len(keys) == 1 else bisect_right(keys, last)
        if i == len(keys) or keys[i] <= last:
            die("%s: record %d is not in the order of keys" % (where, at // VALUE.size))
        last = keys[i]
        if partition_of.setdefault(last, partition) != partition:
            die("%s: key %d is in another partition too" % (where, last))
    return len(data) // VALUE.size


def check_raw(deltafs, containers, paths):
    infos = [json.loads(subprocess.check_output([deltafs, "info", "--json", c])) for c in containers]
    partition_of = [{} for _ in containers]
    for step, records in sorted(read_all(paths).items()):
        keys_of = {}
        for key, value in records:
            keys_of.setdefault(value, []).append(key)
        for keys in keys_of.values():
            keys.sort()
        for i, container in enumerate(containers):
            found = 0
            for partition in range(infos[i]["partitions"]):
                found += check_raw_partition(deltafs, container, step, partition, keys_of, partition_of[i])
            # Strictly rising keys, each in one partition: as many as there are means each one once.
            if found != len(records):
                die("%s, epoch %d: %d records instead of %d" % (container, step, found, len(records)))


def check_info(path, ranks, paths):
    with open(path) as f:
        info = json.load(f)
    epochs = sorted(count_all(paths).items())
    total = sum(records for _, records in epochs)
    expected = {
        "version": 1,
        "closed": True,
        "partitions": ranks,
        "value_size": 36,
        "schema": "dx:f4,dy:f4,dz:f4,i:i4,ux:f4,uy:f4,uz:f4,w:f4,rank:u4",
        "records": total,
        "bytes_raw": 44 * total,
    }
    for name, value in expected.items():
        if info[name] != value:
            die("info: %s is %r instead of %r" % (name, info[name], value))
    got = [(e["label"], e["records"], e["bytes"]) for e in info["epochs"]]
    if got != [(step, records, 44 * records) for step, records in epochs]:
        die("info: epochs are %r" % got)
    if not 0 < sum(e["bytes_stored"] for e in info["epochs"]) <= info["bytes_stored"]:
        die("info: bytes stored in the epochs are more than all")
    print("%.3f" % (info["bytes_stored"] / (40 * total)))  # without the rank, which the dumps have in their headers


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def seal(line):
    return "%s ~%08x\n" % (line, crc32c(line.encode()))


def main(args):
    if args[0] == "csv":
        print_csv(args[1:])
    elif args[0] == "bits":
        check_bits(args[1], args[2:])
    elif args[0] == "raw":
        check_raw(args[1], args[2].split(","), args[3:])
    elif args[0] == "info":
        check_info(args[1], int(args[2]), args[3:])
    elif args[0] == "seal":
        for line in sys.stdin:
            sys.stdout.write(seal(line.rstrip("\n")))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
