#!/bin/sh
# Files by their whole path, without `deltafs run`: of a pool while it runs, and logical files then.
. "$top_srcdir/tests/pool/pool_lib.sh"

pool_start 2
for ranks in 1 3; do
    mpi "$ranks" ./pool_paths "$point" "$work" 2>"$work/err" || fail "$ranks ranks: $(cat "$work/err")"
done
# The pool has precedence over a folder of this name, as long as it runs.
mkdir "$point"
[ "$(mpi 2 ./pool_paths "$point/file")" = pool ] || fail "the file is not in the pool"
[ -z "$(ls "$point")" ] || fail "something is in the folder"
pool_stop
[ "$(mpi 2 ./pool_paths "$point/file")" = logical ] || fail "the file is in a pool that has ended"
# What another user could have put where pools are looked for is none, and no error.
chmod 755 "$DELTAFS_POOL_DIR"
[ "$(mpi 1 ./pool_paths "$point/file")" = logical ] || fail "a folder for all"
