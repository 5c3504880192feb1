#!/bin/sh
# Programs as they are, with a pool behind a mount point.
. "$top_srcdir/tests/pool/pool_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"

p() { mounted "pool=$point=$point" timeout 60 "$@"; }
# same WHAT: standard input is what $work/out has.
same() { diff - "$work/out" >"$work/diff" || fail "$1: $(cat "$work/diff")"; }

pool_start 2

# Files of the shell, whose descriptors the C library writes to by itself, and those of several programs.
p sh -c 'cd "$0" && mkdir a && echo one >a/f && echo two >>a/f && /bin/echo three >>a/f && cat a/f && wc -c <a/f &&
    (echo x; echo y) >a/g && cat <a/g && mv a/g a/h && ls a && cat a/f a/h | sort -r >sorted && cat sorted' "$point" \
    >"$work/out" || fail "a shell"
same "a shell" <<'END'
one
two
three
14
x
y
f
h
y
x
two
three
one
END

# What one program has written, another sees, and without a mount nothing is there.
p sh -c 'exec 3>"$0/open"; echo begun >&3; /bin/cat "$0/open"; echo more >&3; /bin/cat "$0/open"; exec 3>&-' "$point" \
    >"$work/out" || fail "a file that is open"
same "a file that is open" <<'END'
begun
begun
more
END
[ ! -e "$point" ] || fail "the mount point is there without a mount"

# Large files, copies, folders, and what is not there.
head -c 3000000 /dev/urandom >"$work/big"
p cp "$work/big" "$point/big" || fail "cp into the pool"
p cmp "$work/big" "$point/big" || fail "cmp"
p cp "$point/big" "$work/back" && cmp "$work/big" "$work/back" || fail "cp out of the pool"
p dd if="$work/big" of="$point/big" bs=1000 seek=100 skip=7 count=900 conv=notrunc status=none || fail "dd"
dd if="$work/big" of="$work/back" bs=1000 seek=100 skip=7 count=900 conv=notrunc status=none
p cmp "$work/back" "$point/big" || fail "cmp after dd"
p truncate -s 1234567 "$point/big" && truncate -s 1234567 "$work/back" && p cmp "$work/back" "$point/big" ||
    fail "truncate"
[ "$(p stat -c '%s %F' "$point/big")" = "1234567 regular file" ] || fail "stat"
expect 1 p cat "$point/none"
expect 1 p rmdir "$point/a"
expect 1 p ln "$point/big" "$point/link"
p mv "$point/a" "$point/b" || fail "mv of a folder"
[ "$(p find "$point" -type f | wc -l)" -eq 5 ] || fail "find: $(p find "$point" -type f)"
p df "$point" >/dev/null || fail "df"

# Programs that append at once lose nothing.
# shellcheck disable=SC2016
p sh -c 'for k in 1 2 3 4; do (i=0; while [ $i -lt 100 ]; do echo "$k $i"; i=$((i + 1)); done >>"$0/log") & done; wait' \
    "$point" || fail "programs that append"
[ "$(p sort -u "$point/log" | wc -l)" -eq 400 ] || fail "lines of programs that append are lost"

# A descriptor that a program inherits never writes into another file that has got its name.
expect 1 p sh -c 'cd "$0" && exec >log && mv log log.1 && echo new >log && cat /etc/passwd' "$point"
[ "$(p cat "$point/log")" = new ] || fail "a descriptor that was inherited: $(p cat "$point/log")"

# Maps, streams and descriptors that programs inherit.
if [ -n "${PYTHON3:-}" ]; then
    cat >"$work/program.py" <<'END'
import mmap, os, subprocess, sys
d = sys.argv[1]
with open(d + "/m", "wb") as f:
    f.write(b"0123456789" * 1000)
with open(d + "/m", "r+b") as f:
    m = mmap.mmap(f.fileno(), 0)
    assert m[5:15] == b"5678901234"
    m[0:4] = b"abcd"
    m.flush()
    m.close()
    f.seek(0, 2)
    f.write(b"end")
assert open(d + "/m", "rb").read(6) == b"abcd45" and os.stat(d + "/m").st_size == 10003
with open(d + "/o", "w+") as f:
    f.write("parent\n"); f.flush()
    subprocess.run(["sh", "-c", "echo child; /bin/echo grandchild"], stdout=f, check=True)
    f.seek(0)
    assert f.read() == "parent\nchild\ngrandchild\n"
with open(d + "/a", "w+b") as f:
    os.posix_fallocate(f.fileno(), 0, 700000)
    assert os.fstat(f.fileno()).st_size == 700000
    f.seek(699999); f.write(b"x"); f.flush()
    os.posix_fallocate(f.fileno(), 0, 5)
    subprocess.run(["fallocate", "-z", "-o", "699990", "-l", "5", d + "/a"], check=True)
    f.seek(0)
    assert f.read() == bytes(699999) + b"x"
pid = os.fork()
with open(d + "/fork.%d" % (pid == 0), "w") as f:
    f.write("x" * 100000)
if pid == 0:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert sorted(x for x in os.listdir(d) if x.startswith("fork")) == ["fork.0", "fork.1"]
assert os.stat(d + "/fork.1").st_size == 100000
os.chmod(d + "/o", 0o640); os.utime(d + "/o", (1, 2))
st = os.stat(d + "/o")
assert st.st_mode & 0o777 == 0o640 and st.st_mtime == 2 and st.st_atime == 1
f, g = os.open(d + "/o", os.O_RDWR), os.open(d + "/m", os.O_RDWR)
os.unlink(d + "/o")
assert os.read(f, 7) == b"parent\n" and os.write(f, b"more") == 4 and os.pread(f, 8, 5) == b"t\nmored\n"
assert os.fstat(f).st_nlink == 0 and os.fstat(f).st_size == 24
os.ftruncate(f, 3)
assert os.fstat(f).st_size == 3
# Another process removes it: it is lost.
subprocess.run(["rm", d + "/m"], check=True)
try:
    os.read(g, 1)
    assert 0
except OSError as e:
    assert e.errno == 116, e # ESTALE
try:
    open(d + "/fork.0/")
    assert 0
except NotADirectoryError:
    pass
END
    p "$PYTHON3" "$work/program.py" "$point" || fail "a program"
fi
pool_stop

# A file is where it was created.
pool_start 3 --placement local
p cp "$work/big" "$point/big" && p cmp "$work/big" "$point/big" || fail "a file on one node"
expect 0 "$deltafs" pool status "$point"
[ "$(grep -c '^server .* 3002368 bytes,' "$work/out")" -eq 1 ] || fail "a file is on several nodes: $(cat "$work/out")"
pool_stop
expect 3 "$deltafs" run --pool "$point" -- true
expect 2 p ls "$point"
grep -q 'no pool is mounted here' "$work/err" || fail "the message of a pool that is gone: $(cat "$work/err")"
