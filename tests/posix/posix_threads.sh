#!/bin/sh
# Threads, signals, and processes that begin or end in unusual ways.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
threads=$(cd "$top_builddir" && pwd)/posix_threads
cd "$work" || exit 99

expect 0 "$deltafs" ns create ns
mkdir folder
(umask 027 && m mkdir /mounted/folder) || fail "mkdir"
[ "$(stat -c %a ns/RUN)" = 640 ] || fail "the mode of RUN: $(stat -c %a ns/RUN)"
m ls -ld /mounted/folder | grep -q '^drwxr-x---' || fail "the mode of a folder: $(m ls -ld /mounted/folder)"
for part in close mask handler write fork raw quick spawn reuse; do
    "$threads" "$work/folder" "$part" >wanted || fail "$part: in an ordinary folder"
    m "$threads" /mounted/folder "$part" >got 2>err || fail "$part: in a mount"
    same got wanted "$part"
done

# A fork while another thread opens particles.
mounted "particles=/particles=$work/particles" "$threads" /particles fork >got || fail "fork: with particles"
echo "hanging: 0" >wanted
same got wanted "fork, with particles"
