"""Compare an exported file with what `deltafs select` or `get` has printed as csv, or with all of VPIC's dumps in a folder.

    export_check.py READER FILE CSV | FOLDER

READER reads the file: npy and npz by NumPy, parquet by Python alone, and pyarrow, pandas and duckdb, which read Parquet."""
import csv
import glob
import math
import os
import struct
import sys


# ---- NumPy

def read_npy(path):
    import numpy
    a = numpy.load(path)
    return (list(a.dtype.names), [a[n] for n in a.dtype.names])


def read_npz(path):
    import numpy
    import zipfile
    with zipfile.ZipFile(path) as z:
        if z.testzip():
            sys.exit("a checksum of the archive is wrong")
    z = numpy.load(path)
    return (z.files, [z[n] for n in z.files])


# ---- Parquet, by its specification

class Thrift:
    """The compact protocol: structs become dictionaries by number of field."""

    def __init__(self, data, at):
        self.data, self.at = data, at

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            b = self.byte()
            value |= (b & 0x7f) << shift
            shift += 7
            if b < 0x80:
                return value

    def signed(self):
        n = self.varint()
        return n >> 1 ^ -(n & 1)

    def binary(self):
        n = self.varint()
        self.at += n
        return self.data[self.at - n:self.at]

    def list(self):
        head = self.byte()
        n = head >> 4 if head >> 4 < 15 else self.varint()
        return [self.value(head & 15) for _ in range(n)]

    def struct(self):
        fields, last = {}, 0
        while True:
            head = self.byte()
            if head == 0:
                return fields
            last = last + (head >> 4) if head >> 4 else self.signed()
            fields[last] = self.value(head & 15)

    def value(self, kind):
        return {1: lambda: True, 2: lambda: False, 3: self.byte, 4: self.signed, 5: self.signed, 6: self.signed,
                8: self.binary, 9: self.list, 12: self.struct}[kind]()


def uncompress(data):
    """Snappy."""
    head = Thrift(data, 0)
    size, at, out = head.varint(), head.at, bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            n = tag >> 2
            if n >= 60:
                more = n - 59
                n = int.from_bytes(data[at:at + more], "little")
                at += more
            out += data[at:at + n + 1]
            at += n + 1
            continue
        n = 4 + (tag >> 2 & 7) if tag & 3 == 1 else 1 + (tag >> 2)
        extra = {1: 1, 2: 2, 3: 4}[tag & 3]
        offset = int.from_bytes(data[at:at + extra], "little") | (tag >> 5 << 8 if tag & 3 == 1 else 0)
        at += extra
        while n > 0:
            piece = out[len(out) - offset:][:n]
            out += piece
            n -= len(piece)
    assert len(out) == size
    return bytes(out)


def cells(column, data):
    """The values of a page. column: a SchemaElement."""
    kind, converted = column[1], column.get(6)
    if kind in (4, 5):
        return [v for v, in struct.iter_unpack("<f" if kind == 4 else "<d", data)]
    if kind in (1, 2):
        values = [v for v, in struct.iter_unpack("<i" if kind == 1 else "<q", data)]
        unsigned, bits = converted < 15, 8 << (converted - 11) % 4
        assert column[10][10] == {1: bits, 2: not unsigned}
        return [v % (1 << 32 * kind) for v in values] if unsigned else values
    if kind == 7:
        return [data[i:i + column[2]] for i in range(0, len(data), column[2])]
    values, at = [], 0
    while at < len(data):
        n = int.from_bytes(data[at:at + 4], "little")
        values.append(data[at + 4:at + 4 + n])
        at += 4 + n
    return values


def limit(column, data):
    return cells(column, data)[0]


def read_chunk(data, column, meta):
    at, end, values, plain = meta[9], meta[9] + meta[7], [], 0
    while at < end:
        head, start = Thrift(data, at), at
        page = head.struct()
        at = head.at + page[3]
        got = cells(column, uncompress(data[head.at:at]))
        assert page[1] == 0 and page[5] == {1: len(got), 2: 0, 3: 3, 4: 3}, page
        values += got
        plain += page[2] + head.at - start
    assert at == end and meta[6] == plain and meta[5] == len(values) and meta[4] == 1 and meta[3] == [column[4]], meta
    if 12 in meta:
        assert (limit(column, meta[12][6]), limit(column, meta[12][5])) == (min(values), max(values)), meta
    return values


