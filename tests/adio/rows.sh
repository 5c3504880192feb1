#!/bin/sh
# An MPI-IO program that knows nothing of DeltaFS writes records, and every particle has its trajectory: told by hints,
# by the environment, or by a deltafs.conf; however the records are written; every row compared with what was written.
#
#     tests/adio/rows.sh OVERLAY|FOLDER DELTAFS      as adio_lib.sh says
set -u
. "$(dirname "$0")/../support/adio_lib.sh"
schema=x:f4,y:f8,a:V12,id:u8,b:V16

# rows RANKS ARGUMENT...: the program; what it says it has written is kept.
rows() {
    run "$@" >"$work/written" 2>"$work/err"
}

# same NAME...: what the indexes hand out is what the program has written, for all keys.
same() {
    awk '{ printf "%d %d %.4f %d\n", $2, 100 * $1, $3, $4 }' "$work/written" | sort >"$work/expected"
    [ -s "$work/expected" ] || fail "nothing was written"
    cut -d ' ' -f 1 "$work/expected" | sort -u >"$work/keys"
    for name in "$@"; do
        "$deltafs" get "$name" --keys "$work/keys" --format csv 2>"$work/err" || fail "get $name"
        "$deltafs" verify "$name" >"$work/verified" 2>"$work/err" || fail "verify $name"
    done | awk -F , '$1 != "key" { printf "%d %d %.4f %d\n", $1, $2, $3, 2 * $4 }' | sort >"$work/found"
    cmp "$work/expected" "$work/found" || fail "rows of $* differ"
    cases=$((cases + 1))
}
cases=0

build rows_program.c

# Told by hints alone, 5 steps into one index.
mkdir "$work/a"
rows 4 "deltafs:$work/a/dump" 5 2000 all deltafs_schema=$schema deltafs_key=id "deltafs_index=$work/particles" ||
    fail "hints"
same "$work/particles"
[ ! -e "$work/a/dump.0/keys" ] || fail "the hint deltafs_index is not followed"

# By the environment; records are cut by the writes. A hint counts more.
mkdir "$work/b"
DELTAFS_SCHEMA=$schema DELTAFS_KEY=x DELTAFS_INDEX=$work/b/all rows 3 "deltafs:$work/b/dump" 3 500 pieces \
    deltafs_key=id || fail "the environment"
same "$work/b/all"

# By a file in the folder, each file with its own index; the environment counts more. Others' bytes stood there first.
mkdir "$work/c"
printf '# what a record has\nschema = %s\n\nkey=x\n' $schema >"$work/c/deltafs.conf"
DELTAFS_KEY=id rows 4 "deltafs:$work/c/dump" 2 300 twice || fail "deltafs.conf"
same "$work/c/dump.0" "$work/c/dump.100/keys"
printf 'schema=%s\nkey=id\nindex=all/../..\n' $schema >"$work/c/deltafs.conf"
rows 2 "deltafs:$work/c/other" 1 10 all
grep -q "deltafs.conf: line 3: option index" "$work/err" || fail "an index that is not below the folder"

# Opened and written again, by several ranks: the last index counts.
mkdir "$work/d"
rows 3 "deltafs:$work/d/dump" 1 400 again deltafs_schema=$schema deltafs_key=id || fail "again"
same "$work/d/dump.0"

# However the extents are read, which the environment says of what the close opens, too.
for index in broadcast parallel flatten; do
    mkdir "$work/$index"
    DELTAFS_EXTENTS=$index rows 3 "deltafs:$work/$index/dump" 2 100 pieces deltafs_schema=$schema deltafs_key=id ||
        fail "index=$index"
    same "$work/$index/dump.0" "$work/$index/dump.100"
done

# A cut record: the close says where, and the file is whole.
mkdir "$work/e"
rows 2 "deltafs:$work/e/dump" 1 100 cut deltafs_schema=$schema deltafs_key=id
code=$?
[ $flavour = openmpi ] || [ $code -eq 3 ] || fail "exit code $code of a close that cannot index"
grep -q "the record at offset 8016 is cut" "$work/err" || fail "a cut record is not said"
grep -q "the file is written and closed, but its keys are not indexed" "$work/err" || fail "what is left is not said"
[ "$(wc -l <"$work/written")" -eq 167 ] || fail "the file does not read back"
[ ! -e "$work/e/dump.0/keys" ] || fail "an index of a cut file"

echo "$cases cases of $flavour passed"
