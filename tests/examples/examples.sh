#!/bin/sh
# Every example runs and says what it should: the programs in C, the one in Python, and the scripts for Slurm, whose
# commands srun and module are played by others.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
examples=$(cd "$top_srcdir/tests/examples" && pwd)
here=$(pwd)
case $real in /*) ;; *) real=$here/$real ;; esac

mkdir "$work/bin"
printf '#!/bin/sh\nexec timeout 120 %s -np 3 "$@"\n' "$MPIEXEC" >"$work/bin/srun"
printf '#!/bin/sh\n[ "$*" = "load deltafs" ]\n' >"$work/bin/module"
chmod +x "$work/bin/srun" "$work/bin/module"
for program in deltafs deltafs-mpi write_ring read_ring; do
    ln -s "$here/$program" "$work/bin/$program"
done
PATH=$work/bin:$PATH
cd "$work" || exit 99
ln -s bin/write_ring write_ring

expect 0 srun write_ring ring 20
grep -qx "steps 1 to 20" out || fail "the first job says: $(cat out)"
expect 0 bash "$examples/simulate.slurm"
grep -qx "steps 21 to 40" out || fail "the second job says: $(cat out)"
expect 0 read_ring ring 123 40
mv out c
[ "$(grep -c '^step ' c)" -eq 40 ] || fail "read_ring has not 40 steps"
deltafs scan ring --epochs 40 --format csv | awk -F, 'NR > 1 && $3 > 0.999' >near
[ "$(grep -c '^near: ' c)" -eq "$(wc -l <near)" ] && [ -s near ] || fail "read_ring finds other particles than a scan"
expect 3 env SLURM_STEP_NUM_TASKS=4 "$here/minipic" -o ring --steps 1 -n 10
grep -q "SLURM_STEP_NUM_TASKS=4, but this program's MPI has started 1 process" err || fail "no word of the launcher: $(cat err)"
expect 1 srun write_ring ring/MANIFEST 2

# The example of deltafs_namespace(3).
expect 0 "$here/deltafs_namespace" results 7 registry@first
[ "$(cat out)" = "7: 21 bytes" ] || fail "a run is listed as: $(cat out)"
expect 0 "$here/deltafs_namespace" results 8 registry@second
[ "$(sort out)" = "7: 21 bytes
8: 21 bytes" ] || fail "two runs are listed as: $(cat out)"
[ "$(deltafs cat registry@first:/runs/7)" = "energy of run 7: 1.5" ] || fail "run 7 has other results"
expect 1 "$here/deltafs_namespace" results 9 registry@first
grep -qF "registry@first: the snapshot exists already" err || fail "no word of the snapshot: $(cat err)"

find_numpy
if [ -n "$python" ] && ! nm -D --undefined-only "$here/.libs/libdeltafs.so" | grep -q __asan_init; then
    DELTAFS_LIBRARY=$here/.libs/libdeltafs.so PYTHONPATH=$examples/../../src/python "$python" "$examples/ring.py" ring 123 \
        >python || fail "ring.py"
    grep '^step' python >python.steps
    grep '^step' c | cmp - python.steps || fail "Python prints another trajectory than C"
fi

# Particle 5 is in cell 1, 1 of a box (the rest of the cell's number are the edges), and changes the box in each step. The
# second run repeats two steps, and has other ranks.
expect 0 mpi 2 "$here/write_vpic" electrons 0 3
expect 0 mpi 3 "$here/write_vpic" electrons 2 5
expect 0 deltafs get electrons 5 --format csv
cut -d, -f 2,7,11- out >got
cat >wanted <<'ROWS'
epoch,ux,rank,x,y,z
0,0.0,0,0.625,0.375,2.0
1,1.0,1,2.625,0.375,2.0
2,2.0,0,0.625,0.375,2.0
3,3.0,1,2.625,0.375,2.0
4,4.0,2,4.625,0.375,2.0
5,5.0,1,2.625,0.375,2.0
ROWS
cmp got wanted || fail "vpic_deltafs.h: $(cat got)"
deltafs attr electrons time | grep -q 'time=0.625  from 5' || fail "no time: $(deltafs attr electrons time)"
deltafs attr electrons | grep -qx 'q_m=-1.0' || fail "no charge / mass: $(deltafs attr electrons)"
# In a step, light moves by as much as the box of a rank is wide.
expect 0 deltafs verify --continuity electrons

# The deck for VPIC compiles; tests/examples/vpic_deck.sh runs it.
if command -v c++ >/dev/null; then
    expect 0 c++ -std=c++11 -fsyntax-only -Wall -Wextra -Werror "-I$examples/../../include" \
        $(sed -n 's/^MPI_CFLAGS = //p' "$here/Makefile") -include "$examples/vpic_interface.hxx" \
        "$examples/vpic_harris.cxx"
fi

[ -d "$real" ] || exit 0
expect 0 bash "$examples/import.slurm" "$real"
[ "$(wc -l <ten.csv)" -eq 111 ] || fail "ten tracks of 11 steps are $(wc -l <ten.csv) lines"
expect 0 bash "$examples/import.slurm" "$real"
