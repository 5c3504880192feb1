#!/bin/sh
# An index by value of an index of files never changes what a select prints: beside a copy of that index without one, for
# values of all kinds, after files were indexed again, and after everything that makes it unusable.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python

top_builddir=$(cd "$top_builddir" && pwd)
deltafs=$top_builddir/deltafs
deltafs_mpi=$top_builddir/deltafs-mpi
cd "$work" || exit 1

# make_dump FILE SEED [WHAT]
make_dump() {
    "$PYTHON3" - "$@" <<'END_OF_PYTHON' || fail python3
import random, struct, sys
random.seed(int(sys.argv[2]))
what = sys.argv[3] if len(sys.argv) > 3 else ""
special = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e38, -1e38, 1e-45]
rows = []
for i in range(4000):
    v = random.choice(special) if random.random() < 0.02 else random.gauss(0, 1)
    if what == "equal":
        v = 3e30 if i == 1234 else 2.5
    rows.append((v, random.choice([random.getrandbits(64), random.randrange(50)]), random.random(), random.randrange(7)))
with open(sys.argv[1], "wb") as f:
    f.writelines(struct.pack("<dfQi" if what == "other" else "<fQfi", *((r[2], r[0]) + r[1:2] + r[3:] if what == "other" else r)) for r in rows)
END_OF_PYTHON
}
index() {
    mpi 1 "$deltafs_mpi" index -q --schema v:f4,id:u8,w:f4,n:i4 --key id "$@" || fail "index $*"
}
# The same files in two indexes.
index_both() {
    index -o all "$@"
    index -o plain "$@"
}
make_dump dump.1 1
make_dump dump.1b 2
make_dump dump.2 3 equal
make_dump dump.3 4
index_both --label 1 dump.1 dump.1b # two tables of an epoch
index_both dump.3
index_both dump.2
expect 0 mpi 3 "$deltafs_mpi" index --by 'size:v*v +w' all
grep -q "all: 16000 rows of 4 tables indexed by 3 ranks" out || fail "$(cat out err)"
expect 0 "$deltafs" verify all all/by/size

# both INDEX ARGUMENT...: the same rows, by this index.
both() {
    used=$1
    shift
    "$deltafs" select plain "$@" >wanted 2>wanted-err
    code=$?
    "$deltafs" select all --explain "$@" >got 2>err
    [ $? -eq $code ] || fail "other exit code than $code: $* ($(cat err))"
    same wanted got "$*"
    sed '/^index: /d; s/\<all: /plain: /' err >got-err
    same wanted-err got-err "messages of: $*"
    grep -qx "index: $used" err || fail "not by the index $used: $* ($(cat err))"
}
conditions() {
    both size --where 'v*v > 8' --format csv
    both size --where 'v*v > 8 and n == 3' --fields n,w --format json
    both size --where '7 < v*v < 9 and w > 0.25' --fields w --format csv
    both size --where '6.25 <= v*v <= 6.25' --epochs 1 --format csv
    both size --where 'v*v > 8' --format keys
    both size --top 9 --by 'v*v' --fields w --format csv
    both size --top 9 --by 'v*v' --epochs 1 --format csv
    both size --top 3 --by w --where 'v*v > 8' --format csv
}
conditions
both size --where 'v*v > 1e30' --format csv
both size --where 'v*v > 1 / 0' --format csv
both size --where 'v*v >= 1 / 0' --fields w --format csv
both size --where 'v*v < 0'
both size --where 'v*v < 1e-12' --format csv
both size --where '8 < v*v and (key < 1000 or epoch == 3)' --format csv
echo 7 8 9 10 11 12 >keys
both size --where 'v*v > 8' --not keys --format csv
# What it does not help.
both none --where 'v*v > 8' --keys keys --format csv
both none --where 'v*v > 8 or n == 3' --fields n --format csv
both none --where 'v > 3' --format csv
both none --where 'v*v > 0.01' --fields n --format csv
both none --top 5 --by w --fields w --format csv
both none --top 5 --by 'v*v' --epochs 2 --fields w --format csv # all are equal, but one
mpi 3 "$deltafs_mpi" select all --where 'v*v > 8' --format csv >got 2>err || fail "3 ranks: $(cat err)"
"$deltafs" select plain --where 'v*v > 8' --format csv >wanted || fail select
same wanted got "3 ranks"

