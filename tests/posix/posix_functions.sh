#!/bin/sh
# The functions of the C library do the same in a mount as in another folder.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
calls=$(cd "$top_builddir" && pwd)/posix_functions
cd "$work" || exit 99

expect 0 "$deltafs" ns create ns
mkdir plain
"$calls" "$work/plain" >wanted 2>err || fail "in a folder: $(cat err)"
m "$calls" /mounted >found 2>err || fail "in a mount: $(cat err)"
diff wanted found >differences || fail "in a mount: $(cat differences)"

# Files without a name, and very large files that are mapped to write to them.
m "$calls" /mounted refused >found 2>err || fail "what is refused: $(cat err)"
printf '%s\n' 'open(".", O_TMPFILE | O_RDWR, 0600): -1 Operation not supported' "mmap: -1 No such device" >wanted
same found wanted "what is refused"
grep -q "^deltafs: /mounted/huge: a file of more than 1 GiB" err || fail "what is refused: $(cat err)"

# What a program has not closed is written at its end, also what it writes to standard error.
for file in not_closed standard_error written; do
    "$deltafs" ns cat ns:/$file | cmp - plain/$file || fail "$file"
done
