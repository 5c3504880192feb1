#!/bin/sh
# Programs as they are rename folders of a pool, and use symbolic links there.
. "$top_srcdir/tests/pool/pool_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"

p() { mounted "pool=$point=$point" timeout 60 "$@"; }

[ -n "${PYTHON3:-}" ] || skip "no Python"

cat >"$work/files.py" <<'END'
def fails(number, fn, *arguments):
    try:
        fn(*arguments)
    except OSError as e:
        assert e.errno == number, (e, fn, arguments)
    else:
        assert 0, (fn, arguments)

def write(path, text):
    with open(path, "w") as f:
        f.write(text)

def read(path):
    with open(path) as f:
        return f.read()
END

cat >"$work/folders.py" <<'END'
import errno, os, stat, subprocess, sys
from files import fails, read, write
d = sys.argv[1]

os.chdir(d)
os.makedirs("step.tmp/a/b/c")
for i in range(50):
    write("step.tmp/%d" % i, str(i))
    write("step.tmp/a/b/%d" % i, "b%d" % i)
os.chmod("step.tmp/a", 0o751)
os.utime("step.tmp/a", (3, 4))

# What is open, and the working directory, go along.
f = open("step.tmp/a/b/7", "r+")
folder = os.open("step.tmp/a", os.O_RDONLY)
os.chdir("step.tmp/a")
os.rename(d + "/step.tmp", d + "/step")
assert os.getcwd() == d + "/step/a" and read("b/3") == "b3"
os.chdir(d)
assert f.read() == "b7"
f.write("more"); f.flush()
os.fchmod(f.fileno(), 0o640)
assert read("step/a/b/7") == "b7more" and os.stat("step/a/b/7").st_mode & 0o777 == 0o640
assert os.listdir(folder) == ["b"]
assert sorted(os.listdir(d)) == ["step"] and len(os.listdir("step")) == 51 and len(os.listdir("step/a/b")) == 51
st = os.stat("step/a")
assert st.st_mode == stat.S_IFDIR | 0o751 and st.st_mtime == 4 and st.st_size == 0
for i in range(50):
    assert read("step/%d" % i) == str(i)

# As rename(2) has it.
os.mkdir("empty"); os.mkdir("full"); write("full/x", "x"); write("file", "file")
fails(errno.ENOTEMPTY, os.rename, "step", "full")
fails(errno.ENOTDIR, os.rename, "step", "file")
fails(errno.EISDIR, os.rename, "file", "empty")
fails(errno.EINVAL, os.rename, "step", "step/a/b/c/d")
fails(errno.ENOENT, os.rename, "none", "other")
fails(errno.ENOENT, os.rename, "step", "none/other")
fails(errno.ENOTDIR, os.rename, "step", "file/other")
fails(errno.ENOTEMPTY, os.rename, "step/a", "step")
os.rename("step", "step")
os.rename("step", "empty")
assert not os.path.exists("step") and read("empty/a/b/7") == "b7more"
os.rename("empty/a/b", "full/b/")
assert sorted(os.listdir("full")) == ["b", "x"] and len(os.listdir("full/b")) == 51 and os.listdir("empty/a") == []

# Other programs.
subprocess.run(["mv", "empty", "full/b/c/moved"], check=True)
assert read("full/b/c/moved/49") == "49"
subprocess.run(["mv", "-T", "full", "last"], check=True)
assert read("last/b/c/moved/49") == "49"
subprocess.run(["rm", "-r", "last", "file"], check=True)
assert os.listdir(d) == []
END

cat >"$work/links.py" <<'END'
import errno, os, stat, sys
from files import fails, read, write
d, outside = sys.argv[1:]

os.chdir(d)
os.makedirs("a/b"); write("a/b/f", "text")
os.symlink("a/b", "l"); os.symlink("../a/b/f", "a/l"); os.symlink(d + "/a", "absolute")
os.symlink("f", "a/b/same"); os.symlink("none", "dangling"); os.symlink("loop", "loop")
assert os.readlink("l") == "a/b" and os.readlink("absolute") == d + "/a"
st = os.lstat("l")
assert stat.S_ISLNK(st.st_mode) and st.st_size == 3 and os.stat("l").st_ino == os.stat("a/b").st_ino
assert [e.is_symlink() for e in sorted(os.scandir("a"), key=lambda e: e.name)] == [False, True]
for path in ["l/f", "a/l", "absolute/b/f", "absolute/l", "l/same", "l/../b/f", "a/../absolute/b/same", "a/../l/../b/f"]:
    assert read(path) == "text", path
