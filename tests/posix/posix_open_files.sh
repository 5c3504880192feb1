#!/bin/sh
# Open files that are changed by their paths, or by other processes.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
open_files=$(cd "$top_builddir" && pwd)/posix_open_files
shared=$(cd "$top_builddir" && pwd)/posix_shared
cd "$work" || exit 99

expect 0 "$deltafs" ns create ns
for part in paths links threads locks copies names replaced removed; do
    mkdir "$part"
    expect 0 m mkdir "/mounted/$part"
    "$open_files" "$work/$part" "$part" >wanted || fail "$part: in an ordinary folder"
    m "$open_files" "/mounted/$part" "$part" >got 2>err || fail "$part: in a mount: $(cat err)"
    same got wanted "$part"
    [ ! -s err ] || fail "$part: a message: $(cat err)"
done

# Descriptors that several processes share.
touch plain.shared
"$shared" plain.shared >wanted || fail "shared: in an ordinary folder"
m touch /mounted/shared
m "$shared" /mounted/shared >got 2>err || fail "shared: in a mount: $(cat err)"
same got wanted "shared"

# A process that begins to write does not find a file that it was reading, and that was replaced.
m cp /mounted/replaced/large /mounted/replaced/b
m "$open_files" /mounted/replaced lost >got 2>err
echo "large: -1, Stale file handle" >wanted
same got wanted "a file that was replaced"
grep -q "/mounted/replaced/large: another process has removed" err || fail "no message: $(cat err)"

# What does not fit is added not at all, rather than a part of it each time that it is tried.
m "$open_files" /mounted full >got || fail "full"
printf 'truncate: 0\nwrite: 409600\nclose: -1, File too large\nroom: 307200\n' >wanted
same got wanted "a file without room"
