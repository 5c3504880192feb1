"""Files of fixed-size records for `deltafs-mpi import --format raw`, and what a scan should print of them.

make_raw.py SCHEMA KEY COUNT PREFIX [--skip N] [--epoch N] [--seed N] [--negative RECORD]

Writes PREFIX.bin and PREFIX.csv (no header, not sorted). Floats have any bits; texts have quotes, commas and
blanks in them. With --negative that record's key is -1.
"""

import argparse
import random
import struct

from oracle import text_float

LETTERS = {("f", 4): "f", ("f", 8): "d"}


def random_bytes(r, n):
    return r.getrandbits(8 * n).to_bytes(n, "little")


def make_field(r, kind, size):
    """(bytes, text)"""
    if kind == "f":
        data = random_bytes(r, size)
        return data, text_float(struct.unpack("<" + LETTERS[kind, size], data)[0])
    if kind in "iu":
        data = random_bytes(r, size)
        return data, str(int.from_bytes(data, "little", signed=kind == "i"))
    if kind == "S":
        text = "".join(r.choice('ab ",;\'x') for _ in range(r.randrange(size + 1)))
        quoted = any(c in text for c in ',"')
        return text.encode().ljust(size, b"\0"), '"%s"' % text.replace('"', '""') if quoted else text
    data = random_bytes(r, size)
    return data, data.hex()


def make_key(r, kind, size):
    key = r.randrange(1 << (8 * size - (kind == "i")))
    return key.to_bytes(size, "little"), str(key)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("schema")
    p.add_argument("key")
    p.add_argument("count", type=int)
    p.add_argument("prefix")
    p.add_argument("--skip", type=int, default=0)
    p.add_argument("--epoch", type=int, default=0)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--negative", type=int, default=-1)
    a = p.parse_args()
    fields = [f.replace("<", "").split(":") for f in a.schema.split(",")]
    r = random.Random(a.seed)
    with open(a.prefix + ".bin", "wb") as out, open(a.prefix + ".csv", "w") as csv:
        out.write(b"#" * a.skip)
        for i in range(a.count):
            columns = []
            for name, code in fields:
                make = make_key if name == a.key else make_field
                data, text = make(r, code[0], int(code[1:]))
                if name == a.key:
                    if i == a.negative:
                        data = b"\xff" * len(data)
                    key = text
                else:
                    columns.append(text)
                out.write(data)
            csv.write(",".join([key, str(a.epoch)] + columns) + "\n")


if __name__ == "__main__":
    main()
