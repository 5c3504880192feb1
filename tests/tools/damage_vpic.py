"""damage_vpic.py FOLDER: dumps with something wrong in each; prints lines FILE<tab>what the message should say."""

import os
import struct
import sys

from make_vpic import dump, odd_grid

PARTICLES = 5
IDS = 115 + 32 * PARTICLES


def main():
    folder = sys.argv[1]
    os.makedirs(folder)
    good = os.path.join(folder, "good")
    dump(good, 12, 0, 1, 0, odd_grid(12, 0, 1), [(7 * i, [0.5] * 3 + [i] + [0.25] * 4) for i in range(PARTICLES)])
    with open(good, "rb") as f:
        data = f.read()
    assert len(data) == IDS + 12 + 8 * PARTICLES

    def put(name, content, text):
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.write(content)
        print("%s\t%s" % (path, text))

    def patch(name, offset, new, text):
        put(name, data[:offset] + new + data[offset + len(new) :], text)

    def i32(v):
        return struct.pack("<i", v)

    for n in (0, 1, 4, 22, 60, 102, 103, 114):
        put("cut-%d" % n, data[:n], "too short")
    for n in (115, 116, 115 + 31, 115 + 32, IDS - 1, IDS + 1, IDS + 11, IDS + 12, IDS + 13, len(data) - 8, len(data) - 1):
        put("cut-%d" % n, data[:n], "truncated")
    put("no-ids", data[:IDS], "no particle IDs")
    for n in (1, 8, 40, 5000):
        put("more-%d" % n, data + b"\0" * n, "bytes too many")
    put("twice", data + data, "bytes too many")
    put("not-a-dump", b"x" * 1000, "offset 0")
    put("zeros", b"\0" * 1000, "offset 0")
    for i in range(5):
        patch("sizes-%d" % i, i, bytes([data[i] ^ 0x0C]), "offset 0")
    patch("big-endian", 5, struct.pack(">HIfd", 0xCAFE, 0xDEADBEEF, 1, 1), "big-endian")
    for offset in range(5, 7):
        patch("cafe-%d" % offset, offset, bytes([data[offset] ^ 0x20]), "offset 5")
    for offset in range(7, 11):
        patch("deadbeef-%d" % offset, offset, bytes([data[offset] ^ 0x20]), "offset 7")
    for offset in (11, 14, 15, 22):
        patch("one-%d" % offset, offset, bytes([data[offset] ^ 0x20]), "offset 11")
    for version in (1, -1, 256):
        patch("version-%d" % version, 23, i32(version), "offset 23")
    for kind in (0, 1, 2, 4, -3):
        patch("kind-%d" % kind, 27, i32(kind), "offset 27")
    patch("step", 31, i32(-1), "offset 31")
    for size in (0, 28, 31, 40, -32):
        patch("size-%d" % size, 103, i32(size), "offset 103")
    for dimensions in (0, 2, -1):
        patch("dimensions-%d" % dimensions, 107, i32(dimensions), "offset 107")
    for n in (-1, -(2**31)):
        patch("negative-%d" % n, 111, i32(n), "offset 111")
    for n in (PARTICLES + 1, 2**31 - 1):
        patch("n-%d" % n, 111, i32(n), "truncated")
    for n in (0, PARTICLES - 1):
        patch("n-%d" % n, 111, i32(n), "bytes too many")
    for offset, value in ((0, 4), (0, 16), (4, 2), (4, 0), (8, PARTICLES - 1), (8, PARTICLES + 1), (8, -1), (8, 0)):
        patch("ids-%d-%d" % (offset, value), IDS + offset, i32(value), "offset %d" % IDS)


if __name__ == "__main__":
    main()
