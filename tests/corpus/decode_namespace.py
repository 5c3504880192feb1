"""A second reader of namespaces, written from deltafs-format(5) alone.

    decode_namespace.py NAMESPACE

Prints a line for each entry, by path: the path, its type, mode, owner, group, time of modification, size, and the
SHA-256 of a file's bytes, or a link's target. The namespace may be on top of snapshots, but of no merge by the policy
first or last."""

import hashlib
import os
import re
import struct
import sys

from decode import Damaged, crc32c, need, read, varint, xxh3

CHUNK = 262144
ROOT = (0, 1)
REMOVED, FILE, FOLDER, LINK = range(4)


NEVER = 1 << 64


class Entry:
    pass


class Layer:
    pass


def text_lines(path):
    """The words of each line of a text, without its checksum."""
    with open(path, "rb") as f:
        lines = f.read().split(b"\n")
    need(lines.pop() == b"", "the last line")
    for line in lines:
        need(line[-10:-8] == b" ~" and int(line[-8:], 16) == crc32c(line[:-10]), "the checksum of a line")
        yield line[:-10].split(b" ")


def fields_of(words):
    """The fields of a line; a path is the last one."""
    text = b" ".join(words[1:])
    before, has_path, path = (b" " + text).partition(b" path=")
    fields = dict(w.split(b"=") for w in before.split())
    if has_path:
        fields[b"path"] = path
    return fields


def commit_end(labels, label):
    """The label of the epoch that has the commit with this label."""
    return min((x for x in labels if x >= label), default=label)


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
        self.layers = []
        self.read_head()
        replaced, is_complete = self.read_compacted()
        newest = {}
        for table in sorted({int(x[1:17], 16) for x in os.listdir(path) if re.fullmatch("t[0-9a-f]{16}(.data)?", x)}):
            self.read_table(path, table, replaced.get(table, 0), NEVER, newest)
        self.read_layers(is_complete, newest)
        self.names = {}
        for e in newest.values():
            if e.type != REMOVED:
                self.names.setdefault((e.parent, e.name), []).append(e)

    def read_head(self):
        lines = list(text_lines(os.path.join(self.path, "NAMESPACE")))
        self.has_journals = lines[1] == [b"Journals"]
        if self.has_journals:
            del lines[1]
        need(lines[0][:2] == [b"Deltafs", b"version=1"] and lines[1][0] == b"Namespace", "the first lines")
        fields = fields_of(lines[1])
        self.root = [int(fields[k]) for k in (b"mode", b"uid", b"gid", b"time")]
        need(int(fields.get(b"lines", b"0")) == len(lines) - 2, "the lines of layers and tables")
        for words in lines[2:]:
            fields = fields_of(words)
            if words[0] == b"Table":
                self.layers[-1].tables.append([int(fields.get(k, b"0"), 0) for k in (b"number", b"from", b"limit")])
                continue
            need(words[0] == b"Layer" and fields.get(b"policy") not in (b"first", b"last"), "a layer")
            layer = Layer()
            layer.path = fields.get(b"path", b"").decode()
            layer.inputs = [int(i) for i in fields[b"inputs"].split(b",") if i]
            layer.is_complete = fields.get(b"complete", b"0") != b"0"
            layer.tables = []
            self.layers.append(layer)

    def read_compacted(self):
        """The tables that are replaced, up to which label; whether the names of the layers are in the others."""
        path = os.path.join(self.path, "COMPACTED")
        if not os.path.exists(path):
            return {}, False
        first, second, *others = map(fields_of, text_lines(path))
        need(first[b"version"] == b"1", "the first line")
        return {int(t[b"number"], 0): int(t[b"limit"]) for t in others}, second.get(b"complete", b"0") != b"0"

    def read_layers(self, is_complete, newest):
        """Names are read only in layers that are not below complete ones; bytes of files in all."""
        asked = set() if is_complete else {len(self.layers) - 1}
        for i in reversed(range(len(self.layers))):
            layer = self.layers[i]
            if i in asked and not layer.is_complete:
                asked.update(layer.inputs)
            for number, first, limit in layer.tables:
                self.read_table(layer.path, number, first, limit if i in asked else first, newest)

    def read_table(self, folder, table, first, limit, newest):
        """Its records behind the commit with the label `first`, up to the one with the label `limit`."""
        name = "t%016x" % table
        records = []
        if first < limit and os.path.isdir(os.path.join(folder, name)):
            stored = read(os.path.join(folder, name))
            manifest = next(stored)
            records = list(stored)
            self.check_covers(manifest.epochs, records)
        last = max((label for _, label, _ in records), default=0)
        labels = {label for _, label, _ in records}
        begin, end = commit_end(labels, first), commit_end(labels, limit)
        for key, label, value in records + self.read_journal(folder, name, table, last):
            e = entry(value)
            if not first < label <= end or e.stamp > limit or (label == begin and e.stamp <= first):
                continue
            need(key == (xxh3(struct.pack("<QQ", *e.parent)) >> 32) << 32 | xxh3(e.name) & 0xFFFFFFFF, "the key of an entry")
            need(e.stamp < label, "a stamp")
            e.order = (e.stamp, table)
            known = newest.get((e.parent, e.name, e.id))
            if known is None or known.order < e.order:
                newest[e.parent, e.name, e.id] = e
        data = os.path.join(folder, name + ".data")
        if os.path.isdir(data):
            records = read(data)
            next(records)
            for key, _, value in records:
                self.chunks[table, key] = value

    @staticmethod
    def check_covers(epochs, records):
        """An epoch that covers others has the newest record of each of their entries, and nothing else."""
        number = {epoch["label"]: epoch["number"] for epoch in epochs}
        stamps = [{} for _ in epochs]
        for _, label, value in records:
            e = entry(value)
            of = stamps[number[label]].setdefault((e.parent, e.name, e.id), [])
            of.append(e.stamp)
        for epoch in (epoch for epoch in epochs if epoch["covers"] > 0):
            newest = {}
            for covered in stamps[epoch["number"] - epoch["covers"] : epoch["number"]]:
                for name, of in covered.items():
                    newest[name] = [max(of + newest.get(name, []))]
            need(newest == stamps[epoch["number"]], "an epoch that covers others")

    def read_journal(self, folder, name, table, last):
        """The records of commits behind the last epoch; their chunks are kept."""
        try:
            with open(os.path.join(folder, name + ".journal"), "rb") as f:
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
