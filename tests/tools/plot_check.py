"""Check a picture of deltafs plot.

plot_check.py svg FILE      prints what it shows: its size, a line for each track (its key, the parts of its line, its
                            points), a line for each text
plot_check.py png FILE      prints its size; checks that it is complete
"""

import struct
import sys
import xml.etree.ElementTree
import zlib

SVG = "{http://www.w3.org/2000/svg}"


def show_svg(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    assert root.tag == SVG + "svg", root.tag
    width, height = float(root.get("width")), float(root.get("height"))
    print("size", round(width), round(height))
    for group in root.iter(SVG + "g"):
        paths = [p for p in group.iter(SVG + "path") if "L" in p.get("d")]
        lines = [p.get("d") for p in paths]
        colors = {p.get("stroke") for p in paths} | {c.get("fill") for c in group.iter(SVG + "circle")}
        dots = list(group.iter(SVG + "circle"))
        for d in lines:
            for x, y in (p.split() for p in d.replace("M", "L").split("L")[1:]):
                assert 0 <= float(x) <= width and 0 <= float(y) <= height, d
        parts = sum("L" in part for d in lines for part in d.split("M"))
        print("track %s: parts=%d points=%d colors=%d" % (group.find(SVG + "title").text, parts, len(dots), len(colors)))
    for text in root.iter(SVG + "text"):
        print("text", text.text)


def show_png(path):
    data = open(path, "rb").read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:8]
    at, pixels, kind = 8, b"", b""
    while kind != b"IEND":
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        content = data[at + 8 : at + 8 + size]
        assert struct.pack(">I", zlib.crc32(kind + content)) == data[at + 8 + size : at + 12 + size], kind
        if kind == b"IHDR":
            width, height, depth, colors = struct.unpack(">IIBB", content[:10])
            assert (depth, colors) == (8, 2), (depth, colors)
        if kind == b"IDAT":
            pixels += content
        at += 12 + size
    assert at == len(data), "bytes behind the picture"
    pixels = zlib.decompress(pixels)
    assert len(pixels) == height * (1 + 3 * width), len(pixels)
    print("size", width, height)


if __name__ == "__main__":
    {"svg": show_svg, "png": show_png}[sys.argv[1]](sys.argv[2])
