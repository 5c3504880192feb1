#!/bin/sh
# Calls of the C library: what they give in a mount is what they give in an ordinary folder.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
calls=$(cd "$top_builddir" && pwd)/posix_calls
cd "$work" || exit 99

expect 0 "$deltafs" ns create ns
for part in folders walks paths; do
    mkdir "$part"
    expect 0 mounted "namespace=/mounted=$work/ns" mkdir "/mounted/$part"
    "$calls" "$work/$part" "$part" >wanted || fail "$part: in an ordinary folder"
    mounted "namespace=/mounted=$work/ns" "$calls" "/mounted/$part" "$part" >got || fail "$part: in a mount"
    same got wanted "$part"
done
