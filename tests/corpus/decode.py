"""A second reader of DeltaFS directories, written from deltafs-format(5) alone: slow, plain, and with no library but
Python's own. It knows nothing of the sources, so that where it and the C reader agree, the page is enough.

decode.py csv DIR          all records, as `deltafs scan --format csv` prints them
decode.py structure DIR    every structure of the files, field by field, without what the packer's version decides

Both check all that the page says must be so, and end with a message and 3 where it is not.
"""

import itertools
import os
import re
import struct
import sys

# ---- Checksums and hashes


def crc32c_table():
    table = []
    for i in range(256):
        c = i
        for _ in range(8):
            c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
        table.append(c)
    return table


CRC_TABLE = crc32c_table()


def crc32c(data, crc=0):
    c = crc ^ 0xFFFFFFFF
    for byte in data:
        c = c >> 8 ^ CRC_TABLE[(c ^ byte) & 0xFF]
    return c ^ 0xFFFFFFFF


MASK = 2**64 - 1
PRIME64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
PRIME32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)


def le(data, at, n):
    return int.from_bytes(data[at : at + n], "little")


def fold(a, b):
    product = a * b
    return (product & MASK) ^ product >> 64


def avalanche3(h):
    h = (h ^ h >> 37) * 0x165667919E3779F9 & MASK
    return h ^ h >> 32


def mix16(data, at, secret):
    return fold(le(data, at, 8) ^ le(SECRET, secret, 8), le(data, at + 8, 8) ^ le(SECRET, secret + 8, 8))


def xxh3_short(data, n):
    """1 to 16 bytes."""
    if n > 8:
        low = le(data, 0, 8) ^ le(SECRET, 24, 8) ^ le(SECRET, 32, 8)
        high = le(data, n - 8, 8) ^ le(SECRET, 40, 8) ^ le(SECRET, 48, 8)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return avalanche3(n + swapped + high + fold(low, high) & MASK)
    if n >= 4:
        h = (le(data, n - 4, 4) + (le(data, 0, 4) << 32)) ^ le(SECRET, 8, 8) ^ le(SECRET, 16, 8)
        h ^= (h << 49 | h >> 15) & MASK ^ (h << 24 | h >> 40) & MASK
        h = h * 0x9FB21C651E98DF25 & MASK
        h ^= (h >> 35) + n
        h = h * 0x9FB21C651E98DF25 & MASK
        return h ^ h >> 28
    h = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
    h ^= le(SECRET, 0, 4) ^ le(SECRET, 4, 4)
    h = (h ^ h >> 33) * PRIME64[1] & MASK
    h = (h ^ h >> 29) * PRIME64[2] & MASK
    return h ^ h >> 32


