#!/bin/sh
# Where HDF5's datasets are in a file: what src/hdf5 says of it gives the values that h5py reads, with each HDF5 there is.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/vfd_lib.sh"
[ -n "${VFD_PYTHON:-}" ] || skip "VFD_PYTHON names no Python with h5py"
bundled=$(dirname "$("$VFD_PYTHON" -c 'import h5py; print(h5py.__file__)')").libs
for library in "$HDF5_DIR/lib/libhdf5.so" "$bundled"/libhdf5-*.so* /usr/lib/*/libhdf5_serial.so.103; do
    [ -e "$library" ] || continue
    rm -rf files
    mkdir files
    expect 0 "$VFD_PYTHON" "$top_srcdir/tests/hdf5-vfd/h5rows.py" "$top_builddir/h5rows_show" "$library" files
    echo "$library: $(tail -n 1 out)"
done
# HDF5 is found by itself.
expect 0 "$top_builddir/h5rows_show" files/many.h5 '/Timestep_7/id'
stdout_has '"label": 7'
