"""forge.py DELTAFS FOLDER: what deltafs-format(5) says a reader must refuse, in files whose checksums are right.

Each field of each structure of a small container is given another value and the structure its new checksum; then
`deltafs verify` must say that something is wrong. FOLDER is a work folder, where copies are made."""

import os
import shutil
import struct
import subprocess
import sys

import decode

CORPUS = os.path.dirname(os.path.abspath(__file__))

# Of each structure: (offset, type, name). What is added to a field is 1, unless it is named in OTHER.
STRIPS = "32I length, 36I crc, 40I length, 44I crc, 48I length"  # of a block with strips, in addition
BLOCK = "5B flags, 6H records, 8I bytes, 12I unpacked, 16I partition, 20I epoch, 24I run, 28I block"
LEAF = (
    "5B l, 6B b, 7B zero, 8I bytes, 12I partition, 16I epoch, 20I segment, 24I leaf, 28I n, 32Q first, 40Q last, 48I r, "
    "52I table, 56B run, 57B block, 58B skip, 59B at, 60B blocks, 61B records, 62B size"
)
FENCE = (
    "5B zero, 6B zero, 7B zero, 8I bytes, 12I partition, 16I epoch, 20I segment, 24I leaves, 28I zero, 32Q offset, "
    "40B first, 41B size"
)
FOOTER = (
    "6B shift, 7B zero, 8I partition, 12I epoch, 16I segment, 20I leaves, 28I fence, 32Q offset, 40Q records, 48Q raw, "
    "64Q first, 72Q last, 88Q at, 96B magic"
)
TAIL = "5B flags, 6H zero, 8I partition, 12I footers, 16Q bytes, 24B magic"
HEADER = "5B kind, 6H version, 8I partition, 12I zero, 16B uuid"
OTHER = {("block", "flags"): (1, 2, 4, 8, 128), ("block", "length"): (1, 2, -1, -2, 1 << 31), ("footer", "shift"): (1, 64), ("leaf", "l"): (1, 64)}
OTHER["footer", "last"] = (-1, 1)
OTHER["tail", "footers"] = (-1, 1)
OTHER["tail", "bytes"] = (-1, 1)
OTHER["tail", "flags"] = (1, 2)


def fields(text):
    for field in text.split(", "):
        where, name = field.split()
        yield int(where[:-1]), where[-1], name


def structures(p):
    """(log, what, offset, bytes, fields) of those of an epoch, the log's headers, and the tail."""
    f = p.segments[1 if p.m.strips else 0]  # the first of strips has no block with any
    (_, leaf, leaf_bytes) = p.fence(f)[0]
    (_, _, _, _, block, _, block_bytes, _) = p.leaf(f, 0, *p.fence(f)[0])[0]
    yield "data", "header", 0, 32, HEADER
    yield "index", "header", 0, 32, HEADER
    yield "data", "block", block, block_bytes, BLOCK + (", " + STRIPS if p.m.strips else "")
    yield "index", "leaf", leaf, leaf_bytes, LEAF
    yield "index", "fence", f["fence_at"], f["fence_bytes"], FENCE
    yield "index", "footer", f["at"], 104, FOOTER
    if p.m.tail is not None:
        at = len(p.index) - 32
        yield "index", "tail", at - (decode.le(p.index, at + 16, 8) - 32), decode.le(p.index, at + 16, 8), TAIL


def forged(log, what, offset, size, seed, where, kind, add, strips):
    """The log with another value in one field. The checksum of a block with strips covers its header and their table."""
    data = bytearray(log)
    at = offset + where + (size - 32 if what == "tail" else 0)
    n = struct.calcsize(kind)
    value = (decode.le(data, at, n) + add) % 256**n
    data[at : at + n] = value.to_bytes(n, "little")
    if what == "tail":
        checksum = offset + size - 32
        sealed = bytes(data[offset:checksum]) + bytes(data[checksum + 4 : offset + size])
    else:
        end = offset + (32 + 8 * strips if what == "block" and data[offset + 5] & 8 else size)
        checksum, sealed = offset, bytes(data[offset + 4 : end])
    data[checksum : checksum + 4] = decode.crc32c(sealed, seed).to_bytes(4, "little")
    return data


def main(deltafs, folder):
    missed, tried = [], 0
    for name in ("torn", "ends", "strips", "sparse"):
        source, copy = os.path.join(CORPUS, name), os.path.join(folder, name)
        shutil.copytree(source, copy)
        for folder_of, _, files in os.walk(copy):
            os.chmod(folder_of, 0o755)
            for file in files:
                os.chmod(os.path.join(folder_of, file), 0o644)
        p = decode.Partition(source, decode.Manifest(os.path.join(source, "MANIFEST")), 0)
        for log, what, offset, size, text in structures(p):
            if (name == "ends" and what not in ("tail", "header")) or (p.m.strips and what != "block"):
                continue
            path = os.path.join(copy, "00", "p00000000." + log)
            original = p.data if log == "data" else p.index
            for where, kind, field in [(4, "B", "type")] + list(fields(text)):
                for add in OTHER.get((what, field), (1,)):
                    with open(path, "wb") as f:
                        f.write(forged(original, what, offset, size, p.seed, where, kind, add, len(p.m.strips or ())))
                    run = subprocess.run([deltafs, "verify", copy], capture_output=True)
                    tried += 1
                    if run.returncode != 3:
                        missed.append("%s: %s of %s + %d: %d" % (name, field, what, add, run.returncode))
            with open(path, "wb") as f:
                f.write(original)
    if missed or tried < 60:
        sys.exit("\n".join(missed) or "only %d tried" % tried)


if __name__ == "__main__":
    main(*sys.argv[1:])
