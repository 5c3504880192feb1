"""page_example.py PAGE DIR: write the files of the worked example of deltafs-format(5), as the page's source has them,
into the folder DIR, which is made; and what it says their records are, as `deltafs scan --format csv` prints them but
sorted, to standard output."""

import os
import re
import sys

# The offset of the first byte, groups of bytes, and what they mean.
ROW = re.compile(r"([0-9a-f]{4})  ([0-9a-f]+(?: [0-9a-f]+)*)(?:  .*)?$")


def plain(line):
    return line.replace("\\-", "-").replace("\\(ti", "~")


def parts(page):
    """{name: lines}"""
    found, name, is_open = {}, None, False
    for line in page.split("\n"):
        if line.startswith('.\\" example: '):
            name = line[len('.\\" example: ') :]
            found[name] = []
        elif line in (".nf", ".fi"):
            is_open = line == ".nf" and name is not None
            name = name if is_open else None
        elif is_open:
            found[name].append(plain(line))
    return found


def content(name, lines):
    if name == "MANIFEST":
        return "".join(line + "\n" for line in lines).encode()
    data = b""
    for line in lines:
        row = ROW.match(line)
        if not row or int(row[1], 16) != len(data):
            sys.exit("%s: not at offset %x: %s" % (name, len(data), line))
        data += bytes.fromhex(row[2].replace(" ", ""))
    return data


def main(page, folder):
    with open(page) as f:
        found = parts(f.read())
    rows = []
    for line in found.pop("records"):
        label, _, records = line.partition(": ")
        for record in records.split():
            key, value = record.split("=")
            rows.append((int(key), int(label.split()[1]), value))
    for name, lines in found.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content(name, lines))
    # Records of one key and epoch stay in the order in which they stand.
    for key, label, value in sorted(rows, key=lambda row: row[:2]):
        print("%d,%d,%s" % (key, label, value))


if __name__ == "__main__":
    main(*sys.argv[1:])