def read_parquet(path):
    data = open(path, "rb").read()
    assert data[:4] == data[-4:] == b"PAR1"
    size = int.from_bytes(data[-8:-4], "little")
    footer = Thrift(data, len(data) - 8 - size)
    meta = footer.struct()
    assert footer.at == len(data) - 8
    root, *schema = meta[2]
    assert root[5] == len(schema) == len(meta[7])
    columns = [[] for _ in schema]
    for group in meta[4]:
        assert len(group[1]) == len(schema)
        for c, chunk in enumerate(group[1]):
            values = read_chunk(data, schema[c], chunk[3])
            assert len(values) == group[3]
            columns[c] += values
    assert all(len(c) == meta[3] for c in columns)
    return ([c[4].decode() for c in schema], columns)


# ---- Parquet, by those who use it

def read_pyarrow(path):
    import pyarrow.parquet
    table = pyarrow.parquet.read_table(path)
    table.validate(full=True)
    return (table.column_names, [c.to_numpy() for c in table.columns])


def read_pandas(path):
    import pandas
    frame = pandas.read_parquet(path)
    return (list(frame.columns), [frame[n].to_numpy() for n in frame.columns])


def read_duckdb(path):
    import duckdb
    found = duckdb.read_parquet(path).fetchnumpy()
    return list(found), list(found.values())


# ---- Comparing

def same(got, text):
    if isinstance(got, float):
        return float(text) == got or math.isnan(got) and text == "nan"
    if isinstance(got, int):
        return str(got) == text
    return got.decode("latin-1") == text or got.hex() == text


def check_column(name, got, texts):
    got = got if isinstance(got, list) else got.tolist()
    if len(got) != len(texts):
        sys.exit("%s: %d rows instead of %d" % (name, len(got), len(texts)))
    # At once if that suffices.
    if isinstance(got[0], float) and got == list(map(float, texts)) or list(map(str, got)) == texts:
        return
    for row, (value, text) in enumerate(zip(got, texts), 1):
        if not same(value, text):
            sys.exit("%s: row %d: %r instead of %s" % (name, row, value, text))


def read_dumps(folder):
    """The arrays of all dumps, in the order of epochs, then keys."""
    import numpy
    particle = numpy.dtype("<f4,<f4,<f4,<i4,<f4,<f4,<f4,<f4")
    particle.names = ("dx", "dy", "dz", "i", "ux", "uy", "uz", "w")
    rows = []
    for path in glob.glob(folder + "/eparticle.*"):
        data = open(path, "rb").read()
        step, n = struct.unpack_from("<i", data, 31)[0], struct.unpack_from("<i", data, 111)[0]
        values = numpy.frombuffer(data, particle, n, 115)
        keys = numpy.frombuffer(data, "<u8", n, 127 + 32 * n)
        rows.append([keys, numpy.full(n, step, "u8")] + [values[name] for name in particle.names])
    columns = [numpy.concatenate(c) for c in zip(*rows)]
    order = numpy.lexsort(columns[:2])
    return ["key", "epoch", *particle.names], [c[order] for c in columns]


def check_dumps(names, columns, folder):
    import numpy
    wanted_names, wanted = read_dumps(folder)
    if names != wanted_names:
        sys.exit("columns: %s" % names)
    for name, got, want in zip(names, columns, wanted):
        got = numpy.asarray(got, want.dtype) if isinstance(got, list) else got
        if got.dtype != want.dtype or got.tobytes() != want.tobytes():
            sys.exit("%s: %s instead of %s" % (name, got, want))


def check_csv(names, columns, path):
    with open(path, encoding="latin-1", newline="") as f:
        lines = csv.reader(f)
        if next(lines) != names:
            sys.exit("columns: %s" % names)
        for name, got, texts in zip(names, columns, map(list, zip(*lines))):
            check_column(name, got, texts)


def main():
    reader, path, wanted = sys.argv[1:]
    names, columns = globals()["read_" + reader](path)
    (check_dumps if os.path.isdir(wanted) else check_csv)(names, columns, wanted)


main()
