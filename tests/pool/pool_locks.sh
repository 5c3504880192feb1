#!/bin/sh
# Programs as they are that lock a pool's files, or parts of them: fcntl, lockf, flock.
. "$top_srcdir/tests/pool/pool_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
[ -n "${PYTHON3:-}" ] || skip "no Python"

cat >"$work/program.py" <<'END_OF_PROGRAM'
import errno, fcntl, os, signal, struct, sys
path = sys.argv[1] + "/locked"
f = os.open(path, os.O_RDWR | os.O_CREAT)
parent = os.getpid()

def find(fd, kind, start, n):
    kind, _, start, n, pid = struct.unpack("hhqqi", fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack("hhqqi", kind, 0, start, n, 0)))
    return (kind, start, n, pid) if kind != fcntl.F_UNLCK else None

def fails(error, call, *arguments):
    try:
        call(*arguments)
    except OSError as e:
        assert e.errno == error, e
    else:
        assert 0, call

def begin(run):
    pid = os.fork()
    if pid == 0:
        try:
            run(os.open(path, os.O_RDWR))
            os._exit(0)
        except BaseException as e:
            print(repr(e), file=sys.stderr)
            os._exit(1)
    return pid

def child(run):
    assert os.waitpid(begin(run), 0)[1] == 0

# What one process has, another is refused.
fcntl.lockf(f, fcntl.LOCK_EX, 100, 50)
fcntl.lockf(f, fcntl.LOCK_UN, 20, 80)
fcntl.lockf(f, fcntl.LOCK_SH, 0, 1000)
def other(g):
    assert find(g, fcntl.F_WRLCK, 0, 0) == (fcntl.F_WRLCK, 50, 30, parent)
    assert find(g, fcntl.F_RDLCK, 90, 0) == (fcntl.F_WRLCK, 100, 50, parent)
    assert find(g, fcntl.F_WRLCK, 2000, 5) == (fcntl.F_RDLCK, 1000, 0, parent)
    assert find(g, fcntl.F_RDLCK, 2000, 5) is None
    fcntl.lockf(g, fcntl.LOCK_EX | fcntl.LOCK_NB, 20, 80)
    fcntl.lockf(g, fcntl.LOCK_SH | fcntl.LOCK_NB, 20, 3000)
    fails(errno.EAGAIN, fcntl.lockf, g, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 50)
    os.lseek(g, 60, 0)
    fails(errno.EACCES, os.lockf, g, os.F_TEST, 1)
    fails(errno.EAGAIN, os.lockf, g, os.F_TLOCK, -5)
    h = os.open(path, os.O_RDONLY)
    fails(errno.EBADF, fcntl.lockf, h, fcntl.LOCK_EX | fcntl.LOCK_NB, 20, 80)
    def ring(*_):
        raise TimeoutError
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        fcntl.lockf(g, fcntl.LOCK_EX, 1, 50)
        assert 0
    except TimeoutError:
        pass
child(other)

# flock is a lock of the whole file.
def whole(g):
    fails(errno.EAGAIN, fcntl.flock, g, fcntl.LOCK_EX | fcntl.LOCK_NB)
fcntl.flock(f, fcntl.LOCK_SH)
def part(g):
    fcntl.flock(g, fcntl.LOCK_SH | fcntl.LOCK_NB)
    whole(g)
child(part)
fcntl.flock(f, fcntl.LOCK_EX)
child(whole)
fcntl.flock(f, fcntl.LOCK_UN)

# A process that is killed has none any more.
r, w = os.pipe()
def wait(g):
    fcntl.lockf(g, fcntl.LOCK_EX, 10, 300)
    os.write(w, b"x")
    signal.pause()
pid = begin(wait)
os.read(r, 1)
fails(errno.EAGAIN, fcntl.lockf, f, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 300)
os.kill(pid, signal.SIGKILL)
fcntl.lockf(f, fcntl.LOCK_EX, 10, 300)
os.waitpid(pid, 0)

# Closing any descriptor of the file unlocks it.
os.close(os.open(path, os.O_RDWR))
def free(g):
    assert find(g, fcntl.F_WRLCK, 0, 0) is None
child(free)

# Only one at a time counts.
os.pwrite(f, bytes(8), 0)
def count(g):
    for i in range(20):
        fcntl.lockf(g, fcntl.LOCK_EX, 8, 0)
        os.pwrite(g, struct.pack("q", struct.unpack("q", os.pread(g, 8, 0))[0] + 1), 0)
        fcntl.lockf(g, fcntl.LOCK_UN, 8, 0)
for pid in [begin(count) for i in range(3)]:
    assert os.waitpid(pid, 0)[1] == 0
assert struct.unpack("q", os.pread(f, 8, 0))[0] == 60

# Of a file that was removed, nobody else has a lock.
os.unlink(path)
assert find(f, fcntl.F_WRLCK, 0, 0) is None
os.lockf(f, os.F_TEST, 0)
END_OF_PROGRAM
pool_start 2
mounted "pool=$point=$point" timeout 60 "$PYTHON3" "$work/program.py" "$point" || fail "a program"
pool_stop
