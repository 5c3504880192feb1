#!/bin/sh
# Calls of the C library: what they give in a mount is what they give in an ordinary folder.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
calls=$(cd "$top_builddir" && pwd)/posix_calls
cd "$work" || exit 99

expect 0 "$deltafs" ns create ns
for part in folders walks paths streams maps other; do
    mkdir "$part"
    expect 0 m mkdir "/mounted/$part"
    "$calls" "$work/$part" "$part" >wanted || fail "$part: in an ordinary folder"
    m "$calls" "/mounted/$part" "$part" >got || fail "$part: in a mount"
    same got wanted "$part"
done
expect 0 "$deltafs" ns cat ns:/streams/unclosed
stdout_has "at the end of the program"
expect 0 "$deltafs" ns cat ns:/maps/mapped
stdout_has "mapped when the program end"

# A mount point where something is: the program does not see that.
mkdir point
expect 0 mounted "namespace=$work/point=$work/ns" mkdir "$work/point/over"
mkdir over
"$calls" "$work/over" paths >wanted || fail "paths: in an ordinary folder"
mounted "namespace=$work/point=$work/ns" "$calls" "$work/point/over" paths >got || fail "paths: in a mount at a folder"
same got wanted "paths in a mount at a folder"
[ -z "$(ls point)" ] || fail "what is below the mount point was changed"

m "$calls" /mounted refused >got 2>err || fail "what is refused"
cat >wanted <<'END'
---- refused
mkfifo: -1, Operation not permitted
mknod: -1, Operation not permitted
bind: -1, Operation not permitted
link: -1, Operation not permitted
fcntl: -1, No locks available
lockf: -1, No locks available
setxattr: -1, Operation not supported
getxattr: -1, Operation not supported
getxattr of none: -1, No such file or directory
fremovexattr: -1, Operation not supported
listxattr: 0
inotify_add_watch: -1, No space left on device
name_to_handle_at: -1, Operation not supported
fts_open: -1, Operation not supported
fallocate: -1, Operation not supported
END
same got wanted "what is refused"
[ "$(grep -c "locks parts of a file" err)" = 1 ] || fail "a message about locks, once: $(cat err)"
grep -q fts_open err || fail "a message about fts_open: $(cat err)"
