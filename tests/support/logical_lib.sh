# Sourced by the tests of the commands on logical files, after cli_lib.sh.
put_logical=$top_builddir/put_logical

# put FILE PLAIN ARGUMENT...
put() {
    "$put_logical" "$@" 2>"$work/err" || fail "put_logical $*: $(cat "$work/err")"
}

# size FILE: as stat --json says.
size() {
    "$deltafs" stat --json "$1" | sed -n 's/^ "size": \([0-9]*\),\{0,1\}$/\1/p'
}

# is_empty FOLDER WHO: nothing is left in it.
is_empty() {
    [ -z "$(ls -A "$1")" ] || fail "$2 leaves $(ls -A "$1")"
}

# nothing_aside FOLDER: nothing of a copy is left.
nothing_aside() {
    for left in "$1"/.deltafs* "$1"/.*.deltafs*; do
        [ ! -e "$left" ] || fail "left behind: $left"
    done
}

# agree FILE PLAIN: all ways to read give the bytes of the plain file.
agree() {
    expect 0 "$deltafs" cp "$1" "$work/copy"
    same "$2" "$work/copy" "$1: cp"
    rm "$work/copy"
    "$deltafs" cat "$1" >"$work/copy" || fail "$1: cat"
    same "$2" "$work/copy" "$1: cat"
    "$deltafs" cp "deltafs:$1" - >"$work/copy" || fail "$1: cp to standard output"
    same "$2" "$work/copy" "$1: cp to standard output"
    rm "$work/copy"
    plain_size=$(wc -c <"$2")
    [ "$(size "$1")" -eq "$plain_size" ] || fail "$1: stat says $(size "$1") bytes instead of $plain_size"
    expect 0 "$deltafs" verify "$1"
    stdout_has ", 0 damages"
    nothing_aside "$work"
}
