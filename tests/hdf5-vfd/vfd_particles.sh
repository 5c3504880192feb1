#!/bin/sh
# A directory and its subfiles, read as HDF5 files by HDF5's own tools.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/vfd_lib.sh"
need_tools
need_python

# A schema with fields of all kinds, values of one size without a schema, values of various sizes, keys of bytes.
for made in wide plain any repeats runs dense; do
    cp -r "$corpus/$made" .
    keys=$("$deltafs" scan $made --format csv | sed 1d | cut -d, -f1 | sort -u | head -n 12)
    # shellcheck disable=SC2086
    expect 0 vfd_oracle dumps "$deltafs" $made $keys
done
cp -r "$corpus/names_fixed" .
"$deltafs" scan names_fixed --format csv | sed 1d | cut -d, -f1 | grep '^[a-z0-9]*$' | sort -u | head -n 3 >keys
while read -r key; do
    expect 0 vfd_oracle dumps "$deltafs" names_fixed "$key"
done <keys

# Names with slashes of their own, which may be those of folders that are there.
printf '1 612f62 0102\n1 30302f702e64617461 03\n2 612f62 0a0b0c\n' | "$put_records" slashes keys=bytes || fail put_records
expect 0 vfd_oracle dumps "$deltafs" slashes a/b 00/p.data
expect 0 vfd h5dump -A slashes/a/b
stdout_has '"a/b"'
# A number that is a bucket's, too.
printf '7 0 0102\n7 12 0304\n7 18446744073709551615 05\n' | "$put_records" buckets partitions=20 || fail put_records
expect 0 vfd_oracle dumps "$deltafs" buckets 0 12 0xc 18446744073709551615

# Fields have their types and names.
expect 0 vfd h5dump -H wide/"$("$deltafs" scan wide --format csv | sed -n 2p | cut -d, -f1)"
for text in 'H5T_STD_U64LE "epoch"' 'H5T_IEEE_F64LE "x"' 'H5T_STD_I8LE "a"' 'H5T_STD_U16LE "b"' 'H5T_STD_I64LE "c"' \
    'STRSIZE 9' 'H5T_OPAQUE' 'ATTRIBUTE "key"' 'ATTRIBUTE "uuid"' 'ATTRIBUTE "container"' 'ATTRIBUTE "schema"'; do
    stdout_has "$text"
done
# A field that has the first column's name.
printf '1 5 01020304\n' | "$put_records" clash schema=epoch:u4 || fail put_records
expect 0 vfd h5dump -d trajectory clash/5
stdout_has 'H5T_STD_U64LE "epoch_"'
stdout_has 67305985
# A key that is an epoch's label, too: tools look for the key first.
printf '5 5 01020304\n6 7 01020304\n' | "$put_records" same schema=n:u4 || fail put_records
expect 0 vfd h5dump -a not_the_epoch same/5
stdout_has "epoch 5 is the group /5 of the file"
expect 1 vfd h5dump -a not_the_epoch same/7

# The directory itself.
printf '3 5 01020304\n3 6 05060708\n11 5 00000000\n' | "$put_records" two schema=n:u4 || fail put_records
expect 0 vfd h5ls -r two
for text in '/3 ' '/11 ' '/epochs '; do
    stdout_has "$text"
done
expect 0 vfd h5dump -d epochs -y two
stdout_has 'H5T_STD_U64LE "label"'
expect 0 vfd h5dump -a 3/records two
stdout_has ': 2'
expect 1 vfd h5dump -d 3/records two
# Its attributes: those for all epochs of the root, the others of the epoch's group.
"$deltafs" attr two x0=1.5,-2 && "$deltafs" attr two keys='"of mine"' && "$deltafs" attr two count=-7 &&
    "$deltafs" attr two time=0.25 --from 3 && "$deltafs" attr two time=0.5 --from 4 || fail attr
expect 0 vfd h5dump -a x0 two
for text in H5T_IEEE_F64LE '( 2 )' '1.5, -2'; do
    stdout_has "$text"
