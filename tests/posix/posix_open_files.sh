#!/bin/sh
# Open files that are changed by their paths, or by other processes.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
open_files=$(cd "$top_builddir" && pwd)/posix_open_files
cd "$work" || exit 99

m() { mounted "namespace=/mounted=$work/ns" "$@"; }

expect 0 "$deltafs" ns create ns
for part in paths locks; do
    mkdir "$part"
    expect 0 m mkdir "/mounted/$part"
    "$open_files" "$work/$part" "$part" >wanted || fail "$part: in an ordinary folder"
    m "$open_files" "/mounted/$part" "$part" >got || fail "$part: in a mount"
    same got wanted "$part"
done
