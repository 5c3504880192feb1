#!/bin/sh
# What scripts/torture, scripts/fuzz and scripts/on-gluster refuse; and that a fuzz script which is told to end leaves nothing running.
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
