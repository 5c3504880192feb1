#!/bin/sh
# The golden containers are read as they were when they were made: by scan, by get of every key, by verify; and by a
# reader that was written from the manual page alone.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python
corpus=$top_srcdir/tests/corpus

# sum FILE: its SHA-256.
sum() {
    "$PYTHON3" -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$1"
}

n=0
for manifest in "$corpus"/*/MANIFEST; do
    container=${manifest%/MANIFEST}
    name=${container##*/}
    n=$((n + 1))
    expect 0 "$deltafs" scan "$container" --format csv
    [ ! -s "$work/err" ] || fail "$name: scan says $(cat "$work/err")"
    # Computed columns, which a scan also prints, were made later than the container.
    case $name in
    attributes) cut -d, -f1-3 "$work/out" >"$work/scan" ;;
    *) cp "$work/out" "$work/scan" ;;
    esac
    if [ -f "$container.csv" ]; then
        same "$container.csv" "$work/scan" "$name: scan"
    else
        [ "$(sum "$work/scan")" = "$(cat "$container.sha256")" ] || fail "$name: a scan is not what it was"
    fi
    expect 0 "$deltafs" verify "$container"
    records=$(sed -n 's/.*: \([0-9]*\) records* in .*/\1/p' "$work/out")
    expect 0 "$PYTHON3" "$corpus/get_keys.py" "$deltafs" "$container" "$work/scan"
    [ "$records" -eq "$(cat "$work/out")" ] || fail "$name: verify of $records records"
    grep -q "^$name  " "$corpus/README" || fail "README does not name $name"
done
[ $n -gt 20 ] || fail "only $n containers"

# The logical file: by cat and cp, and with its texts rebuilt from the logs.
tar -xzf "$corpus/logical.tar.gz" -C "$work" || fail "tar"
for way in "as it is" flat repaired; do
    case $way in
    flat) expect 0 "$deltafs" flatten "$work/logical" ;;
    repaired)
        rm "$work/logical/MANIFEST" "$work"/logical/s*/SESSION
        expect 0 "$deltafs" repair --apply "$work/logical"
        ;;
    esac
    expect 0 "$deltafs" cat "$work/logical"
    [ ! -s "$work/err" ] || fail "logical, $way: cat says $(cat "$work/err")"
    [ "$(sum "$work/out")" = "$(cat "$corpus/logical.sha256")" ] || fail "logical, $way: its bytes are not what they were"
    expect 0 "$deltafs" verify "$work/logical"
done

# The namespace: by the command, and by a reader that was written from the manual page alone.
expect 0 "$PYTHON3" "$corpus/decode_namespace.py" "$corpus/namespace"
same "$corpus/namespace.txt" "$work/out" "namespace, by decode_namespace.py"
expect 0 "$PYTHON3" "$corpus/get_entries.py" "$deltafs" "$corpus/namespace" "$corpus/namespace.txt"
[ "$(cat "$work/out")" -eq 12 ] || fail "namespace: $(cat "$work/out") entries"
# Another one, whose writers left journals.
expect 0 "$PYTHON3" "$corpus/decode_namespace.py" "$corpus/journals"
same "$corpus/journals.txt" "$work/out" "journals, by decode_namespace.py"
expect 0 "$PYTHON3" "$corpus/get_entries.py" "$deltafs" "$corpus/journals" "$corpus/journals.txt"
[ "$(cat "$work/out")" -eq 12 ] || fail "journals: $(cat "$work/out") entries"
# Also with a time before 1970.
expect 0 "$deltafs" ns cp -rp "$corpus/namespace:/a" "$work/a"
[ "$(stat -c %Y "$work/a/b")" -eq -1 ] || fail "namespace: a copy has the time $(stat -c %Y "$work/a/b")"
