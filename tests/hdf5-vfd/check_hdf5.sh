#!/bin/sh
# HDF5's own test programs that take a driver from the environment (its check-vfd set), with no driver named and with
# ours: a table of what came out of it. Needs scripts/build-hdf5 --tests NAMES.
#
#     check_hdf5.sh HDF5 PLUGINS [PROGRAM...]    HDF5: the folder of build-hdf5 (default build/hdf5); PLUGINS: the folder
#                                                of libh5fd_deltafs.so
#     check_hdf5.sh --names                      the programs
#     check_hdf5.sh --short-names                those of them that take seconds and do most of what a file is put to
#
# check_hdf5.txt has, for each program that fails with the driver and must, a line "PROGRAM reason". Exits with 1 if any
# other does.
set -u
# As HDF5's own list for other drivers has it, without those that test one certain driver, or no file at all.
programs="testhdf5 cache_api cache_tagging lheap ohdr stab gheap evict_on_close farray earray btree2 hyperslab istore
bittests dt_arith page_buffer dtypes dsets chunk_info cmpd_dset mdset cmpd_dtransform filter_fail extend direct_chunk external
efc objcopy objcopy_ref links unlink twriteorder mtime fillval mount select_io_dset flush1 flush2 app_ref enum set_extent
ttsafe enc_dec_plist enc_dec_plist_cross_platform getname ntypes dangle dtransform reserved cross_read freespace mf vds
file_image unregister cache_logging cork swmr thread_id vol timer event_set"
short="ohdr gheap hyperslab istore page_buffer farray mdset extend direct_chunk external efc objcopy_ref twriteorder mount
select_io_dset chunk_info flush1 flush2 enum getname mf file_image vol"
case ${1:-} in
--names | --short-names)
    [ "$1" = --names ] && echo "$programs" || echo "$short"
    exit 0
    ;;
esac

hdf5=$(cd "$1" && pwd)
plugins=$(cd "$2" && pwd)
shift 2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/deltafs-hdf5.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
srcdir=$hdf5/source/test
export srcdir HDF5TestExpress=3

[ $# -eq 0 ] || programs=$*

# run NAME COMMAND...: seconds and outcome into $outcome.
run() {
    name=$1
    shift
    started=$(date +%s.%N)
    timeout -k 5 "${VFD_SECONDS:-600}" "$@" >"$work/$name.log" 2>&1 </dev/null
    code=$?
    seconds=$(awk -v a="$started" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
    case $code in
    0) outcome=passed ;;
    124 | 137) outcome="no end" ;;
    134 | 139) outcome=crash ;;
    *) outcome=failed ;;
    esac
    [ $code -ne 0 ] || ! grep -q -- '-SKIP-' "$work/$name.log" || outcome="passed, $(grep -c -- '-SKIP-' "$work/$name.log") skipped"
}

printf '%-30s %-22s %8s   %-22s %8s  %s\n' program "no driver" seconds deltafs seconds remark
bad=0 same=0 known=0 all=0
mkdir "$work/plain" "$work/ours"
for program in $programs; do
    all=$((all + 1))
    if [ ! -x "$hdf5/serial/test/$program" ]; then
        echo "$program has not been built"
        bad=$((bad + 1))
        continue
    fi
    cd "$work/plain" || exit 99
    run plain env -u HDF5_DRIVER "$hdf5/serial/test/$program"
    plain=$outcome plain_seconds=$seconds
    cd "$work/ours" || exit 99
    run ours env HDF5_DRIVER=deltafs HDF5_PLUGIN_PATH="$plugins" "$hdf5/serial/test/$program"
    remark=
    case $outcome in
    passed*) same=$((same + 1)) ;;
    *)
        remark=$(sed -n "s/^$program  *//p" "$here/check_hdf5.txt")
        case $plain in
        passed*)
            if [ -n "$remark" ]; then
                known=$((known + 1))
            else
                bad=$((bad + 1))
                remark="NOT KNOWN"
            fi
            ;;
        *) remark="fails without the driver, too" ;;
        esac
        [ -z "${VFD_LOGS:-}" ] || cp "$work/ours.log" "$VFD_LOGS/$program.log"
        ;;
    esac
    printf '%-30s %-22s %8s   %-22s %8s  %s\n' "$program" "$plain" "$plain_seconds" "$outcome" "$seconds" "$remark"
    # flush2 and swmr read what the one before has left.
    case $program in flush1) ;; *) rm -rf "$work/plain" "$work/ours" && mkdir "$work/plain" "$work/ours" ;; esac
done
echo "check_hdf5: $all programs, $same passed with the driver, $known fail as is known, $bad otherwise"
[ $bad -eq 0 ]
