"""Programs for the test of deltafs run --check: run_check.py PROGRAM FOLDER

It makes copies of PROGRAM in FOLDER that differ in a few bytes, as other kinds of programs do. None of them is started.
"""
import os
import random
import struct
import sys

PHDR = struct.Struct("<IIQQQQQQ")
PT_NULL, PT_INTERP, PT_NOTE = 0, 3, 4
DAMAGED = 30

with open(sys.argv[1], "rb") as file:
    PROGRAM = file.read().replace(b"\0syscall\0", b"\0sysconf\0")
FOLDER = sys.argv[2]
E_PHOFF, E_SHOFF = struct.unpack_from("<QQ", PROGRAM, 32)
E_PHNUM = struct.unpack_from("<H", PROGRAM, 56)[0]


def write(name, data):
    path = os.path.join(FOLDER, name)
    with open(path, "wb") as out:
        out.write(data)
    os.chmod(path, 0o755)


def changed(at, new):
    return PROGRAM[:at] + new + PROGRAM[at + len(new):]


def renamed(old, new):
    """A name of the dynamic section becomes another one that is not longer."""
    at = PROGRAM.index(b"\0" + old + b"\0")
    assert len(new) <= len(old)
    return changed(at + 1, new.ljust(len(old), b"\0"))


def segment(kind):
    """Where the head of a segment is, and where the segment."""
    for i in range(E_PHNUM):
        at = E_PHOFF + i * PHDR.size
        p = PHDR.unpack_from(PROGRAM, at)
        if p[0] == kind:
            yield at, p[2], p[5]


def go_note():
    for _, begin, size in segment(PT_NOTE):
        at = PROGRAM.find(b"GNU\0", begin, begin + size)
        if at >= 0:
            data = PROGRAM[:at - 4] + struct.pack("<I", 4) + b"Go\0\0" + PROGRAM[at + 4:]
            return data
    raise ValueError("no note")


write("same", PROGRAM)
write("word", changed(4, b"\1"))
write("endian", changed(5, b"\2"))
write("machine", changed(18, struct.pack("<H", 0xBEEF)))
write("object", changed(16, struct.pack("<H", 1)))
write("static", changed(next(segment(PT_INTERP))[0], struct.pack("<I", PT_NULL)))
write("go", go_note())
write("libc", renamed(b"libc.so.6", b"libc.musl"))
write("liburing", renamed(b"libdeltafs.so.0", b"liburing.so.2"))
write("io_uring", renamed(b"deltafs_snapshot_open", b"io_uring_setup"))
write("syscall", renamed(b"realloc", b"syscall"))
write("no_sections", changed(60, b"\0\0"))
write("cut", PROGRAM[:E_PHOFF + E_PHNUM * PHDR.size - 1])
write("no_dynamic", changed(next(segment(2))[0], struct.pack("<I", PT_NULL)))

# What is read of a damaged file may be anything, but no crash: the head, the segments and the sections.
random.seed(28)
END = len(PROGRAM)
for i in range(DAMAGED):
    data = bytearray(PROGRAM)
    for _ in range(random.choice((1, 2, 8))):
        at = random.choice((random.randrange(16, 64), random.randrange(E_PHOFF, E_PHOFF + E_PHNUM * PHDR.size),
                            random.randrange(E_SHOFF, END),
                            random.choice(list(segment(2)))[1] + random.randrange(256)))
        data[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
    write(f"damaged{i}", bytes(data[:END if i % 4 else random.randrange(64, END)]))