# Random conditions.
"$PYTHON3" - >conditions <<'END_OF_PYTHON' || fail python3
import random
random.seed(2626)
for _ in range(16):
    value = random.choice([0, 1e-45, 6.25, 1e38 * 1e38, random.gauss(0, 1) ** 2, random.uniform(4, 9)])
    first = random.choice(["v*v %s %r", "v*v %s %r and n < 3", "%s %s v*v and w < 0.5", "v*v %s %r and not key %% 2 == 0"])
    op = random.choice(["<", "<=", ">", ">=", "=="])
    print(first % ((repr(value), op) if first[1] == "s" else (op, value)))
END_OF_PYTHON
while read -r where; do
    for fields in w n; do
        "$deltafs" select plain --where "$where" --fields $fields --format csv >wanted 2>err
        code=$?
        [ $code -le 1 ] || fail "select: $where: $(cat err)" # 1: no records
        "$deltafs" select all --where "$where" --fields $fields --format csv >got 2>err
        [ $? -eq $code ] || fail "other exit code than $code: $where: $(cat err)"
        same wanted got "$where, $fields"
    done
done <conditions

# Rows from the index alone: the bytes of the file are not read. Others are, and only those that are needed.
"$deltafs" select all --where 'v*v > 8' --fields w --epochs 3 --format csv >wanted || fail select
"$deltafs" select all --where 'v*v > 8' --epochs 3 --format keys >wanted-keys || fail select
cp -p dump.3 kept
head -c "$(wc -c <dump.3)" /dev/zero >dump.3
touch -r kept dump.3
expect 0 "$deltafs" select all --where 'v*v > 8' --fields w --epochs 3 --format csv
same wanted out "rows of the index alone"
expect 0 "$deltafs" select all --where 'v*v > 8' --epochs 3 --format keys
same wanted-keys out "keys of the index alone"
expect 1 "$deltafs" select all --where 'v*v > 8' --fields n --epochs 3
cp -p kept dump.3

# A file that is indexed again is another one, though its label is the same.
make_dump dump.3 5
both size --where 'v*v > 8' --format csv # is missing from both
says "dump.3: was written to since its keys were indexed; index it again"
both size --where 'v*v > 8' --fields w --format csv
# A file that would be read is looked at before anything is written: otherwise tables behind it would be missing.
expect 3 mpi 2 "$deltafs_mpi" index --by 'twice:2*v' all
says "dump.3: was written to since its keys were indexed"
[ ! -e all/by/twice ] || fail "an index is begun"
index_both dump.3
conditions
both none --where 'v*v > 8' --epochs 3 --format csv
expect 0 mpi 2 "$deltafs_mpi" index --by 'size:v*v +w' all
grep -q "4000 rows of 1 table indexed" out || fail "$(cat out err)"
both size --where 'v*v > 8' --epochs 3 --format csv
conditions
expect 0 mpi 1 "$deltafs_mpi" index --by 'twice:2*v' all
grep -q "16000 rows of 4 tables indexed" out || fail "$(cat out err)"
both twice --where '2*v > 4' --epochs 3 --format csv
# More rows that are replaced than not: it is rebuilt.
make_dump dump.1 6
index_both --label 1 dump.1
index_both --label 1 --again dump.1b
mv dump.1 away
expect 3 mpi 2 "$deltafs_mpi" index --by 'size:v*v +w' all
says "dump.1: "
both size --where 'v*v > 8' --epochs 2:3 --format csv # it is still there
mv away dump.1
expect 0 mpi 1 "$deltafs_mpi" index --by 'size:v*v +w' all
grep -q "16000 rows of 4 tables indexed" out || fail "not rebuilt: $(cat out err)"
conditions
# Only values change, so the table keeps its epoch: the index is not used for it, and is made again.
"$PYTHON3" - <<'END_OF_PYTHON' || fail python3
import struct
with open("dump.2", "rb") as f:
    rows = [(0.0 if i % 50 else 3.0, id, w / 2, n) for i, (v, id, w, n) in enumerate(struct.iter_unpack("<fQfi", f.read()))]
