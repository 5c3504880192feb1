#!/bin/sh
# Logical files of the system, which are folders, are files for the programs of a run.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
put=$(cd "$top_builddir" && pwd)/put_logical
cd "$work" || exit 99

m() { mounted "logical=/=/" "$@"; }

# both COMMAND: run it by the shell in a folder that has logical files, and in one that has the same as plain files, and
# compare what it prints.
both() {
    (cd plain && sh -c "$1" 2>&1) >wanted
    (cd logical && m sh -c "$1" 2>&1) >got
    same got wanted "$1"
}

# make NAME SEED SIZE
make() { expect 0 "$put" "logical/$1" "plain/$1" "$2" 2 50 "$3"; }
mkdir -p plain/folder logical/folder
make small 1 100000
make large 2 9000000
make folder/other 3 5000
[ -d logical/small ] || fail "logical/small is no logical file"

both 'stat -c "%n %F %s %h" small large folder/other; stat -c %F folder'
both 'cat small | cksum; cksum large folder/other; cksum <large; wc -c small; head -c 70000 large | tail -c 100 | cksum'
both 'cmp small large; cmp large large && echo same; (head -c 10; head -c 10) <large | cksum; tail -c 1000 large | cksum'
both 'test -f small && test ! -d small && test -r small && test -w small && echo file; ls; ls folder'
both 'find . -type f | sort; find . -type d | sort; rmdir small; mkdir large; ls -A | wc -l; od -A d -j 3000 -N 64 small'
both 'cp large copy && cmp copy large && stat -c %F copy; cp -r folder copies && ls copies; tar -cf - small folder | cksum | wc -l'
both 'exec 5<small; dd bs=10 skip=7 count=3 <&5 2>/dev/null | cksum; dd bs=100 count=1 <&5 2>/dev/null | cksum'
both 'truncate -s 1000 small; cksum small; truncate -s 200000 small; cksum small; echo changed >small; cat small; echo more >>small; cat small'
both 'printf 12345 | dd of=large conv=notrunc bs=1 seek=5000000 2>/dev/null; cksum large; sed -i s/more/less/ small; cat small'
both 'mv large moved && cksum moved && ls; mv moved folder/other; cksum folder/other; ln -s folder/other link; wc -c <link; ls -L link'
both 'mv copy folder/other && cksum folder/other; rm small && ls; rm small; rm -r folder; ls -R'

# A file that is too large to be in memory when it is opened.
make big 7 20000000
[ "$(stat -c %s plain/big)" -gt 6000000 ] || fail "plain/big is small"
both 'exec 5<big; dd bs=1000000 skip=3 count=1 <&5 2>/dev/null | cksum; (dd bs=1000000 count=1 2>/dev/null; cat) <&5 | cksum'
both 'cksum big; cksum <big; tail -c 100000 big | cksum; sh -c "head -c 5000000 | cksum; cat | cksum" <big'
both 'printf end >>big; printf 12345 | dd of=big conv=notrunc bs=1 seek=5000000 2>/dev/null; cksum big; cp big bigger; cmp big bigger'

make shared 8 3000
both "$(cd "$top_builddir" && pwd)/posix_shared shared"

# The library and the commands of DeltaFS see folders, and a program without the variable, too.
make again 4 3000
expect 0 m "$deltafs" cat logical/again
same out plain/again "deltafs cat"
expect 0 m env DELTAFS_POSIX= test -d logical/again
expect 0 m "$deltafs" rm logical/again
[ ! -e logical/again ] || fail "deltafs rm: logical/again is there"

# Calls that do not ask first what a descriptor is.
make calls 5 6000000
make held 6 5000
cat >calls.py <<'END'
import ctypes, mmap, os, stat, sys
libc = ctypes.CDLL(None)
def digest(b): return len(b), sum(b) % 65521, b[:4], b[-4:]
fd = os.open("calls", os.O_RDONLY)
print(os.lseek(fd, -100, os.SEEK_END) > 0, digest(os.read(fd, 1000)))
fd = os.open("calls", os.O_RDONLY)
print(os.lseek(fd, 1000, os.SEEK_SET), digest(os.read(fd, 100)), digest(os.read(fd, 100)), os.lseek(fd, 0, os.SEEK_CUR))
fd = os.open("calls", os.O_RDONLY)
print(digest(os.pread(fd, 5000, 3000000)))
fd = os.open("calls", os.O_RDONLY)
b = [bytearray(10), bytearray(20)]
print(os.preadv(fd, b, 70000), os.readv(fd, b), b)
fd = os.open("calls", os.O_RDONLY)
at = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)(("mmap", libc))
p = at(None, 8192, mmap.PROT_READ, mmap.MAP_PRIVATE, fd, 4096 * 100)
print(digest(ctypes.string_at(p, 8192)))
print([(e.name, e.is_file(), e.is_dir()) for e in sorted(os.scandir("."), key=lambda e: e.name) if e.name in ("calls", "held")])
for how in os.O_RDONLY | os.O_DIRECTORY, os.O_RDWR | os.O_CREAT | os.O_EXCL:
    try: print(os.open("held", how))
    except OSError as e: print(e)