done
expect 0 vfd h5dump -a keys_ two
stdout_has '"of mine"'
expect 0 vfd h5dump -a count two
stdout_has '-7'
expect 0 vfd h5dump -a 3/time two
stdout_has '0.25'
expect 0 vfd h5dump -a 11/time two
stdout_has '0.5'
expect 1 vfd h5dump -a time two
expect 0 vfd h5dump -a x0 two/5
stdout_has '1.5, -2'
HDF5_DRIVER_CONFIG='records=1M'
export HDF5_DRIVER_CONFIG
expect 0 vfd_oracle records "$deltafs" two
expect 0 vfd_oracle records "$deltafs" wide
for made in names any names_fixed empty none; do
    [ -d $made ] || cp -r "$corpus/$made" .
    expect 0 vfd "$probe" digest $made
done
# Computed columns are datasets, and units are attributes; without one of them the rest is as it is.
printf '3 5 01000000\n3 6 02000000\n11 5 03000000\n' | "$put_records" sums schema=n:u4 || fail put_records
"$deltafs" attr sums half==n/2 --unit '1e-3 m/s' && "$deltafs" attr sums time=0.25 --from 3 --unit s &&
    "$deltafs" attr sums time=0.5 --from 11 --unit s && "$deltafs" attr sums records==n+time && "$deltafs" attr sums n= --unit m ||
    fail attr
expect 0 vfd_oracle dumps "$deltafs" sums 5 6
expect 0 vfd_oracle records "$deltafs" sums
expect 0 vfd_oracle computed "$deltafs" sums half=half records=records_
expect 0 vfd h5dump -a half/unitSI sums/5
stdout_has '0.001'
expect 0 vfd h5dump -a 11/half/unitDimension sums
stdout_has '1, 0, -1, 0, 0, 0, 0'
expect 0 vfd h5dump -a 3/records/n.unitSI sums
stdout_has ': 1'
expect 0 vfd h5dump -a trajectory/n.unitDimension sums/6
stdout_has '1, 0, 0, 0, 0, 0, 0'
expect 0 vfd h5dump -a 3/time.unitDimension sums
stdout_has '0, 0, 1, 0, 0, 0, 0'
expect 1 vfd h5dump -a half/unitSI_ sums/5
"$deltafs" attr sums late==time --from 11 || fail attr
expect 0 vfd h5dump -d trajectory -y sums/5
expect 0 vfd h5dump -d 11/late -y sums
stdout_has 0.5
expect 0 vfd h5dump -d 3/late -y sums
stdout_has nan
expect 1 vfd h5dump -a 3/computed_left_out sums
printf '@time=noon\n@records==n+time\n11 5 03000000\n' | "$put_records" noon schema=n:u4 || fail put_records
expect 0 vfd h5dump -a 11/computed_left_out noon
stdout_has "epoch 11: computed column 'records': offset 2: expected a number, but the attribute 'time' is a text"
expect 0 vfd h5dump -a computed_left_out noon/5
# Bounded.
HDF5_DRIVER_CONFIG='records=40; memory=16M'
expect 0 vfd h5ls -r two
stdout_has '/11/records'
grep -q '/3/records' out && fail "more records than asked for"
expect 0 vfd h5dump -A two
stdout_has records_left_out
# All that it takes is counted, also where values are short; and a lack of memory is told as such.
seq 200000 | awk '{ printf "1 %d 01\n", $1 }' | "$put_records" many || fail put_records
HDF5_DRIVER_CONFIG='records=1M'
expect 0 vfd h5dump -A many
stdout_has records_left_out
HDF5_DRIVER_CONFIG='records=4M'
expect 0 vfd h5dump -A many
grep -q records_left_out out && fail "records that fit are left out"
fault=$top_builddir/.libs/libvfd_fault.so
[ -e "$fault" ] || fail "no $fault"
VFD_FAULT=memory LD_PRELOAD=$fault && export VFD_FAULT LD_PRELOAD
why "no memory for it as an HDF5 file" many
# But what the library lacks, by its option memory, it says itself; here, that it knows of nothing.
VFD_FAULT=scan
why "deltafs: no error" many
unset VFD_FAULT LD_PRELOAD HDF5_DRIVER_CONFIG
exit 0
