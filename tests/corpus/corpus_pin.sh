#!/bin/sh
# Today's writer writes what the one wrote that made the golden containers: byte for byte where nothing is packed;
# elsewhere all but what a version of Snappy may do otherwise.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python
corpus=$top_srcdir/tests/corpus

# structure DIR FILE
structure() {
    "$PYTHON3" "$corpus/decode.py" structure "$1" >"$2" || fail "decode.py structure $1"
}

mkdir "$work/made"
"$top_builddir/make_corpus" "$work/made" || fail "make_corpus"
n=0
plain=0
for made in "$work/made"/*; do
    name=${made##*/}
    structure "$made" "$work/new"
    structure "$corpus/$name" "$work/old"
    same "$work/old" "$work/new" "$name: the structure that was written once (<) and today (>) differs"
    n=$((n + 1))
    grep -q 'flags 0[13578] records' "$work/old" && continue
    plain=$((plain + 1))
    # The older ones have no copy of the manifest.
    if [ -f "$made/MANIFEST.copy" ] && [ ! -f "$corpus/$name/MANIFEST.copy" ]; then
        head -c "$(wc -c <"$made/MANIFEST.copy")" "$made/MANIFEST" | cmp - "$made/MANIFEST.copy" ||
            fail "$name: the copy of the manifest is another"
        rm "$made/MANIFEST.copy"
    fi
    (cd "$made" && find . -type f) >"$work/files"
    [ "$(find "$corpus/$name" -type f | wc -l)" -eq "$(wc -l <"$work/files")" ] || fail "$name: other files"
    while read -r file; do
        cmp "$corpus/$name/$file" "$made/$file" || fail "$name: $file is not what was written once"
    done <"$work/files"
done
[ $n -gt 20 ] && [ $plain -gt 10 ] || fail "only $n containers, $plain of them without packed blocks"
