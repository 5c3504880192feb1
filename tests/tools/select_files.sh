#!/bin/sh
# deltafs select on an index over files prints what it prints of a directory with the same records. Files that changed;
# tables with other columns.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

top_builddir=$(cd "$top_builddir" && pwd)
deltafs=$top_builddir/deltafs
deltafs_mpi=$top_builddir/deltafs-mpi
schema=x:f4,id:u8,y:f8,n:i4
"$PYTHON3" - "$work" <<'END_OF_PYTHON' || fail python3
import random, struct, sys
random.seed(26)
special = [0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan")]
def real():
    return random.choice(special) if random.random() < 0.2 else random.randint(-400, 400) / 8
for step in 5, 20, 300:
    with open("%s/dump.%d.bin" % (sys.argv[1], step), "wb") as f:
        for _ in range(700):
            key = random.choice([random.getrandbits(64), random.randrange(50)])
            f.write(struct.pack("<fQdi", real(), key, real(), random.randint(-50, 50)))
with open(sys.argv[1] + "/same.6.bin", "wb") as f:
    f.write(b"".join(struct.pack("<fQdi", 2.5, key, 2.5, 2) for key in range(300)))
with open(sys.argv[1] + "/other.7.bin", "wb") as f:
    f.write(b"".join(struct.pack("<QdfI", key, key / 2, 0, key) for key in range(10)))
END_OF_PYTHON
cd "$work" || exit 1
expect 0 mpi 2 "$deltafs_mpi" index -q --schema $schema --key id -o all dump.300.bin dump.5.bin same.6.bin dump.20.bin
again=
for file in dump.5.bin same.6.bin dump.20.bin dump.300.bin; do
    expect 0 "$deltafs_mpi" import -q $again --format raw --schema $schema --key id -o dir $file
    again=--append
done
"$deltafs" select dir --where 'x > 3' --format keys >keys || fail keys

# both ARGUMENT...: the same output and exit code for the index as for the directory.
both() {
    "$deltafs" select dir "$@" >wanted 2>wanted-err
    code=$?
    "$deltafs" select all "$@" >got 2>err
    [ $? -eq $code ] || fail "other exit code than $code: $* ($(cat err))"
    same wanted got "$*"
    same wanted-err err "messages of: $*"
}
# The same by 3 ranks, too.
both_and_ranks() {
    both "$@"
    mpi 3 "$deltafs_mpi" select all "$@" >got 2>err
    [ $? -eq $code ] || fail "other exit code than $code for 3 ranks: $* ($(cat err))"
    same wanted got "3 ranks: $*"
}
both --format csv
both_and_ranks --where 'x > 0 and y != 2.5' --format json
both --where 'x != x' --fields n,y --format csv
both --where 'x == 0' --epochs 6:20 --fields x --format csv
both --where 'key % 7 == 3 or epoch == 6' --format keys
both --where 'n // 3 == 2' --fields y
both_and_ranks --top 9 --by 'x * n' --format csv
both --top 5000 --by y --format csv
both_and_ranks --keys keys --where 'y > 1' --format csv
both --and keys --not - --epochs 20: --format csv </dev/null
both --where 'x > 1e30 and n == 77'
both --epochs 301:
both --where 'x > 1 + z'
both --fields x,id
both --explain --epochs 6 --where 'x < 0'

# An index of one file; other columns.
expect 0 "$deltafs_mpi" index -q --schema key:f8,id:u8,y:f8 --key id same.6.bin
expect 0 "$deltafs" select same.6.bin --where 'value.key > 0' --top 1 --by y --format keys
[ "$(cat out)" = 0 ] || fail "one file: $(cat out)"
expect 0 "$deltafs_mpi" index -q --schema id:u8,y:f8,x:f4,k:u4 --key id -o all other.7.bin
expect 2 "$deltafs" select all
says "fields: must be given ('--fields' of a command), since dump.5.bin (epoch 5) has the columns x:f4,y:f8,n:i4, and other.7.bin (epoch 7) has y:f8,x:f4,k:u4"
expect 2 "$deltafs" select all --fields n
says "no column or attribute is named 'n'; did you mean 'x'? The names are: x, y, key, epoch"
expect 0 "$deltafs" select all --fields y,x --where 'y == 2.5' --epochs 6:7 --format csv
[ "$(tail -n 1 out)" = 5,7,2.5,0.0 ] && [ "$(wc -l <out)" -eq 302 ] || fail "columns that all have: $(cat out)"
expect 0 "$deltafs" select all --epochs 7 --where 'k > 8' --format csv
[ "$(tail -n 1 out)" = 9,7,4.5,0.0,9 ] || fail "one epoch: $(cat out)"
expect 3 "$deltafs" select dump.5.bin
says "dump.5.bin: a plain file without an index; 'deltafs-mpi index' makes one"
expect 3 "$deltafs" scan all
says "'deltafs get' and 'select' read rows through it"

# Files that are not as they were: the rows of the others, and what is wrong.
"$deltafs" select dir --epochs 6: --format csv >wanted || fail select
sed '/^[0-9]*,20,/d' wanted >without
printf x >>dump.20.bin
expect 2 "$deltafs" select all --epochs 6: --fields x,y,n
says "no column or attribute is named 'n'"
expect 0 "$deltafs_mpi" index -q --forget -o all other.7.bin
expect 3 "$deltafs" select all --epochs 6: --format csv
same without out "rows of files that are as they were"
says "dump.20.bin: was written to since its keys were indexed; index it again"
expect 3 mpi 2 "$deltafs_mpi" select all --epochs 6: --format csv
same without out "rows of files that are as they were, by 2 ranks"
expect 0 "$deltafs" select all --epochs 300 --format csv
rm dump.20.bin
expect 3 "$deltafs" select all --top 3 --by y --fields y
says "dump.20.bin: has gone or been renamed"
[ "$(wc -l <out)" -eq 4 ] || fail "rows of the other files: $(cat out)"
exit 0
