#!/bin/sh
# The worked example of deltafs-format(5): its bytes, taken out of the page, are a directory that has the records that
# the page says; and a reader that was written from the page alone reads the same.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python
corpus=$top_srcdir/tests/corpus
example=$work/example

"$PYTHON3" "$corpus/page_example.py" "$top_srcdir/man/deltafs-format.5" "$example" >"$work/said" ||
    fail "the page has no example that can be taken out"
[ "$(find "$example" -type f | wc -l)" -eq 5 ] || fail "other than 5 files: $(find "$example" -type f)"
[ "$(wc -l <"$work/said")" -gt 20 ] || fail "few records"

expect 0 "$deltafs" scan "$example" --format csv
[ ! -s "$work/err" ] || fail "scan says $(cat "$work/err")"
cp "$work/out" "$work/scan"
# Stable, so that several records of a key stay in their order.
sed 1d "$work/scan" | sort -s -t, -k1,1n -k2,2n >"$work/sorted"
same "$work/said" "$work/sorted" "the records that the page says (<) and those of its bytes (>) differ"
expect 0 "$deltafs" get "$example" --format csv $(cut -d, -f1 "$work/said" | uniq)
sed 1d "$work/out" >"$work/got"
same "$work/said" "$work/got" "the records that the page says (<) and those that get finds (>) differ"
expect 1 "$deltafs" get "$example" 2
expect 0 "$deltafs" verify "$example"
stdout_has "$(wc -l <"$work/said") records in 3 blocks and 3 leaves read, 0 damages"
expect 0 "$PYTHON3" "$corpus/decode.py" csv "$example"
same "$work/scan" "$work/out" "the C reader (<) and decode.py (>) differ"

# It is the golden container of that name.
for file in MANIFEST 00/p00000000.data 00/p00000000.index 01/p00000001.data 01/p00000001.index; do
    cmp "$corpus/example/$file" "$example/$file" || fail "$file is not the golden container's"
done

# Any byte that the page had wrong would show: each one changed is an error, or is a log's header or a copy.
"$PYTHON3" - "$corpus" "$example" "$work/changed" <<'END' || fail "changed bytes are not seen"
import os, shutil, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import decode
shutil.copytree(sys.argv[2], sys.argv[3])
for folder, _, names in os.walk(sys.argv[2]):
    for name in names:
        path = os.path.join(folder, name)
        changed = sys.argv[3] + path[len(sys.argv[2]) :]
        data = open(path, "rb").read()
        for i in range(len(data)):
            with open(changed, "wb") as f:
                f.write(data[:i] + bytes([data[i] ^ 1 << i % 8]) + data[i + 1 :])
            try:
                for _ in decode.read(sys.argv[3]):
                    pass
            except (decode.Damaged, KeyError, ValueError, IndexError, OSError):
                continue
            sys.exit("%s: byte %d" % (path, i))
        shutil.copy(path, changed)
END