assert os.listdir("l") == os.listdir("l/") and stat.S_ISDIR(os.lstat("l/").st_mode)
write("l/new", "new"); write("absolute/l", "more"); os.mkdir("l/folder"); os.rmdir("a/b/folder")
assert read("a/b/new") == "new" and read("a/b/f") == "more"
write("dangling", "made"); assert read("none") == "made"
os.rename("l/new", "absolute/newer"); assert read("a/newer") == "new"
os.chmod("l/f", 0o640); assert os.stat("a/b/f").st_mode & 0o777 == 0o640
os.truncate("a/l", 2); assert read("a/b/f") == "mo"
# The links themselves.
os.chown("l", os.getuid(), os.getgid(), follow_symlinks=False)
os.utime("l", (1, 2), follow_symlinks=False)
assert os.lstat("l").st_mtime == 2 and os.stat("l").st_mtime != 2
os.rename("l", "moved"); assert os.readlink("moved") == "a/b" and read("moved/f") == "mo"
os.rename("absolute", "moved"); os.unlink("moved"); assert read("a/newer") == "new"
f = os.open("a/b/same", os.O_RDONLY)
os.unlink("a/b/same"); assert os.read(f, 9) == b"mo"; os.close(f)
fails(errno.ELOOP, os.open, "a/l", os.O_RDONLY | os.O_NOFOLLOW)
fails(errno.ELOOP, os.stat, "loop")
fails(errno.ELOOP, os.stat, "loop/x")
fails(errno.EEXIST, os.open, "a/l", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
fails(errno.EEXIST, os.symlink, "x", "a/l")
fails(errno.EEXIST, os.mkdir, "loop")
fails(errno.ENOTDIR, os.rmdir, "loop")
fails(errno.EINVAL, os.readlink, "a")
fails(errno.ENOENT, os.readlink, "nothing")
fails(errno.ENOENT, os.symlink, "", "empty")
fails(errno.ENAMETOOLONG, os.symlink, "x" * 4096, "long")
for path in ["none/x", "a/b/f/x", "a/b/f/x/y", "a/l/x"]:
    fails(errno.ENOTDIR, os.stat, path)
    fails(errno.ENOTDIR, open, path)
    fails(errno.ENOTDIR, open, path, "w")
for name in ["a/b/f/", "a/l/"]:
    for call in [[os.open, name, os.O_WRONLY | os.O_TRUNC], [os.unlink, name], [os.truncate, name, 1], [os.chmod, name, 0],
                 [os.rename, name, "other"], [os.rename, "a/b/f", "other/"]]:
        fails(errno.ENOTDIR, *call)
fails(errno.EISDIR, os.open, "other/", os.O_WRONLY | os.O_CREAT)
fails(errno.EISDIR, os.open, "a/", os.O_WRONLY)
assert read("a/b/f") == "mo" and not os.path.lexists("other")
os.rename("a/b", "a/c/"); os.chmod("a/c/", 0o700); os.rename("a/c/", "a/b")
fails(errno.ENOENT, os.stat, "nothing/x")
fails(errno.ENOENT, open, "nothing/x", "w")

# Out of the pool, and from there into it.
os.symlink(outside, "out"); os.symlink("../outside/f", "up"); os.symlink(outside + "/none", "out.none")
write("out/f", "outside")
assert read(outside + "/f") == "outside" and read("up") == "outside" and os.path.realpath("up") == outside + "/f"
os.symlink(d + "/a", outside + "/in")
assert read(outside + "/in/b/f") == "mo" and read("out/in/l") == "mo"
fails(errno.ENOENT, os.stat, "out.none")
assert os.path.lexists("out.none") and os.path.realpath("a/l") == d + "/a/b/f"
os.chdir("out"); assert os.getcwd() == outside
os.chdir(d)
assert sorted(os.listdir(d)) == sorted(["a", "dangling", "loop", "none", "out", "out.none", "up"])
END

# Trees with links are copied, packed, moved and removed.
trees() {
    p sh -ec 'cd "$0" && rm -r ./* && mkdir -p t/x/y && echo f >t/x/y/f && ln -s y/f t/x/l && ln -s ../x t/x/self && ln -s none t/d
        ln -s "$0/t/x" t/point && cp -a t u && cp -a t "$1/copy" && tar cf "$1/t.tar" t && mkdir v && tar xf "$1/t.tar" -C v
        mv "$1/copy" w && mv u v/u && ln -sf other t/d && test "$(readlink t/d)" = other && ln -sfn none t/d
        for tree in v/u v/t w; do
            diff -r --no-dereference t "$tree"
            test "$(find "$tree" -type l | wc -l)" -eq 4
            test "$(cat "$tree/x/self/self/l" "$tree/point/y/f")" = "f
f"
        done
        find -L w/x -name f | grep . && ! find w -xtype l | grep -v "^w/d$"
        rm -r t v w; test -z "$(ls -A .)"' "$point" "$work" >"$work/out" 2>&1
}

for n in 1 $(in_full 2) 3; do
    pool_start "$n"
    p "$PYTHON3" "$work/folders.py" "$point" || fail "folders on $n servers"
    rm -rf "$work/outside" && mkdir "$work/outside"
    p "$PYTHON3" "$work/links.py" "$point" "$work/outside" || fail "links on $n servers"
    [ "$n" -eq 1 ] || trees || fail "trees with links on $n servers: $(cat "$work/out")"
    pool_stop
done