with open("dump.2", "wb") as f:
    f.writelines(struct.pack("<fQfi", *row) for row in rows)
END_OF_PYTHON
sed -n 's/^Table sequence=\([0-9]*\).*/\1/p' all/SOURCES | sort -n | tail -n 1 >last
index_both dump.2
sed -n 's/^Table sequence=\([0-9]*\).*/\1/p' all/SOURCES | sort -n | tail -n 1 | cmp -s - last ||
    fail "the table did not keep its epoch"
conditions
both none --where 'v*v > 8' --fields w --epochs 2 --format csv
both none --top 5 --by 'v*v' --epochs 2 --fields w --format csv
expect 0 mpi 2 "$deltafs_mpi" index --by 'size:v*v +w' all
grep -q "16000 rows of 4 tables indexed" out || fail "not rebuilt for other values: $(cat out err)"
both size --where 'v*v > 8' --fields w --epochs 2 --format csv
conditions

# A file that has other columns, or has them in another order; and one that has not what was indexed.
make_dump dump.4 7 other
mpi 1 "$deltafs_mpi" index -q --schema w:f8,v:f4,id:u8,n:i4 --key id -o all dump.4 || fail index
mpi 1 "$deltafs_mpi" index -q --schema w:f8,v:f4,id:u8,n:i4 --key id -o plain dump.4 || fail index
expect 0 mpi 1 "$deltafs_mpi" index --by 'size:v*v +w' all
grep -q " 0 rows of 0 tables indexed" out || fail "its w is another one: $(cat out err)"
expect 0 mpi 1 "$deltafs_mpi" index --by 'third:v*v +n' all
grep -q "20000 rows of 5 tables indexed" out || fail "$(cat out err)"
both third --where 'v*v > 8' --epochs 3: --fields n --format csv
both third --where 'v*v > 8' --fields n --format json
both third --where 'v*v > 8' --epochs 4 --format csv
both size --where 'v*v > 8' --epochs 1:3 --fields w --format csv
both none --where 'w*w > 0.9' --epochs 4 --format csv # the first column is another one there
expect 0 mpi 1 "$deltafs_mpi" index -q --forget -o all dump.4
expect 0 mpi 1 "$deltafs_mpi" index -q --forget -o plain dump.4

# Compaction removes indexes by value, unless a job may be writing one.
printf 'host=elsewhere.example pid=1 job=- session=01234567-89ab-4def-8123-456789abcdef renewed=%020d\n' \
    "$(date +%s)" >all/by/third/LEASE
expect 3 mpi 2 "$deltafs_mpi" index --compact -o all
says "all/by/third: a job is writing it, or may be"
expect 3 "$deltafs" rm all
says "all/by/third: a job is writing it, or may be"
[ ! -e all.compact ] || fail "the compaction has begun"
[ -e all/by/size ] || fail "others are removed"
rm all/by/third/LEASE
expect 0 mpi 2 "$deltafs_mpi" index --compact -o all
[ ! -e all/by ] && [ ! -e all.compact ] || fail "left: $(ls -d all/by all.compact)"
expect 0 "$deltafs" verify all
both none --where 'v*v > 8' --format csv

# Killed at any time, and damaged.
for delay in 0 0.02 0.04; do
    "$deltafs_mpi" index --by 'size:v*v +w' all >out 2>err &
    sleep $delay
    kill -9 $!
    wait $!
    "$deltafs" select plain --where 'v*v > 8' --format csv >wanted || fail select
    "$deltafs" select all --where 'v*v > 8' --format csv >got || fail select
    same wanted got "after the kill"
done
expect 0 mpi 2 "$deltafs_mpi" index --by 'size:v*v +w' all --lease 0
both size --where 'v*v > 8' --epochs 1 --format csv
conditions
for damage in 'rm all/by/size/0?/*.data' ': >all/by/size/MANIFEST; : >all/by/size/MANIFEST.copy' 'rm -r all/by/size'; do
    eval "$damage"
    both none --where 'v*v > 8' --format csv
    expect 0 mpi 1 "$deltafs_mpi" index --by 'size:v*v +w' all
    [ "$damage" = 'rm all/by/size/0?/*.data' ] || both size --where 'v*v > 8' --format csv
