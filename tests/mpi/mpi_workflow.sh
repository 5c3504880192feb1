#!/bin/sh
# Jobs that meet only in a registry: two produce, their results are merged, a third adds to that, a fourth analyses.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

deltafs() {
    "$top_builddir/deltafs" "$@" || fail "deltafs $*"
}

fresh
export DELTAFS_REGISTRY="$data/registry"
check 3 ./test_mpi_workflow produce "$data/run1" 0
deltafs snapshot publish "$data/run1" first
check 2 ./test_mpi_workflow produce "$data/run2" 3
deltafs snapshot publish "$data/run2" second
# What comes later is not in the snapshot.
check 2 ./test_mpi_workflow produce "$data/run2" 7

deltafs ns create "$data/both" --on @first --on @second
# Four ranks write files into two folders: so some have bytes of files, but no names.
check 4 ./test_mpi_workflow add "$data/both" 5
deltafs snapshot publish "$data/both" added
deltafs snapshot merge first second -o produced

check 2 ./test_mpi_workflow analyse @added 5 1
check 2 ./test_mpi_workflow analyse @produced 5 0
# The job that added something knew what was before: there is no conflict.
[ -z "$(deltafs snapshot conflicts produced added)" ] || fail "$(deltafs snapshot conflicts produced added)"
deltafs snapshot diff produced added | sort >"$work/differ"
printf '%s\n' /dumps/0 /dumps/1 /sums /sums/0 /sums/1 /sums/2 /sums/3 /sums/4 | cmp - "$work/differ" ||
    fail "diff: $(cat "$work/differ")"

# Nothing that the snapshots need is collected, nor is it lost when the names that were merged go.
deltafs snapshot withdraw first second
deltafs snapshot gc "$data/run1" "$data/run2" "$data/both" >"$work/gc"
check 2 ./test_mpi_workflow analyse @added 5 1
check 2 ./test_mpi_workflow analyse @produced 5 0
