#!/bin/sh
# Lists of a folder with more entries than fit in one answer of a server, and on more servers than are asked at once.
. "$top_srcdir/tests/pool/pool_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
[ -n "${PYTHON3:-}" ] || skip "no Python"

cat >"$work/program.py" <<'END_OF_PROGRAM'
import os, sys
names = ["%d%s" % (i, "x" * (i % 250)) for i in range(int(sys.argv[2]))]
os.mkdir(sys.argv[1] + "/d")
os.chdir(sys.argv[1] + "/d")
for name in names:
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
assert sorted(os.listdir(".")) == sorted(names)
for name in names[::2]:
    os.unlink(name)
assert sorted(os.listdir(".")) == sorted(names[1::2])
END_OF_PROGRAM
for n in 2 $(in_full 18); do
    pool_start "$n"
    mounted "pool=$point=$point" timeout 100 "$PYTHON3" "$work/program.py" "$point" 2000 || fail "on $n servers"
    pool_stop
done
