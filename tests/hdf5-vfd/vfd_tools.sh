#!/bin/sh
# HDF5 files through the driver: what a program writes, another reads; HDF5's tools see what they see in an ordinary file;
# ordinary files are served as they are.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/vfd_lib.sh"
need_tools

expect 0 "$probe" make plain.h5
expect 0 vfd "$probe" make ours.h5
is_logical ours.h5
[ -f plain.h5 ] || fail "without the driver there is no ordinary file"
for step in made changed; do
    expect 0 "$probe" digest plain.h5
    cp out digest
    expect 0 vfd "$probe" digest ours.h5
    same digest out "$step: values differ"
    expect 0 vfd "$probe" digest plain.h5
    same digest out "$step: values of the ordinary file differ through the driver"

    for tool in "h5dump" "h5ls -r -v" "h5stat"; do
        # The address of an object is where HDF5 put it in the file, in both.
        # shellcheck disable=SC2086
        $tool plain.h5 >plain.out 2>plain.err || fail "$tool"
        # shellcheck disable=SC2086
        vfd $tool ours.h5 >ours.out 2>ours.err || fail "$tool with the driver: $(cat ours.err)"
        sed -i 's/plain\.h5/ours.h5/; /Modified:/d; /Opened /d' plain.out
        sed -i '/Modified:/d; /Opened /d' ours.out
        same plain.out ours.out "$step: $tool differs"
    done
    expect 0 vfd h5diff -v2 plain.h5 ours.h5
    expect 0 vfd h5diff ours.h5 plain.h5
    if [ $step = made ]; then
        expect 0 "$probe" change plain.h5
        expect 0 vfd "$probe" change ours.h5
    fi
done

# Tools that write.
expect 0 vfd h5repack -f GZIP=3 ours.h5 repacked.h5
is_logical repacked.h5
expect 0 vfd h5diff ours.h5 repacked.h5
expect 0 vfd h5copy -i ours.h5 -o copied.h5 -s arrays -d elsewhere
is_logical copied.h5
expect 0 vfd h5diff ours.h5 copied.h5 arrays elsewhere
expect 1 vfd h5diff ours.h5 copied.h5 arrays/chunked elsewhere/contiguous

# An ordinary file stays one, also where it is created again.
cp plain.h5 again.h5
expect 0 vfd "$probe" make again.h5
[ -f again.h5 ] || fail "an ordinary file was replaced"
expect 0 "$probe" digest again.h5

# What was flushed is there, whatever happens then.
expect 0 vfd "$probe" flush flushed.h5
is_logical flushed.h5
expect 0 vfd h5diff flushed.h5 ours.h5 arrays arrays
expect 0 vfd "$probe" split split
is_logical split-r.h5

# Asking, and removing.
for file in plain.h5 ours.h5; do
    expect 0 vfd "$probe" is $file
    stdout_has 1
    expect 0 vfd "$probe" delete $file
    [ ! -e $file ] || fail "$file has not been removed"
    expect 0 vfd "$probe" is $file
    stdout_has -1
done
mkdir folder
echo "no HDF5" >text
expect 0 vfd "$probe" is text
stdout_has 0
expect 1 vfd "$probe" digest folder

# A folder with somebody else's MANIFEST is none of DeltaFS.
echo "include *.h5" >folder/MANIFEST
expect 0 vfd "$probe" make folder/ours.h5
is_logical folder/ours.h5
expect 0 "$probe" make folder/plain.h5
expect 0 vfd h5diff folder/ours.h5 folder/plain.h5

# As any HDF5 driver that is loaded: no symbol of HDF5, which the program may hide.
undefined=$(nm -D --undefined-only "$HDF5_PLUGIN_PATH/libh5fd_deltafs.so" | grep -E ' (H5|MPI)')
[ -z "$undefined" ] || fail "the plugin needs symbols of others: $undefined"
exit 0
