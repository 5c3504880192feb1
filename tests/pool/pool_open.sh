#!/bin/sh
# Open files of a pool, and of a namespace: what is in memory, and what other processes write to them meanwhile.
. "$top_srcdir/tests/pool/pool_lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
[ -n "${PYTHON3:-}" ] || skip "no Python"

cat >"$work/program.py" <<'END_OF_PROGRAM'
import ctypes, os, platform, resource, struct, subprocess, sys
MIB = 1 << 20
what, d = sys.argv[1:3]
c = ctypes.CDLL(None, use_errno=True)

# Bytes of memory that a file has: asked without this library.
def memory(fd):
    done = subprocess.run(["stat", "-L", "-c", "%b", "/proc/%d/fd/%d" % (os.getpid(), fd)], env={"PATH": os.environ["PATH"]},
                          stdout=subprocess.PIPE, check=True)
    return int(done.stdout) * 512

# A shell that was begun before a file is open, so that it does not have it.
shell = subprocess.Popen(["sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def other(command):
    shell.stdin.write(command.encode() + b"\necho done\n")
    shell.stdin.flush()
    assert shell.stdout.readline() == b"done\n"

def fork():
    if os.fork() == 0:
        os._exit(0)
    os.wait()

# A stream that leads into the mount, of more than is held in memory: it is put there several times.
def stream():
    out = ctypes.c_void_p.in_dll(c, "stdout")
    c.freopen.restype = ctypes.c_void_p
    c.freopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
    assert c.freopen((d + "/stream").encode(), b"w", out)
    for i in range(20):
        assert c.fwrite(b"x" * MIB, 1, MIB, out) == MIB
    assert c.fflush(out) == 0
    os.fsync(1)
    assert c.fputs(b"end", out) >= 0 and c.fflush(out) == 0

# Memory of a file that a child has, too, and of one with small pieces here and there.
def held():
    f = os.open(d + "/held", os.O_WRONLY | os.O_CREAT)
    fork()
    for i in range(64):
        os.write(f, bytes([i]) * MIB)
    assert memory(f) < 24 * MIB, memory(f)
    with open(d + "/held", "rb") as g:
        assert all(g.read(MIB) == bytes([i]) * MIB for i in range(64))

def pieces():
    f = os.open(d + "/pieces", os.O_WRONLY | os.O_CREAT)
    for i in range(16384):
        os.pwrite(f, b"x", i * 4096)
    assert memory(f) < 24 * MIB, memory(f)
    os.close(f)
    assert open(d + "/pieces", "rb").read() == (b"x" + bytes(4095)) * 16383 + b"x"

# A file that could not be replaced is that of the pool, as before.
def kept():
    path = d + "/kept"
    other("printf 'old bytes' >" + path)
    f = os.open(path, os.O_RDWR)
    os.mkdir(d + "/folder")
    try:
        os.rename(d + "/folder", path)
        assert 0
    except NotADirectoryError:
        pass
    other("printf new >>" + path)
    assert os.lseek(f, 0, 2) == 12 and os.pread(f, 100, 0) == b"old bytesnew"

# The end of a file that several processes add to, by one descriptor and by others.
def ends():
    path = d + "/ends"
    f = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    os.write(f, b"first")
    fork()
    other("printf other >>" + path)
    assert os.lseek(f, 0, 2) == 10
    os.write(f, b"own")
    assert open(path, "rb").read() == b"firstotherown"
    os.ftruncate(f, 0)
    os.write(f, b"again")
    assert open(path, "rb").read() == b"again"
    other("printf x >" + path)
    os.lseek(f, 0, 2)
    os.write(f, b"y")
    assert open(path, "rb").read() == b"xy"

# What programs add in several pieces stays together.
def added():
    children = []
    for letter in b"ABC":
        pid = os.fork()
        if pid == 0:
            f = os.open(d + "/added", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            for i in range(1000):
                os.writev(f, [bytes([letter]) * 100, bytes([letter]) * 99, b"\n"])
            os.close(f)
            os._exit(0)
        children.append(pid)
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in children)
    lines = open(d + "/added", "rb").read().split(b"\n")[:-1]
    assert len(lines) == 3000 and all(line == line[:1] * 199 for line in lines)

# Descriptors of the library have high numbers, as far as they are allowed.
def numbers():
    before = os.listdir("/proc/self/fd")
    open(d + "/number", "w").close()
    for n in set(os.listdir("/proc/self/fd")) - set(before):
        try:
            to = os.readlink("/proc/self/fd/" + n)
        except OSError:
            continue
        assert int(n) >= 100 or not to.startswith(("socket:", "anon_inode:")), (n, to)

# Calls of fsync fail from now on, if they reach the kernel.
def refuse_fsync():
    number = {"x86_64": 74, "aarch64": 82}[platform.machine()]
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050005), (0x06, 0, 0, 0x7fff0000)]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(filters)))
    assert c.prctl(38, 1, 0, 0, 0) == 0 and c.prctl(22, 2, program) == 0

# What others have written meanwhile is stored, too, and nothing is if there is nothing.
def synced():
    with open(d + "/own", "w") as f:
        f.write("own")
        f.flush()
        os.fsync(f.fileno())
        refuse_fsync()
        os.fsync(f.fileno())
        other("printf x >%s/other" % d)
        g = os.open(d + "/other", os.O_RDONLY)
        try:
            os.fsync(g)
            assert 0
        except OSError as e:
            assert e.errno == 5, e

{"stream": stream, "held": held, "pieces": pieces, "kept": kept, "ends": ends, "added": added, "numbers": numbers,
 "synced": synced}[what]()
shell.stdin.close()
shell.wait()
END_OF_PROGRAM

# try MOUNT FOLDER WHAT: a part of the program.
try() {
    mounted "$1" timeout 120 "$PYTHON3" "$work/program.py" "$3" "$2" || fail "$3 in $2"
}
# same_stream MOUNT FILE: a stream has what was written to it.
same_stream() {
    { head -c 20971520 /dev/zero | tr '\0' x && printf end; } >"$work/wanted"
    mounted "$1" cmp "$2" "$work/wanted" || fail "$2 has other bytes"
}

pool_start 2
for part in stream held kept ends added; do
    try "pool=$point=$point" "$point" $part
done
(ulimit -n 256 && try "pool=$point=$point" "$point" numbers) || exit 1
same_stream "pool=$point=$point" "$point/stream"
pool_stop

expect 0 "$deltafs" ns create "$work/ns"
for part in stream held pieces synced; do
    try "namespace=/mounted=$work/ns" /mounted $part
done
same_stream "namespace=/mounted=$work/ns" /mounted/stream
