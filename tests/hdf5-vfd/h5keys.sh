#!/bin/sh
# A particle's rows in HDF5 files, by its ID: files that are there, indexed in place; files that an h5py script, which
# knows nothing of DeltaFS, writes through the driver. All rows are those that h5py finds by reading everything.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/support/vfd_lib.sh"
[ -n "${VFD_PYTHON:-}" ] || skip "VFD_PYTHON names no Python with h5py"

h5keys() {
    "$VFD_PYTHON" "$top_srcdir/tests/hdf5-vfd/h5keys.py" "$@"
}

# key LAYOUT: the pattern of its key.
key() {
    case $1 in
    vpic) echo '/Timestep_*/id1' ;;
    h5part) echo '/Step#*/id' ;;
    openpmd) echo 'particles/*/id' ;;
    compound) echo '/dump_*/electrons.id' ;;
    big) echo '/big_*/q' ;;
    gadget) echo '/PartType1/ParticleIDs' ;;
    packed) echo '/p_*/id' ;;
    esac
}

# right WHAT LAYOUT FILE...: the index that WHAT has gives all rows of these plain files, and no others.
right() {
    expect 0 h5keys right "$deltafs" "$@"
    echo "$1 ($2): $(cat out)"
    expect 1 "$deltafs" get "$1" 3
    says "key 3 not found"
    expect 0 "$deltafs" verify "$1"
}

# by_value INDEX: an index by value finds the rows that a scan finds.
by_value() {
    "$deltafs" select "$1" --format keys >keys || fail select
    condition="key < $(sed -n 10p keys) or key == 0" # an index does not help
    "$deltafs" select "$1" --where "$condition" --format csv --explain >wanted 2>err || fail "select: $(cat err)"
    says "index: none"
    expect 0 index 2 --by 'id:key' "$1"
    condition="key < $(sed -n 10p keys)"
    "$deltafs" select "$1" --where "$condition" --format csv --explain >got 2>err || fail "select: $(cat err)"
    says "index: id"
    same wanted got "by value: $1"
}

# index RANKS ARGUMENT...
index() {
    ranks=$1
    shift
    if [ "$ranks" -eq 1 ]; then
        timeout -k 5 120 "$deltafs_mpi" index "$@"
    else
        mpi "$ranks" "$deltafs_mpi" index "$@"
    fi
}

# Files that are there: one index of several, on any number of ranks; beside the file; more as they come.
ranks=0
for layout in vpic h5part openpmd compound big packed; do
    ranks=$((ranks % 3 + 1))
    h5keys make $layout.1.h5 $layout 10 2 || fail make
    h5keys make $layout.2.h5 $layout 7 300 rows=333 || fail make
    sum=$(sha256sum $layout.*.h5)
    [ ! -x "$deltafs_mpi" ] || {
        expect 0 index $ranks --key "$(key $layout)" -o $layout.keys $layout.1.h5
        right $layout.keys $layout $layout.1.h5
        expect 0 index $ranks --key "$(key $layout)" -o $layout.keys $layout.1.h5 $layout.2.h5
        stdout_has "unchanged"
        right $layout.keys $layout $layout.1.h5 $layout.2.h5
        expect 0 index $ranks --key "$(key $layout)" $layout.2.h5
        by_value $layout.keys
        right $layout.2.h5 $layout $layout.2.h5
        [ "$sum" = "$(sha256sum $layout.*.h5)" ] || fail "$layout: a file was changed"
    }
