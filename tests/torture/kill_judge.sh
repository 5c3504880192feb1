#!/bin/sh
# torture_judge finds what is wrong with a directory, where something is.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

seed=701 # keys of numbers, values of any size
mpi 2 ./torture_worker --dir "$work/good" --seed $seed --epochs 20 --list "$work/list" || fail "no directory to judge"

# judge VERDICT DIR [SEED [LIST [OPTION]]]: fails unless the judge says so.
judge() {
    timeout 60 ./torture_judge --dir "$work/$2" --seed "${3:-$seed}" --list "$work/${4:-list}" ${5:+"$5"} \
        >"$work/said" 2>&1
    case $(sed -n 's/^judge: .* \([0-9]*\) lost, \([0-9]*\) wrong$/\1 \2/p' "$work/said") in
    "0 0") said=right ;;
    0\ *) said=wrong ;;
    *\ 0) said=lost ;;
    *\ *) said=both ;;
    *) said=nothing ;;
    esac
    [ "$said" = "$1" ] || {
        cat "$work/said"
        fail "the judge says $said of $2 $*"
    }
}

# bad: a copy to spoil, in $work/bad.
bad() {
    rm -rf "$work/bad"
    cp -r "$work/good" "$work/bad"
}

judge right good
judge right good $seed list --closed
judge right good $seed list --closed
judge lost none
: >"$work/empty"
judge right none $seed empty

# Epochs: one missing; more than may have been committed; one truncated.
bad
sed -i '/label=20 /d; /^close /d' "$work/bad/MANIFEST"
rm "$work/bad/MANIFEST.copy"
judge lost bad
sed '$d' "$work/list" >"$work/shorter"
judge right good $seed shorter
# (That the manifest has lost a line is seen; so it is discarded, as whoever wrote it would have done.)
judge lost bad $seed shorter
timeout 60 ./deltafs repair --apply --drop-from 20 "$work/bad" >"$work/said" 2>&1 || fail "repair: $(cat "$work/said")"
judge right bad $seed shorter --closed
sed -i '/^close /d' "$work/bad/MANIFEST"
rm "$work/bad/MANIFEST.copy"
judge right bad $seed shorter
judge lost bad $seed shorter --closed
sed -i '$d' "$work/shorter"
judge wrong good $seed shorter

# Records: others; one that cannot be read; those of the last run that cannot.
judge both good $((seed + 14))
log=$(ls -S "$work"/good/*/*.data | head -1)
log=${log#"$work/good/"}
for place in $(($(stat -c %s "$work/good/$log") / 2)) 3000; do
    bad
    printf '\377\376' | dd of="$work/bad/$log" bs=1 seek="$place" conv=notrunc 2>"$work/err"
    judge lost bad
done
bad
truncate -s 5000 "$work/bad/$log"
judge lost bad
