"""A second reader of namespaces, written from deltafs-format(5) alone.

    decode_namespace.py NAMESPACE

Prints a line for each entry, by path: the path, its type, mode, owner, group, time of modification, size, and the
SHA-256 of a file's bytes, or a link's target."""

import hashlib
import os
import re
import struct
import sys

from decode import Damaged, crc32c, need, read, varint, xxh3

CHUNK = 262144
ROOT = (0, 1)
REMOVED, FILE, FOLDER, LINK = range(4)


class Entry:
    pass


def signed(d):
    return -((d + 1) // 2) if d & 1 else d // 2


def entry(value):
    e = Entry()
    e.type, name_size, e.mode, *ids, e.stamp = struct.unpack("<BBH5Q", value[:44])
    e.parent, e.id = tuple(ids[:2]), tuple(ids[2:])
    at = 44 + name_size
    need(e.type <= LINK and 1 <= name_size and at <= len(value), "a record of an entry")
    e.name = value[44:at]
    need(e.name not in (b".", b"..") and b"\0" not in e.name, "a name")
    if e.type != REMOVED:
        numbers = []
        for _ in range(5):
            number, at = varint(value, at)
            numbers.append(number)
        e.uid, e.gid, mtime, _, e.size = numbers
        e.mtime = e.stamp + signed(mtime)
        e.place = e.target = None
        if e.type == FILE and e.size > 0:
            e.place = struct.unpack("<QQ", value[at : at + 16])
            at += 16
        if e.type == LINK:
            e.target = value[at : at + e.size]
            at += e.size
    need(at == len(value), "a record with anything else")
    return e


class Namespace:
    def __init__(self, path):
        self.path = path
        self.chunks = {}
        self.root = None
        self.read_head()
        newest = {}
        for name in sorted(os.listdir(path)):
            if re.fullmatch("t[0-9a-f]{16}", name):
                self.read_table(name, newest)
        self.names = {}
        for e in newest.values():
            if e.type != REMOVED:
                self.names.setdefault((e.parent, e.name), []).append(e)

    def read_head(self):
        with open(os.path.join(self.path, "NAMESPACE"), "rb") as f:
            lines = f.read().split(b"\n")
        need(lines.pop() == b"", "the last line")
        for line in lines:
            need(line[-10:-8] == b" ~" and int(line[-8:], 16) == crc32c(line[:-10]), "the checksum of a line")
        words = lines[1].split(b" ")
        self.has_journals = words[0].startswith(b"Journals")
        if self.has_journals:
            words = lines[2].split(b" ")
        need(lines[0].startswith(b"Deltafs version=1 ") and words[0] == b"Namespace", "the first lines")
        fields = dict(w.split(b"=") for w in words[1:-1])
        self.root = [int(fields[k]) for k in (b"mode", b"uid", b"gid", b"time")]

    def read_table(self, name, newest):
        table = int(name[1:], 16)
        stored = read(os.path.join(self.path, name))
        next(stored)
        records = list(stored)
        last = max((label for _, label, _ in records), default=0)
        for key, label, value in records + self.read_journal(name, table, last):
            e = entry(value)
            need(key == (xxh3(struct.pack("<QQ", *e.parent)) >> 32) << 32 | xxh3(e.name) & 0xFFFFFFFF, "the key of an entry")
            need(e.stamp < label, "a stamp")
            e.order = (e.stamp, table)
            known = newest.get((e.parent, e.name, e.id))
            if known is None or known.order < e.order:
                newest[e.parent, e.name, e.id] = e
        data = os.path.join(self.path, name + ".data")
        if os.path.isdir(data):
            records = read(data)
            next(records)
            for key, _, value in records:
                self.chunks[table, key] = value

    def read_journal(self, name, table, last):
        """The records of commits behind the last epoch; their chunks are kept."""
        try:
            with open(os.path.join(self.path, name + ".journal"), "rb") as f:
                content = f.read()
        except OSError:
            return []
        need(self.has_journals, "a journal")
        records, at = [], 0
        while len(content) - at >= 32:
            magic, checksum, label, number, size, _ = struct.unpack_from("<IIQQII", content, at)
            end = at + 32 + size
            if magic != 0x314A4644 or end > len(content) or checksum != crc32c(content[at + 8 : end]):
                break  # it was interrupted
            need(number == table, "the table of a commit")
            at += 32
            while at < end:
                kind, size, key = struct.unpack_from("<BIQ", content, at)
                at += 13 + size
                need(at <= end, "a record of a commit")
                if label > last and kind == 1:
                    records.append((key, label, content[at - size : at]))
                elif label > last:
                    self.chunks[table, key] = content[at - size : at]
        return records

    def chunk(self, place, size):
        value = b"" if place == (0, 0) else self.chunks[place]
        need(len(value) <= size, "a chunk")
        return value + bytes(size - len(value))

    def bytes_of(self, e):
        if e.size == 0:
            return b""
        if e.size <= CHUNK:
            return self.chunk(e.place, e.size)
        count = -(-e.size // CHUNK)
        listed = b"".join(self.chunks[e.place[0], e.place[1] + k] for k in range(-(-16 * count // CHUNK)))
        need(len(listed) == 16 * count, "a list of places")
        sizes = [CHUNK] * (count - 1) + [e.size - (count - 1) * CHUNK]
        return b"".join(self.chunk(struct.unpack_from("<QQ", listed, 16 * k), sizes[k]) for k in range(count))

    def show(self, path, kind, attributes, what):
        line = b"%s %s %04o %d %d %d %d" % (path or b"/", kind, *attributes)
        sys.stdout.buffer.write(line + (b" " + what if what else b"") + b"\n")

    def show_all(self):
        mode, uid, gid, time = self.root
        stored = self.names.get(((0, 0), b"/"))
        if stored:
            e = max(stored, key=lambda e: e.order)
            mode, uid, gid, time = e.mode, e.uid, e.gid, e.mtime
        self.show(b"", b"folder", (mode, uid, gid, time, 0), b"")
        self.show_folder(b"", {ROOT})

    def show_folder(self, path, ids):
        names = {}
        for (parent, name), entries in self.names.items():
            if parent in ids:
                names.setdefault(name, []).extend(entries)
        for name in sorted(names):
            folders = [e for e in names[name] if e.type == FOLDER]
            e = max(folders or names[name], key=lambda e: e.order)
            attributes = (e.mode, e.uid, e.gid, e.mtime, e.size)
            inside = path + b"/" + name
            if folders:
                self.show(inside, b"folder", attributes, b"")
                self.show_folder(inside, {e.id for e in folders})
            elif e.type == FILE:
                self.show(inside, b"file", attributes, hashlib.sha256(self.bytes_of(e)).hexdigest().encode())
            else:
                self.show(inside, b"link", attributes, e.target)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        Namespace(sys.argv[1]).show_all()
    except (Damaged, KeyError, ValueError, IndexError, OSError, struct.error) as e:
        print("decode_namespace.py: %s: %r" % (sys.argv[1], e), file=sys.stderr)
        sys.exit(3)
