#!/bin/sh
# deltafs export: all columns of a real run have the values of its dumps. If VFD_PYTHON names a Python that has pyarrow,
# pandas, DuckDB, openPMD-api, openPMD-viewer and VTK, they read the files that are made for them.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python
find_numpy
[ -n "$python" ] || skip "no Python with NumPy"
parquet_readers=parquet
if [ -n "${VFD_PYTHON:-}" ]; then
    "$python" -c 'import duckdb, openpmd_api, openpmd_viewer, pandas, pyarrow, vtkmodules' || fail "$python lacks a reader"
    parquet_readers="pyarrow pandas duckdb"
fi

# check READER FORMAT DIR WANTED ARGUMENT...: the reader finds the rows that are wanted as csv.
check() {
    reader=$1 format=$2 dir=$3 rows=$4
    shift 4
    expect 0 "$deltafs" export "$dir" "$@" --format "$format" -f -o "$work/x.$format"
    "$python" "$cli/export_check.py" "$reader" "$work/x.$format" "$rows" || fail "$dir as $format: by $reader"
}

# check_hdf5 DIR ARGUMENT...: the readers of openPMD and VTKHDF find the rows, each in the order of its format.
check_hdf5() {
    dir=$1
    shift
    [ -n "${VFD_PYTHON:-}" ] || return 0
    "$deltafs" select "$dir" "$@" --format csv >"$work/openpmd.csv" || fail select
    for format in csv openpmd vtkhdf; do
        expect 0 "$deltafs" export "$dir" "$@" --format $format -f -o "$work/x.$format"
    done
    mv "$work/x.openpmd" "$work/x.h5"
    for reader in api viewer; do
        "$python" "$cli/export_check_hdf5.py" $reader "$work/x.h5" "$work/openpmd.csv" || fail "$dir $*: by $reader"
    done
    "$python" "$cli/export_check_hdf5.py" vtk "$work/x.vtkhdf" "$work/x.csv" || fail "$dir $*: by VTK"
}

"$PYTHON3" "$cli/export_records.py" >"$work/records" || fail export_records.py
sed 1d "$work/records" | "$put_records" "$work/all" schema="$(head -n 1 "$work/records")" || fail put_records
"$deltafs" select "$work/all" --format csv >"$work/all.csv" || fail select
printf '1 6262 -\n1 61 0102\n2 61 03\n2 630a 04\n' | "$put_records" "$work/bytes" keys=bytes || fail put_records
printf 'key,epoch,value\na,1,0102\nbb,1,\na,2,03\n"c\n",2,04\n' >"$work/bytes.csv"
awk '$1 < 4 { print $2 }' "$work/records" | sort -u -R --random-source="$work/records" | head -n 50 >"$work/some"
for reader in $parquet_readers; do
    check $reader parquet "$work/all" "$work/all.csv"
    check $reader parquet "$work/bytes" "$work/bytes.csv"
done
expect 0 "$deltafs" attr "$work/all" y==b+h
expect 0 "$deltafs" attr "$work/all" z==a-x
check_hdf5 "$work/all" --epochs 1:3 --fields x,y,z,a,i,u,b,h,v,w
check_hdf5 "$work/all" --epochs 1:3 --fields u,x,y,z --keys "$work/some"

[ -d "$real" ] || skip "no dumps of a real run in $real (VPIC_HARRIS may name their folder)"
expect 0 import 3 --format vpic -o "$work/d" "$real"/eparticle.*
heading="key,epoch,dx,dy,dz,i,ux,uy,uz,w"
cut -d , -f 1,2,4- "$real/trajectories.csv" | sed "1s/.*/$heading/" >"$work/tracks.csv"
sed 1d "$work/tracks.csv" | cut -d , -f 1 | uniq >"$work/keys"
for reader in npy npz $parquet_readers; do
    format=$reader
    case $reader in pyarrow | pandas | duckdb) format=parquet ;; esac
    check $reader $format "$work/d" "$real" --fields "${heading#key,epoch,}"
    check $reader $format "$work/d" "$work/tracks.csv" --fields "${heading#key,epoch,}" --keys "$work/keys"
done
check_hdf5 "$work/d" --epochs 144
check_hdf5 "$work/d" --keys "$work/keys"
