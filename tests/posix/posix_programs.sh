#!/bin/sh
# Programs that begin others, and programs that are files of a mount.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
cd "$work" || exit 99
expect 0 "$deltafs" ns create ns

# Without a mount in use, nothing of DeltaFS but the preloaded library is loaded.
m sh -c 'grep -c "libdeltafs\.so\|libsnappy\|libstdc" /proc/$$/maps; cat /mounted/none 2>/dev/null; exit 7' >out
[ $? -eq 7 ] || fail "the exit status of a shell"
[ "$(cat out)" = 0 ] || fail "libdeltafs is loaded without need"
mkdir alone && cp "$posix_libraries/libdeltafs_posix.so" alone
DELTAFS_POSIX="namespace=/mounted=$work/ns" LD_PRELOAD=$work/alone/libdeltafs_posix.so cat /mounted/x 2>err
[ $? -eq 127 ] || fail "without libdeltafs: $(cat err)"
grep -q "install DeltaFS again" err || fail "without libdeltafs: $(cat err)"

# Without mounts on purpose, and with them in spite of another environment.
m sh -c 'echo text >/mounted/text; env -i /bin/cat /mounted/text; env LD_PRELOAD= cat /mounted/text
    DELTAFS_POSIX= sh -c "cat /mounted/text 2>&1"' >out
printf 'text\ntext\ncat: /mounted/text: No such file or directory\n' >wanted
same out wanted "the environment"

# Programs in a mount: scripts, one that a script runs, and binaries; found by PATH, too.
cat >args <<'END'
#!/bin/sh -e
echo "$0: $#: $1"
END
chmod +x args
expect 0 m cp -p args /mounted/args
expect 0 m cp -p "$(command -v expr)" /mounted/expr
printf '#!/mounted/args two words\n' >nested
printf 'echo no line "$1"\n' >plain
chmod +x nested plain
expect 0 m cp -p nested plain /mounted
cp nested outside
cp args denied && chmod -x denied && m cp -p denied /mounted
m sh -c '/mounted/args a; cd /mounted && ./args b && ./nested c && ./plain d && PATH=/mounted:$PATH && args e && expr 2 + 3 &&
    env expr 4 + 5 && env args f && env ./args g' >out 2>&1 || fail "programs in a mount: $(cat out)"
cat >wanted <<'END'
/mounted/args: 1: a
./args: 1: b
/mounted/args: 3: two words
no line d
/mounted/args: 1: e
5
9
/mounted/args: 1: f
./args: 1: g
END
sed -i 's,^/mounted/args: 3: two words,/mounted/args: 3: two words,' out
same out wanted "programs in a mount"
m sh -c "./outside x" >out || fail "a script whose interpreter is in a mount"
stdout_has "/mounted/args: 3: two words"
ln -s /mounted/args link
m sh -c 'ln -s /bin/echo /mounted/echo && /mounted/echo by a link && ./link x' >out 2>&1
stdout_has "by a link"
stdout_has "/args: 1: x"
m sh -c /mounted/denied 2>/dev/null
[ $? -eq 126 ] || [ $? -eq 127 ] || fail "a program without a bit to execute it"

if [ -n "${PYTHON3:-}" ]; then
    cat >spawn.py <<'END'
import os, subprocess, sys
d = "/mounted/py"
os.mkdir(d)
out = lambda *a, **k: subprocess.run(a, stdout=subprocess.PIPE, check=True, **k).stdout
with open(d + "/f", "w") as f:
    subprocess.run(["echo", "by echo"], stdout=f, check=True)
    f.write("by python\n")
    f.flush()
    subprocess.run(["sh", "-c", "echo by sh; /bin/echo by its child"], stdout=f, check=True)
assert open(d + "/f").read() == "by echo\nby python\nby sh\nby its child\n", open(d + "/f").read()
assert out("cat", "f", cwd=d).startswith(b"by echo")
assert out("cat", stdin=open(d + "/f")).startswith(b"by echo")
assert out("cat", d + "/f", env={}).startswith(b"by echo")
assert out("cat", "f", cwd=d, env={"PATH": "/bin:/usr/bin"}, close_fds=False).startswith(b"by echo")
os.chdir(d)
assert out("cat", "f") and out("sh", "-c", "cd .. && cat py/f") and os.popen("cat f").read().startswith("by echo")
assert os.system("cat f >g && exit 3") == 3 << 8 and open("g").read() == open("f").read()
p = os.popen("cat >h", "w")
p.write("to cat")
p.close()
assert open("h").read() == "to cat"
# posix_spawn, with actions
a = [(os.POSIX_SPAWN_OPEN, 1, d + "/s", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), (os.POSIX_SPAWN_DUP2, 1, 2),
     (os.POSIX_SPAWN_CLOSE, 0)]
