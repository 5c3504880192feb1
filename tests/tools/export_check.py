"""Compare an exported file with what `deltafs select` or `get` has printed as csv.

    export_check.py FORMAT FILE CSV

FORMAT is npy, npz or parquet; READER:parquet reads it by pyarrow, duckdb or pandas."""
import csv
import math
import sys


def rows_of_arrays(names, arrays):
    return names, list(zip(*(a.tolist() for a in arrays)))


def read_npy(path):
    import numpy
    a = numpy.load(path)
    return rows_of_arrays(list(a.dtype.names), [a[n] for n in a.dtype.names])


def read_npz(path):
    import numpy
    import zipfile
    with zipfile.ZipFile(path) as z:
        if z.testzip():
            sys.exit("a checksum of the archive is wrong")
    z = numpy.load(path)
    return rows_of_arrays(z.files, [z[n] for n in z.files])


def same(got, text):
    if isinstance(got, float):
        return float(text) == got or math.isnan(got) and text == "nan"
    if isinstance(got, int):
        return str(got) == text
    return got.decode("latin-1") == text or got.hex() == text


def main():
    kind, path, wanted = sys.argv[1:]
    names, rows = {"npy": read_npy, "npz": read_npz}[kind](path)
    with open(wanted, encoding="latin-1", newline="") as f:
        lines = csv.reader(f)
        if next(lines) != names:
            sys.exit("columns: %s" % names)
        n = 0
        for n, line in enumerate(lines, 1):
            if n > len(rows) or not all(map(same, rows[n - 1], line)):
                sys.exit("row %d: %s instead of %s" % (n, rows[n - 1] if n <= len(rows) else None, line))
    if n != len(rows):
        sys.exit("%d rows instead of %d" % (len(rows), n))


main()