done
mkdir other
cp -R all/by/size other/size
rm -r all/by
mv dump.1 away
expect 3 mpi 2 "$deltafs_mpi" index --by 'size:v*v +w' all
says "dump.1: "
[ ! -e all/by ] || fail "an index that is refused leaves a folder"
mv away dump.1
mv plain/../other all/by
conditions

# What is wrong; the index of one file; removal.
expect 2 mpi 1 "$deltafs_mpi" index --by 'size:v*w' all
says "is the index of another expression"
expect 2 mpi 2 "$deltafs_mpi" index --by 'size:v*v +n' all
says "all/by/size: the columns that it carries are: w:f4; asked for: n:i4; remove it before: deltafs rm"
expect 2 mpi 2 "$deltafs_mpi" index --by 'x:nothing*v' all
says "no column or attribute is named 'nothing'"
expect 2 mpi 1 "$deltafs_mpi" index --by 'x:v +nothing' all
says "no column or attribute is named 'nothing'"
for text in 'x' '..:v' '../x:v' '1:v' ':v'; do
    expect 2 mpi 1 "$deltafs_mpi" index --by "$text" all
    says "index '$text': give NAME:EXPRESSION"
done
index dump.1
expect 0 mpi 1 "$deltafs_mpi" index --by 'w:w' dump.1
expect 0 "$deltafs" select dump.1 --where 'w > 0.99' --fields v --format csv
cp out wanted
"$deltafs" select dump.1 --where 'w > 0.99' --fields v --explain --format csv >got 2>err || fail select
says "index: w"
expect 0 "$deltafs" verify dump.1
stdout_has "dump.1.keys/by/w: 4000 records"
rm dump.1.keys/by/w/0?/*.data
expect 3 "$deltafs" verify dump.1
says "dump.1.keys/by/w: an index by value, without which all answers are the same"
expect 0 "$deltafs" rm dump.1.keys/by/w
expect 0 mpi 1 "$deltafs_mpi" index --by 'w:w' dump.1
rm dump.1.keys/by/w/MANIFEST*
expect 3 "$deltafs" verify dump.1
says "dump.1.keys/by/w: an index by value, without which all answers are the same; to replace it, index again"
expect 0 mpi 1 "$deltafs_mpi" index --by 'w:w' dump.1
expect 0 "$deltafs" verify dump.1

# One that is to be replaced may be written by a job on another host, or was: the option lease says so.
held() {
    printf 'host=elsewhere pid=1 job=- session=%s renewed=%020d\n' 11111111-1111-1111-1111-111111111111 \
        "$(date +%s)" >dump.1.keys/by/w/LEASE
}
rm dump.1.keys/by/w/MANIFEST*
held
expect 3 mpi 2 "$deltafs_mpi" index --by 'w:w' dump.1
says "dump.1.keys/by/w: a job is writing it, or may be"
[ -e dump.1.keys/by/w/LEASE ] || fail "an index of another job is removed"
expect 0 mpi 2 "$deltafs_mpi" index --by 'w:w' dump.1 --lease 0
touch -d '2001-01-01' dump.1
index dump.1
held
expect 3 mpi 2 "$deltafs_mpi" index --by 'w:w' dump.1
expect 0 mpi 2 "$deltafs_mpi" index --by 'w:w' dump.1 --lease 0
expect 0 "$deltafs" verify dump.1
held
expect 3 mpi 2 "$deltafs_mpi" index --compact -o dump.1.keys
expect 0 mpi 2 "$deltafs_mpi" index --compact -o dump.1.keys --lease 0
[ ! -e dump.1.keys/by ] && [ ! -e dump.1.keys.compact ] || fail "left: $(ls -d dump.1.keys*)"
expect 0 "$deltafs" select dump.1 --where 'w > 0.99' --fields v --format csv
same wanted out "the index of one file"
exit 0
