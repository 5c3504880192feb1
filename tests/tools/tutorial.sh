#!/bin/sh
# The commands of deltafs-tutorial(7), one after the other, with the dumps of the real run if they are there. Then its
# results must be those that the page shows, too.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python
page=$top_srcdir/man/deltafs-tutorial.7
here=$(pwd)
source=$(cd "$top_srcdir" && pwd)
case $real in /*) ;; *) real=$here/$real ;; esac

find_numpy
# Commands are between .EX and .EE, results between .nf and .fi.
plain() {
    sed -n "/^\.$1\$/,/^\.$2\$/{/^\./d; s/\\\\-/-/g; s/\\\\(aq/'/g; p}" "$page"
}
plain EX EE >"$work/commands"
plain nf fi >"$work/shown"
[ "$(grep -c '^deltafs' "$work/commands")" -ge 10 ] && [ -s "$work/shown" ] || fail "too few commands in $page"
if [ -d "$real" ]; then
    sed -i '/make_vpic/d' "$work/commands"
fi
! nm -D --undefined-only "$here/.libs/libdeltafs.so" | grep -q __asan_init || python=
if [ -z "$python" ]; then
    echo "the commands in Python are not run"
    sed -i '/^python3 <</,/^END$/d' "$work/commands"
fi
printf '1 5 000000000000000000000000\n' | "$put_records" "$work/one" schema=x:f4,y:f4,z:f4 || fail put_records
"$deltafs" export "$work/one" --format openpmd -o "$work/one.h5" 2>"$work/err" || {
    echo "vtkhdf and openpmd are not written: there is no HDF5"
    sed -i '/vtkhdf\|openpmd/d' "$work/commands"
}

mkdir "$work/bin" "$work/dumps"
for program in deltafs deltafs-mpi; do
    ln -s "$here/$program" "$work/bin/$program"
done
printf '#!/bin/sh\nexec timeout 60 %s "$@"\n' "$MPIEXEC" >"$work/bin/mpirun"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v "${python:-$PYTHON3}")" >"$work/bin/python3"
chmod +x "$work/bin/mpirun" "$work/bin/python3"
ln -s "$source/tests" "$work/tests"
[ ! -d "$real" ] || ln -s "$real"/eparticle.* "$work/dumps"
export DELTAFS_LIBRARY="$here/.libs/libdeltafs.so" PYTHONPATH="$source/src/python"
(
    cd "$work" || exit 99
    PATH=$work/bin:$PATH sh -e commands >out 2>err
) || fail "a command of $page: $(tail -n 3 "$work/out") $(cat "$work/err")"
[ ! -s "$work/err" ] || fail "messages: $(cat "$work/err")"
for name in tracks.svg energy.svg fastest.csv fastest.npz 480.parquet others; do
    [ -s "$work/$name" ] || fail "no $name"
done
[ "$(wc -l <"$work/fastest")" -eq 10 ] || fail "fastest has other keys than ten"
# The namespaces and snapshots.
stdout_has "registry@first:/tracks:
$(sort "$work/fastest" | sed 's/$/.csv/')"
printf '%s\n' /energy /energy/tracks.svg /tracks.svg >"$work/differ"
grep '^/[a-z]' "$work/out" | sort | cmp - "$work/differ" || fail "diff says: $(grep '^/' "$work/out")"
if [ -n "$python" ]; then
    sed -n '/^import deltafs/,/^fastest/p' "$work/commands" >"$work/fastest.py"
    echo 'print(*sorted(fastest), sep=chr(10))' >>"$work/fastest.py"
    (cd "$work" && "$python" fastest.py >fastest.out) || fail "fastest.py"
    sort -n "$work/fastest" >"$work/fastest.sorted"
    same "$work/fastest.sorted" "$work/fastest.out" "other electrons in Python"
fi
[ ! -d "$real" ] || while IFS= read -r line; do
    stdout_has "$line"
done <"$work/shown"

# Dumps that are made look like those of a run: tracks without jumps, in the box, and momenta that fit on an axis.
"$PYTHON3" "$cli/make_vpic.py" "$work/made" --plasma || fail "make_vpic.py"
expect 0 import 2 --format vpic -o "$work/plasma" "$work"/made/*
expect 0 "$deltafs" verify --continuity "$work/plasma"
stdout_has "9970 steps of tracks checked, 0 jumps"
inside='abs(dx) <= 1 and abs(dy) <= 1 and abs(dz) <= 1 and abs(x) <= 24 and abs(y - 0.5) <= 0.5 and abs(z) <= 24'
expect 0 "$deltafs" select "$work/plasma" --where "$inside and ux*ux + uy*uy + uz*uz < 4" --format csv
[ "$(wc -l <"$work/out")" -eq $((11 * 997 + 1)) ] || fail "made records are outside"
