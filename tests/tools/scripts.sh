#!/bin/sh
# What the scripts refuse, and say before they begin; and that a fuzz script which is told to end leaves nothing running.
. "$top_srcdir/tests/support/lib.sh"

expect 2 "$top_srcdir/scripts/torture" damage --count 0
says "a number above 0, not '0'"
expect 2 env TMPDIR="$work/missing" "$top_srcdir/scripts/torture" crash
says "no folder to write in"
expect 2 "$top_srcdir/scripts/fuzz" manifest bogus
says "'bogus' is no target; these are: manifest index"
expect 0 "$top_srcdir/scripts/on-gluster" --help
expect 2 "$top_srcdir/scripts/on-gluster"
says "there is no command to run"
expect 2 "$top_srcdir/scripts/on-gluster" --bricks 0 true
says "a number above 0, not '0'"
expect 2 "$top_srcdir/scripts/on-gluster" --bogus true
says "'--bogus' is not an option"

# The overlay beside no DeltaFS, or one for Open MPI, is refused before it is built.
overlay="$top_srcdir/scripts/build-romio-overlay --prefix $work/usr"
mkdir -p "$work/usr/lib" "$work/bin"
expect 1 env MPICC=mpicc.missing $overlay
says "$work/usr/lib/libdeltafs_mpi.so.0 is missing: give the prefix that DeltaFS is installed in"
: >"$work/usr/lib/libdeltafs_mpi.so.0"
printf '#!/bin/sh\necho "    libmpi.so.40 => /lib/libmpi.so.40"\n' >"$work/bin/ldd"
chmod +x "$work/bin/ldd"
expect 1 env MPICC=mpicc.missing PATH="$work/bin:$PATH" $overlay
says "libdeltafs_mpi.so.0 is built for Open MPI, and the overlay is for MPICH"
[ -z "$(cat "$work/out")" ] || fail "something is built: $(cat "$work/out")"

# Where the quickstart installs, and how long it takes.
mkdir -p "$work/quick/scripts"
cp "$top_srcdir/scripts/quickstart" "$work/quick/scripts"
printf '#!/bin/sh\n' >"$work/quick/scripts/install-packages"
printf '#!/bin/sh\nexit 9\n' >"$work/quick/configure"
chmod +x "$work/quick/configure" "$work/quick/scripts/install-packages"
expect 9 "$work/quick/scripts/quickstart"
grep -q "^== Building in build/quickstart, which takes some minutes, and installing in build/quickstart/usr$" "$work/out" ||
    fail "the quickstart says $(cat "$work/out")"

# A source tree in which the targets are scripts: they note their process, and go on for long.
mkdir -p "$work/top/scripts" "$work/top/build/fuzz"
cp "$top_srcdir/scripts/fuzz" "$work/top/scripts/fuzz"
printf '#!/bin/sh\n' >"$work/top/configure"
printf '#!/bin/sh\necho $$ >%s/pid\nexec sleep 300\n' "$work" >"$work/target"
chmod +x "$work/top/configure" "$work/target"
cat >"$work/top/build/fuzz/Makefile" <<END
fuzz-seeds:
	cp $work/top/configure \$@
fuzz-%:
	cp $work/target \$@
END
CLANG=sh "$work/top/scripts/fuzz" manifest >"$work/log" 2>&1 &
script=$!
i=0
until [ -s "$work/pid" ]; do
    i=$((i + 1))
    [ $i -lt 1200 ] || fail "the target was not started: $(cat "$work/log")"
    sleep 0.05
done
kill -TERM "$script"
wait "$script"
code=$?
[ $code -eq 143 ] || fail "exit code $code: $(cat "$work/log")"
i=0
while kill -0 "$(cat "$work/pid")" 2>/dev/null; do
    i=$((i + 1))
    [ $i -lt 1200 ] || fail "the target runs on"
    sleep 0.05
done
