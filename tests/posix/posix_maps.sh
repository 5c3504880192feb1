#!/bin/sh
# Files that are mapped, and that are changed after a fork: in a mount they have what they have in an ordinary folder.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
maps=$(cd "$top_builddir" && pwd)/posix_maps
cd "$work" || exit 99

expect 0 "$deltafs" ns create ns
mkdir plain
for part in maps forks appends closes; do
    "$maps" "$work/plain" "$part" >wanted || fail "$part: in an ordinary folder"
    mounted "namespace=/mounted=$work/ns" "$maps" /mounted "$part" >got 2>err || fail "$part: in a mount: $(cat err)"
    same got wanted "$part"
done
for file in over moved; do
    expect 0 "$deltafs" ns cat "ns:/$file"
    stdout_has "B123456789"
done

# Some ordinary file systems have no holes.
mounted "namespace=/mounted=$work/ns" "$maps" /mounted zeros >got 2>err || fail "zeros: $(cat err)"
cat >wanted <<'END'
after a fork: 01...56789
after a fork, to write only: 01...56789
in a file that is added to: 01...56789A
in one after a fork: 01...56789A
many: 0 0 120
END
same got wanted zeros

# What is added to a file is there when it is published, so the order is not that of an ordinary folder.
mounted "namespace=/mounted=$work/ns" "$maps" /mounted beside >got 2>err || fail "beside: $(cat err)"
cat >wanted <<'END'
zeros behind added bytes: 01...56789(other)(this)
zeros before added bytes: 01...56789(other)(this)
a mapping behind added bytes: A123456789(other)(this)
a mapping before added bytes: A123456789(other)(this)
END
same got wanted beside

mounted "namespace=/mounted=$work/ns" "$maps" /mounted resizes >got 2>err || fail "resizes: $(cat err)"
printf 'part: 22\npart: 22\n' >wanted
same got wanted resizes