fd = os.open("held", os.O_RDWR)
os.pwrite(fd, b"abc", 100); os.ftruncate(fd, 300); os.fsync(fd)
print(os.path.getsize("held"), digest(os.pread(fd, 1000, 0)))
if os.fork() == 0:
    os.lseek(fd, 0, os.SEEK_END); os.write(fd, b"child"); os._exit(0)
os.wait(); os.write(fd, b"parent"); os.close(fd)
print(digest(open("held", "rb").read()))
with open("held", "r+b") as f:
    m = mmap.mmap(f.fileno(), 0); m[0:5] = b"first"; m.close()
with open("held", "ab") as f: f.write(b"last")
print(digest(open("held", "rb").read()))
os.chmod("held", 0o640); print(oct(os.stat("held").st_mode)); os.utime("held", (1e9, 1e9)); print(os.stat("held").st_mtime)
os.replace("held", "new"); os.truncate("new", 5); print(open("new").read(), os.path.realpath("new")[-4:])
END
both "\"${PYTHON3:-python3}\" ../calls.py"
[ "$(stat -c %a logical/new)" = 750 ] || fail "chmod: the folder cannot be entered"

# Open files whose names change, and how bytes are put into them.
make open 8 5000
make named 9 6000
mkdir plain/above logical/above
make above/below 10 7000
make kept 11 5000
cat >open.py <<'END'
import os, resource, signal
from fcntl import fcntl, F_SETFL
def see(path):
    with open(path, "rb") as f: b = f.read()
    print(path, len(b), sum(b) % 65521, b[:4], b[-4:])
fd = os.open("open", os.O_RDWR); os.pwrite(fd, b"open", 0); os.rename("open", "moved"); os.close(fd); see("moved")
fd = os.open("above/below", os.O_RDWR); os.pwrite(fd, b"below", 0); os.rename("above", "aside"); os.close(fd); see("aside/below")
fd = os.open("named", os.O_RDWR); os.pwrite(fd, b"lost", 0); os.rename("moved", "named"); os.close(fd); see("named")
fd = os.open("named", os.O_RDWR); os.pwrite(fd, b"gone", 0); os.unlink("named"); os.close(fd); print(os.path.exists("named"))
fd = os.open("kept", os.O_RDWR); os.pwrite(fd, b"kept", 0); fcntl(fd, F_SETFL, os.O_APPEND); os.write(fd, b"end"); os.close(fd); see("kept")
fd = os.open("kept", os.O_WRONLY | os.O_APPEND); os.write(fd, b"1" * 1300000)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN); most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (700000, most))
try: os.fsync(fd); failed = "logical" not in os.getcwd()
except OSError: failed = True
print(failed); resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)); os.fsync(fd); os.close(fd); see("kept")
fd = os.open("kept", os.O_RDONLY); os.fchmod(fd, 0o644); print(oct(os.stat("kept").st_mode), os.read(fd, 4))
fd = os.open("kept", os.O_RDWR); read = os.open("kept", os.O_RDONLY); os.pread(read, 1, 0)
os.truncate("kept", 5); print(os.fstat(fd).st_size, os.pread(read, 100, 0)); open("kept", "w").close(); print(os.fstat(fd).st_size)
END
both "\"${PYTHON3:-python3}\" ../open.py 2>/dev/null"

# Locks: of two descriptors, of one that is used afterwards, and of two processes that count.
cat >locks.py <<'END'
import os
from fcntl import flock, LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN
def attempt(fd):
    try: flock(fd, LOCK_EX | LOCK_NB); return True
    except BlockingIOError: return False