pid = os.posix_spawn("/bin/sh", ["sh", "-c", "echo out; echo err >&2; exit 5"], os.environ, file_actions=a)
assert os.waitpid(pid, 0)[1] == 5 << 8 and open("s").read() == "out\nerr\n"
for path in "/none", "/mounted/none":
    try:
        os.posix_spawn(path, ["x"], os.environ)
        assert False
    except FileNotFoundError:
        pass
os.environ["PATH"] += ":/mounted"
assert os.waitpid(os.posix_spawnp("args", ["args", "p"], os.environ), 0)[1] == 0
# a program that closes all descriptors, and takes numbers that DeltaFS could have
os.stat(d)
top = [int(i) for i in os.listdir("/proc/self/fd") if int(i) > 255]
assert top
for i in top:
    try:
        os.close(i)
        assert False
    except OSError:
        pass
os.closerange(3, 70000)
f = os.open("closed", os.O_WRONLY | os.O_CREAT)
assert f == 3
os.write(f, b"still here")
os.close(f)
assert open("closed").read() == "still here"
# a fork without exec: both write on
f = open("both", "wb", buffering=0)
pid = os.fork()
for i in range(100):
    f.write(b"child line\n" if pid == 0 else b"parent line\n")
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
f.close()
lines = open("both").read().splitlines()
assert lines.count("child line") == 100 and lines.count("parent line") == 100, len(lines)
# a fork while other threads use files
import threading
stop = False
def work(i):
    n = 0
    while not stop:
        with open("t%d" % i, "w") as t:
            t.write("x" * 100)
        n += 1
threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
[t.start() for t in threads]
for i in range(20):
    pid = os.fork()
    if pid == 0:
        with open("c%d" % i, "w") as c:
            c.write("child")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
stop = True
[t.join() for t in threads]
assert all(open("c%d" % i).read() == "child" for i in range(20))
# a library in a mount
import ctypes, shutil
shutil.copy(ctypes.CDLL(None) and sys.argv[1], "library.so")
assert ctypes.CDLL(d + "/library.so").span_answer() == 42
END
    printf 'int span_answer(void) { return 42; }\n' >answer.c
    ${CC:-cc} -shared -fPIC -o answer.so answer.c || fail "cc"
    m timeout 60 "$PYTHON3" spawn.py "$work/answer.so" >out 2>&1 || fail "python: $(cat out)"
fi

# A library that loads another by its own search path finds it, with the preloaded library between.
mkdir -p one/two
printf 'int answer(void) { return 42; }\n' >two.c
printf '#include <dlfcn.h>\nint load(void) { return dlopen("libtwo.so", RTLD_NOW) != 0; }\n' >one.c
printf 'int load(void); int main(void) { return load() ? 0 : 1; }\n' >main.c
${CC:-cc} -shared -fPIC -o one/two/libtwo.so two.c && ${CC:-cc} -shared -fPIC -o one/libone.so one.c -Wl,--enable-new-dtags,-rpath,'$ORIGIN/two' &&
    ${CC:-cc} -o loads main.c one/libone.so -Wl,-rpath,"$work/one" || fail "cc"
expect 0 ./loads
expect 0 m ./loads

# A program of its own: standard output by the C library, written at the very end; a static program.
printf '#include <stdio.h>\n#include <stdlib.h>\nstatic void last(void) { printf("last\\n"); }\n__attribute__((destructor)) static void later(void) { printf("later\\n"); }\nint main(void) { printf("first\\n"); atexit(last); return 0; }\n' >prints.c
${CC:-cc} -o prints prints.c || fail "cc"
expect 0 m sh -c './prints >/mounted/p; ./prints >>/mounted/p; (exec ./prints) >>/mounted/p'
m cat /mounted/p >out
{ ./prints; ./prints; ./prints; } >wanted
same out wanted "what a program prints at its end"
if ${CC:-cc} -static -o static prints.c 2>/dev/null; then
    expect 0 m sh -c '{ ./static; echo between; ./static; } >/mounted/p; { ./static; echo more; } >>/mounted/p'
    m cat /mounted/p >out
    { ./static; echo between; ./static; ./static; echo more; } >wanted
    same out wanted "what a static program prints"
fi

# make, with a compiler, in the mount; the program that it has built runs there.
m mkdir /mounted/project
cat >Makefile <<'END'
program: main.o part.o
	$(CC) -o $@ main.o part.o && ./program >result
%.o: %.c part.h
	$(CC) -c -o $@ $<
clean:; rm -f *.o program result
END
printf '#include <stdio.h>\n#include "part.h"\nint main(void) { printf("%%d\\n", part(20)); return 0; }\n' >main.c
printf '#include "part.h"\nint part(int i) { return 2 * i + 2; }\n' >part.c
printf 'int part(int i);\n' >part.h
expect 0 m cp Makefile main.c part.c part.h /mounted/project
expect 0 m make -j2 -C /mounted/project
expect 0 m cat /mounted/project/result
stdout_has 42
expect 0 m make -C /mounted/project
expect 0 m make -C /mounted/project clean
