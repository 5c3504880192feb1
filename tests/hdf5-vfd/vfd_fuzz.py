"""Directories of all kinds, damaged at random, read by HDF5's tools through the driver: no program may crash, or not end.

    vfd_fuzz.py PUT_RECORDS FOLDER ROUNDS [SEED]

HDF5_DRIVER, HDF5_PLUGIN_PATH and what a sanitizer needs are the caller's."""
import os
import random
import re
import shutil
import subprocess
import sys

TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)
NUMBERS = (0, 1, 2, 7, 255, 65535, 65536, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
TYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "S1", "S9", "S300", "V1", "V5", "V70000")


def crc32c(data):
    c = 0xFFFFFFFF
    for b in data:
        c = c >> 8 ^ TABLE[(c ^ b) & 255]
    return c ^ 0xFFFFFFFF


def make(r, put_records, folder):
    """A directory of a random schema, keys and sizes. Returns a key of it."""
    options, size = [], None
    is_bytes = r.random() < 0.3
    if is_bytes:
        options.append("keys=bytes")
    if r.random() < 0.7:
        fields = [r.choice(TYPES) for _ in range(r.choice((1, 2, 3, 5, 40, 300)))]
        names = [r.choice(("x", "epoch", "key", ".", "_", "n" * 200)) + str(i) for i in range(len(fields))]
        options.append("schema=" + ",".join(n + ":" + t for n, t in zip(names, fields)))
        size = sum(int(t[1:]) for t in fields)
    if r.random() < 0.3:
        options.append("partitions=%d" % r.choice((1, 3, 20)))
    lines, keys, left = [], [], 400000
    for label in sorted(r.sample(range(2**20), r.choice((1, 2, 5, 60)))):
        for _ in range(r.choice((1, 3, 20))):
            key = r.randbytes(r.choice((1, 2, 20, 255))).hex() if is_bytes else str(r.choice((5, 6, r.getrandbits(64))))
            n = size if size is not None else r.choice((0, 1, 3, 4000))
            left -= n
            if left > 0:
                lines.append("%d %s %s" % (label, key, r.randbytes(n).hex() or "-"))
            keys.append(key)
    done = subprocess.run([put_records, folder, *options], input="\n".join(lines) + "\n", text=True, capture_output=True)
    key = r.choice(keys)
    # The tools try other drivers next, of which HDF5's for families of files takes the name for a format of printf.
    text = key if not is_bytes else re.sub("[\0%]", "", bytes.fromhex(key).decode("ascii", "replace"))
    return done.returncode == 0, text or "k"


def change_manifest(r, path):
    """Lines of a manifest that say something else, with right checksums."""
    with open(path, "rb") as f:
        lines = [line.rsplit(b" ~", 1)[0] for line in f.read().splitlines()]
    for _ in range(r.choice((1, 1, 3))):
        i = r.randrange(len(lines))
        what = r.randrange(5)
        found = list(re.finditer(rb"\d+", lines[i]))
        if what == 0 and found:
            m = r.choice(found)
            lines[i] = lines[i][: m.start()] + str(r.choice(NUMBERS)).encode() + lines[i][m.end() :]
        elif what == 1:
            lines.insert(r.randrange(len(lines) + 1), lines[i])
        elif what == 2 and len(lines) > 1:
            del lines[i]
        elif what == 3:
            k = r.randrange(len(lines))
            lines[i], lines[k] = lines[k], lines[i]
        else:
            at = r.randrange(len(lines[i]) + 1)
            lines[i] = lines[i][:at] + r.choice((b"/", b",", b":", b"\xff", b" ", b"=", b"%00", b"x" * 5000)) + lines[i][at:]
    with open(path, "wb") as f:
        for line in lines:
            f.write(line + b" ~%08x\n" % crc32c(line))


def damage(r, folder):
    files = sorted(os.path.join(d, f) for d, _, names in os.walk(folder) for f in names)
    path = r.choice(files)
    manifest = os.path.join(folder, "MANIFEST")
    if r.random() < 0.4 and os.path.exists(manifest):
        return change_manifest(r, manifest)
    with open(path, "rb") as f:
        data = bytearray(f.read())
    what = r.randrange(6)
    at = r.randrange(len(data)) if data else 0
    if what == 0 and data:
        for _ in range(r.choice((1, 2, 30))):
            data[r.randrange(len(data))] ^= 1 << r.randrange(8)
    elif what == 1:
        del data[at:]
    elif what == 2:
        data[at : at + 64] = r.choice((bytes(64), b"\xff" * 64, r.randbytes(64)))
    elif what == 3:
        data += r.randbytes(r.choice((1, 4096)))
    elif what == 4:
        return os.remove(path)
    else:
        with open(r.choice(files), "rb") as f:
            data = f.read()
    with open(path, "wb") as f:
        f.write(data)


def main():
    put_records, top, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    r = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    runs = refused = 0
    for i in range(rounds):
        folder = os.path.join(top, "fuzzed")
        shutil.rmtree(folder, ignore_errors=True)
        is_made, key = make(r, put_records, folder)
        if not is_made:
            continue
        for _ in range(r.choice((0, 1, 1, 3))):
            damage(r, folder)
        os.environ["HDF5_DRIVER_CONFIG"] = r.choice(("records=1M", "records=100", "memory=1M"))
        for command in (["h5ls", "-r", folder], ["h5dump", folder], ["h5dump", folder + "/" + key]):
            try:
                done = subprocess.run(command, capture_output=True, timeout=60)
            except subprocess.TimeoutExpired:
                sys.exit("round %d: %s does not end" % (i, " ".join(command)))
            if done.returncode not in (0, 1) or b"ERROR: " in done.stderr or b"runtime error: " in done.stderr:
                sys.stderr.buffer.write(done.stderr[-4000:])
                sys.exit("round %d: %s ended with %d; %s is kept" % (i, " ".join(command), done.returncode, folder))
            runs += 1
            refused += done.returncode
    print("%d runs, %d of them with an error" % (runs, refused))


main()