one = os.open("kept", os.O_RDWR); two = os.open("kept", os.O_RDWR); read = os.open("kept", os.O_RDONLY)
flock(one, LOCK_EX); print(attempt(two), attempt(read)); flock(one, LOCK_UN)
flock(read, LOCK_SH); os.read(read, 1); print(attempt(one)); os.close(read); print(attempt(one)); os.close(one)
os.truncate("kept", 0)
child = os.fork()
fd = os.open("kept", os.O_RDWR)
for i in range(20):
    flock(fd, LOCK_EX); n = int(os.pread(fd, 9, 0) or 0); os.pwrite(fd, b"%d" % (n + 1), 0); flock(fd, LOCK_UN)
if child == 0: os._exit(0)
os.wait(); os.close(fd); print(open("kept").read())
END
both "\"${PYTHON3:-python3}\" ../locks.py"
both 'exec 5<>kept; (flock 5; echo in); flock -n kept true || echo locked; exec 5>&-; flock -n kept echo free'
# Another process puts a file where an open one was: what was written to that is not put into the new one.
make mine 12 4000
make theirs 13 4000
cat >replaced.py <<'END'
import os, subprocess
fd = os.open("mine", os.O_RDWR)
subprocess.run("mv mine old; mv theirs mine", shell=True, check=True)
try:
    os.pwrite(fd, b"ours", 0)
    os.close(fd)
except OSError as e: print(e)
END
(cd logical && m "${PYTHON3:-python3}" ../replaced.py) >out 2>err
grep -q "Stale file handle" out || fail "a file that was replaced: $(cat out err)"
grep -q "another process has removed the file" err || fail "a file that was replaced: $(cat err)"
expect 0 "$deltafs" cat logical/mine
same out plain/theirs "a file that was replaced"

# What lists a folder does not say that a logical file is one; and other calls on it.
mkdir plain/listed logical/listed
make listed/other 14 5000
cat >listed.py <<'END'
import ctypes, os
from ctypes import byref, c_size_t, c_void_p, create_string_buffer, string_at
libc = ctypes.CDLL(None)
libc.opendir.restype = libc.fopen.restype = libc.freopen.restype = c_void_p
def say(how, entry):
    name, kind = string_at(entry + 19), string_at(entry + 18, 1)[0]
    if name != b"." and name != b"..": print(how, name, kind in (0, 8))
out = ctypes.POINTER(c_void_p)()
for i in range(libc.scandir(b"listed", byref(out), None, None)): say("scandir", out[i])
room = create_string_buffer(300); entry = c_void_p(); d = c_void_p(libc.opendir(b"listed"))
while libc.readdir_r(d, room, byref(entry)) == 0 and entry.value: say("readdir_r", entry.value)
bytes = create_string_buffer(4096); size = libc.getdents64(os.open("listed", os.O_RDONLY), bytes, c_size_t(4096)); at = 0
while at < size:
    say("getdents64", ctypes.addressof(bytes) + at); at += int.from_bytes(bytes[at + 16:at + 18], "little")
name = "listed/other"
f = c_void_p(libc.freopen(name.encode(), b"r", c_void_p(libc.fopen(b"/dev/null", b"r"))))
print(libc.fread(bytes, c_size_t(1), c_size_t(100), f), bytes.raw[:100])
r, w = os.pipe()
print(os.sendfile(w, os.open(name, os.O_RDONLY), 0, 10), os.read(r, 10))
print(os.copy_file_range(os.open(name, os.O_RDONLY), os.open("new", os.O_RDWR | os.O_CREAT), 10))
for go in lambda: os.chdir(name), lambda: os.fchdir(os.open(name, os.O_RDONLY)):
    try: go(); print("gone to")
    except OSError as e: print(e.errno)
END
both "\"${PYTHON3:-python3}\" ../listed.py"

# As many mounts as there can be, and logical files.
many=$(for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do printf '%s' "namespace=/none$i=$work/none|"; done)
expect 0 mounted "${many}logical=/=/" test -f logical/mine
expect 127 mounted "${many}namespace=/none=$work/none" test -d logical

# Not in a mount.
expect 0 "$deltafs" ns create ns
expect 3 mounted "namespace=/mounted=$work/ns|logical=/=/" "$put" /mounted/file plain/again 1 2 50 1000
grep -q "^deltafs: /mounted/file: logical files and DeltaFS directories cannot be in a mount" err || fail "in a mount: $(cat err)"
expect 0 "$deltafs" ns ls ns:/
[ ! -s out ] || fail "in a mount: $(cat out)"