done
[ ! -x "$deltafs_mpi" ] || {
    h5keys make snap_010.h5 gadget 0 && h5keys make snap_9.h5 gadget 1 || fail make
    expect 0 index 2 --key "$(key gadget)" -o gadget.keys snap_010.h5 snap_9.h5
    right gadget.keys gadget snap_010.h5 snap_9.h5
    # A timestep that only the user knows.
    expect 0 index 1 --key "$(key gadget)" --label 77 -o label.keys snap_9.h5
    h5keys ids gadget snap_9.h5 >ids
    expect 0 "$deltafs" get label.keys "$(head -n 1 ids)" --format csv
    stdout_has ",77,"

    # What cannot be is said, with the way out, and nothing is made.
    h5keys make packed.h5 packed 1 || fail make
    expect 3 index 1 --key '/p_*/ids' -o none.keys packed.h5
    says "it has no dataset /p_*/ids"
    [ ! -e none.keys ] || fail "an index of nothing"
    # A filter that this HDF5 does not have.
    h5keys make strange.h5 strange 1 || fail make
    expect 3 index 2 --hdf5 "$HDF5_DIR/lib/libhdf5.so" --key '/p_*/id' -o none.keys strange.h5
    says "/p_1/v: HDF5 cannot read its values: "
    # Compressed values need HDF5 for a query, too.
    expect 0 index 1 --key '/p_*/id' -o needs.keys packed.h5
    h5keys ids packed packed.h5 >ids
    expect 3 env DELTAFS_HDF5=/nowhere.so "$deltafs" get needs.keys "$(head -n 1 ids)"
    says "HDF5 cannot be loaded"
    expect 3 index 1 --key '/p_*/id' -o packed.keys "$top_srcdir/README.md"
    says "is not an HDF5 file"
    expect 3 env DELTAFS_HDF5=/nowhere.so "$deltafs_mpi" index --key '/p_*/id' packed.h5
    says "HDF5 cannot be loaded"
}

# Through the driver: the index is there when the script has ended.
mkdir plain
for layout in vpic h5part openpmd compound big packed gadget; do
    file=run_5.h5
    rm -rf $file plain/$file
    HDF5_DRIVER_CONFIG="key=$(key $layout);memory=64M"
    export HDF5_DRIVER_CONFIG
    steps="40 3 500"
    [ $layout != gadget ] || steps=1 # a file for each
    # shellcheck disable=SC2086
    expect 0 vfd h5keys make $file $layout $steps
    is_logical $file
    unset HDF5_DRIVER_CONFIG
    expect 0 "$deltafs" cp $file plain/$file
    right $file $layout plain/$file
    [ $layout != gadget ] || continue

    # Once more, with an index of another place, named in the environment.
    DELTAFS_KEY=$(key $layout) DELTAFS_INDEX=$work/$layout.all
    export DELTAFS_KEY DELTAFS_INDEX
    expect 0 vfd h5keys make $file $layout 41 4 rows=177 mode=a
    expect 0 vfd h5keys make more_$layout.h5 $layout 6
    unset DELTAFS_KEY DELTAFS_INDEX
    rm plain/$file
    expect 0 "$deltafs" cp $file plain/$file
    expect 0 "$deltafs" cp more_$layout.h5 plain/more_$layout.h5
    right $layout.all $layout plain/$file plain/more_$layout.h5
done

# A file without such datasets is closed without an index; one that cannot be indexed says so, and is whole.
HDF5_DRIVER_CONFIG="key=/p_*/id"
export HDF5_DRIVER_CONFIG
expect 0 vfd h5keys make other.h5 vpic 1
[ ! -e other.h5/keys ] || fail "an index of nothing"
expect 1 vfd h5keys make virtual_ours.h5 virtual 1
says "is virtual"
says "its keys are not indexed"
unset HDF5_DRIVER_CONFIG
expect 0 "$deltafs" cp virtual_ours.h5 plain/virtual.h5
# A logical file that is there is indexed by an HDF5 that has the driver.
[ ! -x "$deltafs_mpi" ] || {
    expect 0 "$deltafs" cp other.h5 plain/other.h5
    expect 0 index 2 --hdf5 "$HDF5_DIR/lib/libhdf5.so" --key '/Timestep_*/id1' deltafs:other.h5
    right other.h5 vpic plain/other.h5
    rm -rf other.h5/keys
}
# A script that does not close its file leaves that to HDF5, when it ends.
HDF5_DRIVER_CONFIG='key=/Timestep_*/id1'
export HDF5_DRIVER_CONFIG
expect 0 vfd h5keys leave left.h5 vpic 1 2
unset HDF5_DRIVER_CONFIG
expect 0 "$deltafs" cp left.h5 plain/left.h5
right left.h5 vpic plain/left.h5
# A file that is only read is not indexed.
HDF5_DRIVER_CONFIG='key=/Timestep_*/id1'
export HDF5_DRIVER_CONFIG
expect 0 vfd h5keys ids vpic other.h5
[ ! -e other.h5/keys ] || fail "a reader has made an index"
exit 0
