#!/bin/sh
# Folders of a pool are renamed by programs as they are.
. "$top_srcdir/tests/pool/pool_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"

p() { mounted "pool=$point=$point" timeout 60 "$@"; }

[ -n "${PYTHON3:-}" ] || skip "no Python"

cat >"$work/folders.py" <<'END'
import errno, os, stat, subprocess, sys
d = sys.argv[1]

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

for n in 1 2 3; do
    pool_start "$n"
    p "$PYTHON3" "$work/folders.py" "$point" || fail "folders on $n servers"
    pool_stop
done
