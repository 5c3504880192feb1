#!/bin/sh
# A real run's particles: h5dump prints what the file of right answers has, h5ls lists the epochs.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/vfd_lib.sh"
need_tools
need_python
[ -d "$real" ] || skip "no dumps of a real run in $real (VPIC_HARRIS may name their folder)"

expect 0 import 2 --format vpic -o particles "$real"/eparticle.*
expect 0 vfd_oracle csv particles "$real/trajectories.csv"
stdout_has "50 keys, 5500 values"
expect 0 vfd h5ls -r particles
for step in 0 48 96 144 192 240 288 336 384 432 480; do
    stdout_has "/$step "
done
for absent in 20480 81920 320480 1099511627776 9223372036854775808; do
    why "no such subfile: '$absent' in $(pwd)/particles" particles/$absent
done
HDF5_DRIVER_CONFIG=records=1G
export HDF5_DRIVER_CONFIG
expect 0 vfd_oracle records "$deltafs" particles
stdout_has "901120 records"