def xxh3_long(data, n):
    """241 to 255 bytes, which is less than one block."""
    acc = [PRIME32[2], PRIME64[0], PRIME64[1], PRIME64[2], PRIME64[3], PRIME32[1], PRIME64[4], PRIME32[0]]
    stripes = [(64 * i, 8 * i) for i in range((n - 1) // 64)] + [(n - 64, 192 - 64 - 7)]
    for at, secret in stripes:
        for i in range(8):
            v = le(data, at + 8 * i, 8)
            k = v ^ le(SECRET, secret + 8 * i, 8)
            acc[i ^ 1] = acc[i ^ 1] + v & MASK
            acc[i] = acc[i] + (k & 0xFFFFFFFF) * (k >> 32) & MASK
    h = n * PRIME64[0]
    for i in range(4):
        h += fold(acc[2 * i] ^ le(SECRET, 11 + 16 * i, 8), acc[2 * i + 1] ^ le(SECRET, 19 + 16 * i, 8))
    return avalanche3(h & MASK)


def xxh3(data):
    """XXH3, 64 bits, seed 0, of 1 to 255 bytes."""
    n = len(data)
    if n <= 16:
        return xxh3_short(data, n)
    if n > 240:
        return xxh3_long(data, n)
    h = n * PRIME64[0]
    if n <= 128:
        for i in range((n - 1) // 32 + 1):
            h += mix16(data, 16 * i, 32 * i) + mix16(data, n - 16 * (i + 1), 32 * i + 16)
        return avalanche3(h & MASK)
    for i in range(8):
        h += mix16(data, 16 * i, 16 * i)
    h = avalanche3(h & MASK)
    for i in range(8, n // 16):
        h += mix16(data, 16 * i, 16 * (i - 8) + 3)
    return avalanche3(h + mix16(data, n - 16, 136 - 17) & MASK)


def partition_of(key, partitions):
    return xxh3(key.to_bytes(8, "little")) * partitions >> 64


# ---- Small things


class Damaged(Exception):
    pass


def need(true, *what):
    if not true:
        raise Damaged(" ".join(str(w) for w in what))


def varint(data, at):
    """(number, offset behind it)"""
    v = shift = 0
    while True:
        need(at < len(data) and shift < 70, "a varint is truncated or too long")
        v |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            need(v <= MASK, "a varint is above 64 bits")
            return v, at


def bits(data, at, n):
    """`n` bits from bit `at`, counted from the least significant one of the first byte."""
    whole = int.from_bytes(data[at // 8 : (at + n + 7) // 8], "little")
    return whole >> at % 8 & (1 << n) - 1


def snappy(data):
    size, at = varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            n = tag >> 2
            if n >= 60:
                extra = n - 59
                n = le(data, at, extra)
                at += extra
            need(at + n + 1 <= len(data), "Snappy: a literal is truncated")
            out += data[at : at + n + 1]
            at += n + 1
            continue
        if tag & 3 == 1:
            n, offset = (tag >> 2 & 7) + 4, tag >> 5 << 8 | le(data, at, 1)
            at += 1
        else:
            width = 2 if tag & 3 == 2 else 4
            n, offset = (tag >> 2) + 1, le(data, at, width)
            at += width
        need(0 < offset <= len(out), "Snappy: a copy from before the start")
        for _ in range(n):
            out.append(out[-offset])
    need(len(out) == size, "Snappy: not of the size that it says")
    return bytes(out)


# ---- The manifest


class Manifest:
    def __init__(self, path):
        self.uuid = self.partitions = self.schema = self.bounds = self.tail = self.strips = None
        self.compacted = 0
        self.epochs = []
        self.pivots = {}  # of the epochs from a number on
        self.jobs = []
        self.lacks_job = False
        self.lines = []
        with open(path, "rb") as f:
            data = f.read()
        lines = data.split(b"\n")
        torn = lines.pop()
        need(not self.sealed(torn[:-1]) or torn[-1] == 0, "the last newline is another byte")
        for i, line in enumerate(lines):
            need(self.sealed(line), "manifest: line", i, "does not match its checksum")
            self.take(i, line[:-10].decode())
        need(self.partitions, "manifest: no directory")
        need(not self.is_local or self.jobs, "manifest: no job")
        need(len(self.epochs) >= self.compacted, "manifest: the compaction did not end")

    def partition(self, epoch, key):
        """That of a key that is a number."""
        pivots = [self.pivots[first] for first in self.pivots if first <= epoch]
        return sum(pivot <= key for pivot in pivots[-1]) if pivots else partition_of(key, self.partitions)

    @staticmethod
    def sealed(line):
        return len(line) >= 10 and line[-10:] == b" ~%08x" % crc32c(line[:-10])

    def take(self, i, line):
        self.lines.append(line)
        word, _, rest = line.partition(" ")
        need((word == "Deltafs") == (i == 0) and (word == "Directory") == (i == 1), "manifest: order of lines")
        if word == "schema":
            need(self.schema is None, "manifest: two schemas")
            self.schema = rest
            return
        if word == "bounds":
            need(self.schema and not self.bounds, "manifest: error bounds without a schema, or twice")
            self.bounds = rest.split(",")
            kinds = [field.split(":")[1] for field in self.schema.split(",")]
            need(len(self.bounds) == len(kinds), "manifest: not an error bound for each field")
            for bound, kind in zip(self.bounds, kinds):
                need(bound == "0" or (float(bound) > 0 and kind in ("f4", "f8")), "manifest: error bound")
            return
        fields = {}
        for field in rest.split(" "):
            name, _, value = field.partition("=")
            fields.setdefault(name, value)
        if word == "Deltafs":
            need(fields["version"] == "1", "manifest: version")
            self.uuid = bytes.fromhex(fields["uuid"].replace("-", ""))
            need(len(self.uuid) == 16, "manifest: uuid")
        elif word == "Directory":
            need(fields["keys"] in ("u64", "bytes"), "manifest: not known")
            need(fields["partitioner"] in ("xxh3", "range"), "manifest: not known")
            self.is_ranged = fields["partitioner"] == "range"
            self.keys_are_bytes = fields["keys"] == "bytes"
            self.partitions = int(fields["partitions"])
            need(1 <= self.partitions <= (65536 if self.is_ranged else 1048576), "manifest: partitions")
            need(not self.is_ranged or fields["keys"] == "u64", "manifest: ranges")
            need(not self.is_ranged or fields.get("kind") != "index", "manifest: ranges")
            need(fields.get("place", "local") == "local", "manifest: place")
            self.is_local = "place" in fields
            size = fields["value_size"]
            self.value_size = None if size == "any" else int(size)
            need(size == "any" or 0 <= self.value_size <= 1048576, "manifest: value_size")
        elif word == "Strips":
            self.strips = [int(n) for n in fields["bytes"].split(",")]
            need(not self.epochs and not self.keys_are_bytes and not self.is_local, "manifest: strips")
            need(2 <= len(self.strips) <= 64 and sum(self.strips) == self.value_size, "manifest: bytes of strips")
        elif word == "Compacted":
            need(not self.epochs and not self.is_local and not self.compacted, "manifest: compacted")
            self.compacted = int(fields["epochs"])
            need(1 <= self.compacted <= 4294967294, "manifest: compacted epochs")
        elif word == "Pivots":
            steps = fields["keys"].split(",")
            need(self.is_ranged and len(steps) == self.partitions - 1 > 0, "manifest: pivots")
            need(all(re.fullmatch("[0-9a-f]{1,16}", step) for step in steps), "manifest: a pivot")
            need(not 0 < len(self.epochs) < self.compacted, "manifest: pivots amid the compacted epochs")
            pivots = list(itertools.accumulate(int(step, 16) for step in steps))
            need(pivots[-1] < 1 << 64, "manifest: a pivot")
            self.pivots[len(self.epochs)] = pivots
        elif word == "Local":
            job = {name: int(fields[name]) for name in ("epochs", "first", "writers", "bits", "read")}
            need(self.is_local and job["epochs"] == len(self.epochs), "manifest: a job")
            need(job["first"] == sum(j["writers"] for j in self.jobs), "manifest: a job's first writer")
            need(1 <= job["writers"] <= 1048576 and job["bits"] <= 16, "manifest: a job's numbers")
            self.jobs.append(job)
            self.lacks_job = False
        elif word == "Epoch":
            need(not self.is_local or (self.jobs and not self.lacks_job), "manifest: an epoch of no job")
            epoch = {name: int(fields[name]) for name in ("number", "label", "records", "raw", "stored")}
            need(epoch["number"] == len(self.epochs), "manifest: an epoch's number")
            need(not self.epochs or epoch["label"] > self.epochs[-1]["label"], "manifest: an epoch's label")
            epoch["covers"] = int(fields.get("covers", 0))
            need("covers" not in fields or 1 <= epoch["covers"] <= epoch["number"], "manifest: epochs that one covers")
            self.epochs.append(epoch)
            self.tail = None
        elif word == "open":
            need(int(fields["epochs"]) == len(self.epochs), "manifest: epochs of the reopening")
            self.tail = None
            self.lacks_job = True
        elif word == "close":
            need(int(fields["epochs"]) == len(self.epochs), "manifest: epochs of the close")
            self.tail = int(fields["tail"])
        else:
            need(not "A" <= word[:1] <= "Z", "manifest: the word", word, "must be known")


# ---- Value logs


class Values:
    """The log of one writer."""

    def __init__(self, folder, manifest, writer, say):
        self.m, self.writer = manifest, writer
        self.seed = crc32c(manifest.uuid)
        buckets = min(manifest.partitions, 256)
        with open(os.path.join(folder, "%02x/v%08x.values" % (writer % buckets, writer)), "rb") as f:
            self.log = f.read()
        h = self.log[:32]
        need(len(h) == 32 and le(h, 0, 4) == crc32c(h[4:], self.seed), "a value log's header: checksum")
        need(h[4:16] == bytes((0xD0, 6, 1, 0)) + struct.pack("<II", writer, 0) and h[16:] == manifest.uuid, "its header")
        self.blocks = {}
        say("writer %d" % writer)
        at = 32
        while at < len(self.log):
            at += self.block(at, say)

    def block(self, at, say):
        d = self.log[at:]
        size = 32 + le(d, 8, 4)
        need(32 <= size <= len(d) and at % 16 == 0, "values: truncated")
        length = (size + 15) // 16 * 16
        need(le(d, 0, 4) == crc32c(d[4:length], self.seed), "values: checksum")
        need(d[size:length].strip(b"\0") == b"" and d[4] == 0xD8, "values: a block's end, or type")
        need((le(d, 16, 4), le(d, 24, 8)) == (self.writer, at), "values: a block is elsewhere")
        fixed = None if self.m.keys_are_bytes or self.m.value_size is None else self.m.value_size + 1
        values, about = unpack(d[:size], fixed, 1048577)
        say(" block of epoch %d: %s" % (le(d, 20, 4), about))
        self.blocks[at] = le(d, 20, 4), values
        return length


class Places:
    """All value logs of a directory."""

    def __init__(self, folder, manifest, say):
        self.m, self.folder, self.say, self.logs = manifest, folder, say, {}

    def value(self, epoch, key, place):
        job = [j for j in self.m.jobs if j["epochs"] <= epoch][-1]
        width = (job["writers"] - 1).bit_length()
        place = le(place, 0, 8)
        record, place = place & (1 << job["bits"]) - 1, place >> job["bits"]
        writer, at = place & (1 << width) - 1, (place >> width) * 16
        need(writer < job["writers"], "a place: its writer")
        writer += job["first"]
        if writer not in self.logs:
            self.logs[writer] = Values(self.folder, self.m, writer, self.say)
        there, values = self.logs[writer].blocks[at]
        need(there == epoch, "a place: its epoch")
        if self.m.keys_are_bytes:
            return values[record]
        need(values[record][0] == xxh3(key.to_bytes(8, "little")) & 255, "a place: another key's")
        return values[record][1:]


def unpack(d, value_size, most, strips=None, seed=0):
    """A block's values as they are stored, each of value_size bytes (None: any), and what the block is."""
    flags = d[5]
    count, packed, unpacked = struct.unpack_from("<HII", d, 6)
    need((flags & ~7 == 0 or flags == 8) and count >= 1 and packed == len(d) - 32, "block: sizes")
    p = d[32:]
    if flags & 1:
        p = snappy(p)
    if flags & 8:
        need(strips, "block: strips in a directory without")
        p = values_strips(p, strips, count, seed)
    need(len(p) == unpacked <= 4194304, "block: unpacked size")
    is_variable = value_size is None
    need(bool(flags & 4) == is_variable and not (flags & 2 and is_variable), "block: kind")
    about = "flags %02x records %d unpacked %d %08x" % (flags, count, unpacked, crc32c(p))
    if is_variable:
        return values_variable(p, count, most), about
    if flags & 10:
        return values_planes(p, count, value_size), about
    need(len(p) == value_size * count, "block: values")
    return [p[i * value_size : (i + 1) * value_size] for i in range(count)], about


def values_strips(p, strips, count, seed):
    """The planes of all strips."""
    at, out, plane = 8 * len(strips), [], (count + 7) // 8
    for i, size in enumerate(strips):
        entry = le(p, 8 * i, 4)
        length = (entry & 0x7FFFFFFF) >> 1
        strip = p[at : at + length]
        need(le(p, 8 * i + 4, 4) == crc32c(strip, seed), "block: checksum of a strip")
        at += length
        head = strip[: 2 * size] if entry >> 31 else b"\xff\0" * size
        need(len(head) == 2 * size, "block: a strip without constant planes")
        strip = strip[2 * size * (entry >> 31) :]
        strip = snappy(strip) if entry & 1 else strip
        for k in range(size):
            for bit in range(7, -1, -1):
                if head[2 * k] >> bit & 1:
                    out.append(strip[:plane])
                    need(len(out[-1]) == plane, "block: bytes of a strip")
                    strip = strip[plane:]
                else:
                    ones = (1 << count) - 1 if head[2 * k + 1] >> bit & 1 else 0
                    out.append(ones.to_bytes(plane, "little"))
        need(strip == b"", "block: bytes of a strip")
    need(at == len(p), "block: strips")
    return b"".join(out)


def values_variable(p, count, most):
    sizes, at = [], 0
    for _ in range(count):
        size, at = varint(p, at)
        need(size <= most, "block: a value's size")
        sizes.append(size)
    need(at + sum(sizes) == len(p), "block: the values' sizes")
    values = []
    for size in sizes:
        values.append(p[at : at + size])
        at += size
    return values


def values_planes(p, count, value_size):
    plane = (count + 7) // 8
    need(len(p) == 8 * value_size * plane, "block: planes")
    values = [bytearray(value_size) for _ in range(count)]
    need(all(le(p, at, plane) >> count == 0 for at in range(0, len(p), plane)), "block: filling of a plane")
    for k in range(value_size):
        for bit in range(7, -1, -1):
            at = (8 * k + 7 - bit) * plane
            for i in range(count):
                values[i][k] |= bits(p, 8 * at + i, 1) << bit
    return [bytes(v) for v in values]


# ---- One partition

FOOTER = struct.Struct("<IBBBBIIIIIIQQQQQQQQ8s")
FOOTER_NAMES = (
    "checksum type flags shift zero partition epoch segment leaves runs fence_bytes fence_at records raw previous "
    "first last data_end at magic"
).split()


class Partition:
    def __init__(self, folder, manifest, number, say=lambda *text: None, places=None):
        self.places = places
        name = "%02x/p%08x" % (number & 255, number)
        self.m, self.number, self.say = manifest, number, say
        self.seed = crc32c(manifest.uuid)
        with open(os.path.join(folder, name + ".data"), "rb") as f:
            self.data = f.read()
        with open(os.path.join(folder, name + ".index"), "rb") as f:
            self.index = f.read()
        self.header(self.data, 1)
        self.header(self.index, 2)
        self.by_chain = self.find_by_chain()
        self.segments = self.by_chain
        if manifest.tail is not None:
            self.segments = self.read_tail()
            need(self.segments == self.by_chain, "the tail and the chain do not agree")

    def seal(self, data, what):
        need(le(data, 0, 4) == crc32c(data[4:], self.seed), "partition", self.number, what, "checksum")

    def header(self, log, kind):
        h = log[:32]
        need(len(h) == 32, "a log is too short")
        self.seal(h, "log header")
        need(h[4:8] == bytes((0xD0, kind, 1, 0)) and h[8:16] == struct.pack("<II", self.number, 0), "log header")
        need(h[16:] == self.m.uuid, "log header: uuid")

    def footer(self, data):
        """A footer, or None if this is none."""
        if len(data) != 104 or data[96:] != b"dltfsFTR" or le(data, 0, 4) != crc32c(data[4:], self.seed):
            return None
        f = dict(zip(FOOTER_NAMES, FOOTER.unpack(data)))
        need(f["type"] == 0xD4 and f["flags"] in (0, 1) and f["shift"] < 64 and f["zero"] == 0, "footer: fields")
        need(self.m.keys_are_bytes or f["shift"] == 0, "footer: the shift of numbers")
        need(f["partition"] == self.number, "footer: partition")
        need(f["fence_at"] + f["fence_bytes"] == f["at"], "footer: offsets")
        return f

    def find_by_chain(self):
        at = len(self.index)
        f = None
        while f is None:
            at = self.index.rfind(b"dltfsFTR", 0, at + 7)
            if at < 0:
                break
            f = self.footer(self.index[at - 96 : at + 8])
        found = []
        while f is not None:
            if f["epoch"] < len(self.m.epochs):
                found.append(f)
            at = f["previous"]
            if at == 0:
                break
            f = self.footer(self.index[at : at + 104])
            need(f is not None and f["at"] == at, "the footers' chain is broken")
        return found[::-1]

    def read_tail(self):
        t = self.index[-32:]
        n = le(t, 16, 8)
        need(t[24:] == b"dltfsEND" and 32 <= n <= len(self.index) and n <= self.m.tail, "tail: trailer")
        tail = self.index[len(self.index) - n : -32]
        need(le(t, 0, 4) == crc32c(t[4:], crc32c(tail, self.seed)), "tail: checksum")
        need(t[4] == 0xD5 and t[5] in (0, 1) and t[6:8] == b"\0\0" and le(t, 8, 4) == self.number, "tail: fields")
        self.tail_has_fences = t[5] == 0
        footers, at = [], 0
        for _ in range(le(t, 12, 4)):
            f = self.footer(tail[at : at + 104])
            need(f is not None, "tail: footer")
            need(self.index[f["at"] : f["at"] + 104] == tail[at : at + 104], "tail: not a copy of the footer")
            at += 104
            if self.tail_has_fences:
                need(self.index[f["fence_at"] : f["at"]] == tail[at : at + f["fence_bytes"]], "tail: not a copy")
                at += f["fence_bytes"]
            footers.append(f)
        need(at == len(tail), "tail: length")
        return footers

    def fence(self, f):
        """[(first key, offset, bytes)] of the leaves"""
        d = self.index[f["fence_at"] : f["at"]]
        need(len(d) == f["fence_bytes"] >= 40, "fence: truncated")
        self.seal(d, "fence")
        id = (len(d), f["partition"], f["epoch"], f["segment"], f["leaves"], 0)
        need(d[4:8] == b"\xd3\0\0\0" and struct.unpack_from("<6I", d, 8) == id, "fence: fields")
        offset, at, key, leaves = le(d, 32, 8), 40, 0, []
        for _ in range(f["leaves"]):
            add, at = varint(d, at)
            length, at = varint(d, at)
            key += add
            leaves.append((key, offset, length))
            offset += length
        need(at == len(d) and offset == f["fence_at"] and key <= MASK, "fence: sizes")
        return leaves

    def leaf(self, f, number, first_key, offset, length):
        """[(key, run, block, record in the block, block's offset, records, bytes, epoch)]"""
        d = self.index[offset : offset + length]
        need(len(d) == length >= 56, "leaf: truncated")
        self.seal(d, "leaf")
        l, b = d[5], d[6]
        id = (length, f["partition"], f["epoch"], f["segment"], number)
        has_epochs = f["epoch"] < self.m.compacted
        need(d[4] == 0xD2 and l < 64 and d[7] == (2 if has_epochs else 0) and struct.unpack_from("<5I", d, 8) == id, "leaf: fields")
        n, first, last, runs, table_bytes = struct.unpack_from("<IQQII", d, 28)
        need(1 <= n <= 1048576 and first == first_key and first <= last, "leaf: keys")
        need(runs >= 1 and b == (runs - 1).bit_length(), "leaf: bits of a run number")
        rows = self.run_table(d[56 : 56 + table_bytes], runs)
        u = last - first >> l
        at = 56 + table_bytes
        upper = d[at : at + (n + u + 1 + 7) // 8]
        at += len(upper)
        lower = d[at : at + (n * l + 7) // 8]
        at += len(lower)
        numbers = d[at : at + (n * b + 7) // 8]
        at += len(numbers)
        need(at <= length if has_epochs else at == length, "leaf: length")
        stored = self.stored_epochs(d, at) if has_epochs else {}
        places = [i for i in range(8 * len(upper)) if bits(upper, i, 1)]
        need(len(places) == n and places[-1] == n + u - 1, "leaf: upper bits")
        need(le(lower, 0, len(lower)) >> n * l == 0 and le(numbers, 0, len(numbers)) >> n * b == 0, "leaf: filling")
        keys = [first + ((place - i) << l | bits(lower, i * l, l)) for i, place in enumerate(places)]
        need(keys == sorted(keys) and keys[0] == first and keys[-1] == last, "leaf: order of keys")
        used = [0] * runs
        out = []
        epoch = f["epoch"]
        for i, key in enumerate(keys):
            if has_epochs:
                epoch = stored.pop(i, epoch + 1 if i > 0 and key == keys[i - 1] else 0)
                need(epoch < self.m.compacted, "leaf: an epoch")
            r = bits(numbers, i * b, b)
            need(r < runs, "leaf: a run number")
            run, block, skip, blocks = rows[r]
            k = skip + used[r]
            used[r] += 1
            for j, (at, records, size) in enumerate(blocks):
                if k < records:
                    break
                k -= records
            need(k < records, "leaf: a record is not in its run's blocks")
            out.append((key, run, block + j, k, at, records, size, epoch))
        need(not stored, "leaf: epochs of no record")
        self.say(
            "  leaf %d: l %d b %d keys %d to %d, records %d, runs" % (number, l, b, first, last, n),
            " ".join("%d:%d+%d/%s" % (w[0], w[1], w[2], ",".join(str(x[1]) for x in w[3])) for w in rows),
            "bits %08x" % crc32c(upper + lower + numbers),
        )
        return out

    @staticmethod
    def stored_epochs(d, at):
        """{record: its epoch}"""
        out, i = {}, 0
        while at < len(d):
            add, at = varint(d, at)
            epoch, at = varint(d, at)
            need(add > 0 or not out, "leaf: records of epochs")
            i += add
            out[i] = epoch
        return out

    @staticmethod
    def run_table(d, runs):
        """[(run, first block, records before the leaf in it, [(offset, records, bytes)])]"""
        at = run = 0
        rows = []
        for i in range(runs):
            add, at = varint(d, at)
            run += add
            need(i == 0 or add > 0, "leaf: runs do not rise")
            block, at = varint(d, at)
            skip, at = varint(d, at)
            offset, at = varint(d, at)
            count, at = varint(d, at)
            blocks = []
            for _ in range(count):
                records, at = varint(d, at)
                size, at = varint(d, at)
                blocks.append((offset, records, size))
                offset += size
            need(blocks and skip < blocks[0][1], "leaf: a row")
            rows.append((run, block, skip, blocks))
        need(at == len(d), "leaf: length of the run table")
        return rows

    def block(self, epoch, run, number, offset, records, size):
        """The values as they are stored."""
        d = self.data[offset : offset + size]
        need(len(d) == size >= 32, "block: truncated")
        self.seal(d[: 32 + 8 * len(self.m.strips)] if len(d) > 32 and d[5] & 8 else d, "block")
        id = (self.number, epoch, run, number)
        need(d[4] == 0xD1 and struct.unpack_from("<4I", d, 16) == id, "block: fields")
        need(le(d, 6, 2) == records, "block: records")
        fixed = 8 if self.m.is_local else None if self.m.keys_are_bytes else self.m.value_size
        values, about = unpack(d, fixed, 1048576, self.m.strips, self.seed)
        self.say("  block run %d number %d: %s" % (run, number, about))
        return values

    def record(self, f, key, stored):
        """(key as it was given, value)"""
        if self.m.is_local:
            stored = self.places.value(f["epoch"], key, stored)
        if not self.m.keys_are_bytes:
            need(self.m.partition(f["epoch"], key) == self.number, "a key is in a wrong partition")
            return key, stored
        n = stored[0] if stored else 0
        need(n >= 1 and len(stored) > n, "a record: its key")
        name, value = stored[1 : 1 + n], stored[1 + n :]
        need(xxh3(name) >> f["shift"] == key, "a record: not that of the index")
        need(partition_of(xxh3(name), self.m.partitions) == self.number, "a key is in a wrong partition")
        need(self.m.value_size is None or len(value) == self.m.value_size, "a record: its value's size")
        return name, value

    def segment(self, f, blocks):
        """[(key, value, epoch)]"""
        earlier = list(blocks)
        out, runs, end = [], set(), 0
        before, leaf_first = (0, 0, 0), None
        for number, (first, offset, length) in enumerate(self.fence(f)):
            need(not out or before[0] < first or before[0] == leaf_first == first, "a segment: a key cut by a leaf's end")
            leaf_first = first
            places = self.leaf(f, number, first, offset, length)
            for key, run, block, record, at, records, size, epoch in places:
                id = (run, block)
                if id not in blocks:
                    blocks[id] = (self.block(f["epoch"], run, block, at, records, size), at, size)
                need(blocks[id][1:] == (at, size) and at + size <= f["data_end"], "two places of one block")
                need((key, run, block) >= before, "a segment: order of records")
                before = (key, run, block)
                runs.add(run)
                end = max(end, at + size)
                out.append(self.record(f, key, blocks[id][0][record]) + (epoch,))
            need((number > 0 or places[0][0] == f["first"]) and places[-1][0] <= f["last"], "a segment: keys")
        need((before[0], end) == (f["last"], f["data_end"]) or not out, "a segment: its last key, or its end")
        need(len(runs) == f["runs"], "a segment: its runs")
        need(all(run < other for run, _ in earlier for other in runs), "a segment: runs of earlier ones")
        raw = sum((len(key) if self.m.keys_are_bytes else 8) + len(value) for key, value, _ in out)
        raw = 0 if self.m.is_local else raw
        need((len(out), raw) == (f["records"], f["raw"]), "a segment: records and bytes")
        return out

    def epoch(self, number):
        """[(key, value, epoch)] as they are stored with an epoch"""
        segments = [f for f in self.segments if f["epoch"] == number]
        need(segments and [f["segment"] for f in segments] == list(range(len(segments))), "an epoch: segments")
        need([f["flags"] for f in segments] == [0] * (len(segments) - 1) + [1], "an epoch: the last segment")
        out, blocks = [], {}
        for f in segments:
            self.say(
                " epoch %d segment %d: flags %d shift %d leaves %d runs %d records %d raw %d keys %d to %d"
                % tuple(f[x] for x in "epoch segment flags shift leaves runs records raw first last".split())
            )
            out += self.segment(f, blocks)
        for (run, number), (values, at, size) in blocks.items():
            need(number == 0 or sum(blocks[run, number - 1][1:]) == at, "blocks of a run do not follow each other")
        return out


# ---- The commands


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


def quoted(text):
    return b'"' + text.replace(b'"', b'""') + b'"' if any(c in b',"\r\n' for c in text) else text


class Csv:
    def __init__(self, schema):
        self.fields = []
        for field in (schema or "").split(","):
            name, _, kind = field.partition(":")
            if kind:
                self.fields.append((name, kind[0], int(kind[1:])))
        names = [name for name, _, _ in self.fields] or ["size", "value"]
        self.header = ",".join(["key", "epoch"] + names).encode()

    def line(self, key, label, value):
        key = quoted(key) if isinstance(key, bytes) else b"%d" % key
        if not self.fields:
            return b"%s,%d,%d,%s" % (key, label, len(value), value.hex().encode())
        out, at = [key, b"%d" % label], 0
        for _, kind, size in self.fields:
            v = value[at : at + size]
            at += size
            if kind in "iu":
                out.append(b"%d" % int.from_bytes(v, "little", signed=kind == "i"))
            elif kind == "f":
                out.append(text_float(struct.unpack("<f" if size == 4 else "<d", v)[0]).encode())
            else:
                out.append(quoted(v.split(b"\0")[0]) if kind == "S" else v.hex().encode())
        return b",".join(out)


def read(folder, say=lambda *text: None):
    """Yields (key, label, value) in the order of a scan."""
    m = Manifest(os.path.join(folder, "MANIFEST"))
    for line in m.lines:
        # How well values were packed is not part of the structure.
        say(" ".join(w for w in line.split(" ") if not w.startswith(("stored=", "tail=", "uuid="))))
    yield m
    sums = [[0, 0] for _ in m.epochs]
    places = Places(folder, m, say)
    for number in range(m.partitions):
        p = Partition(folder, m, number, say, places)
        say("partition %d" % number, "" if m.tail is None else "tail with fences: %s" % p.tail_has_fences)
        records = [record for epoch in m.epochs for record in p.epoch(epoch["number"])]
        for key, value, epoch in sorted(records, key=lambda record: record[2]):
            sums[epoch][0] += 1
            sums[epoch][1] += (len(key) if m.keys_are_bytes else 8) + len(value)
            yield key, m.epochs[epoch]["label"], value
    need(sums == [[e["records"], e["raw"]] for e in m.epochs], "an epoch's records and bytes")


def main(command, folder):
    if command == "structure":
        for _ in read(folder, lambda *text: print(*text)):
            pass
        return
    records = read(folder)
    csv = Csv(next(records).schema)
    lines = [csv.header] + [csv.line(*record) for record in records]
    sys.stdout.buffer.write(b"\n".join(lines) + b"\n")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("csv", "structure"):
        sys.exit(__doc__)
    try:
        main(sys.argv[1], sys.argv[2])
    except (Damaged, KeyError, ValueError, IndexError, OSError) as e:
        print("decode.py: %s: %r" % (sys.argv[2], e), file=sys.stderr)
        sys.exit(3)
