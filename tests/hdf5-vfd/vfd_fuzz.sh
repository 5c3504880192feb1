#!/bin/sh
# HDF5's tools over directories of all kinds, damaged at random. VFD_FUZZ: rounds and seed.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/vfd_lib.sh"
need_tools
need_python
# shellcheck disable=SC2086 # two words
expect 0 vfd "$PYTHON3" "$top_srcdir/tests/hdf5-vfd/vfd_fuzz.py" "$put_records" "$work" ${VFD_FUZZ:-40 1}
cat out
grep -q '^[1-9][0-9]* runs, [1-9]' out || fail "nothing was refused"
