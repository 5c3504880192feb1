#!/bin/sh
# The manual pages and the help name every command and option, and no other.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"

# plain PAGE: without what troff makes of it.
plain() {
    sed -e 's/\\-/-/g; s/\\f[A-Z]//g; s/\\f(..//g; s/\\[&|]//g' "$1"
}

# long_options: those on standard input, one a line.
long_options() {
    grep -oE -- '--[a-z_]+(-[a-z]+)*' | sort -u
}

# agree NAME HELP PAGE: the options of the page are those of the help.
agree() {
    long_options <"$2" >"$work/of-help"
    plain "$3" | long_options >"$work/of-page"
    same "$work/of-help" "$work/of-page" "$1: options of the help (<) and of the manual page (>) differ"
}

"$deltafs" help >"$work/help" || fail "help"
"$deltafs" help options >"$work/options" || fail "help options"

# Options of the library are not in deltafs-mpi's help one by one; it and its page name examples.
if [ -x "$deltafs_mpi" ]; then
    "$deltafs_mpi" help >"$work/help-mpi" || fail "deltafs-mpi help"
    sed -n 's/^  \([a-z][a-z_]*\) .*/--\1/p' "$work/options" | sort >"$work/table"
    long_options <"$work/help-mpi" | grep -vxF -f "$work/table" >"$work/own"
    echo "--schema" >>"$work/own" # import has it, too
fi

pages=0
page=$top_srcdir/man/deltafs.1
if [ -f "$page" ]; then
    pages=$((pages + 1))
    agree deltafs "$work/help" "$page"
    plain "$page" >"$work/plain"
    for command in get scan select export plot info attr verify repair ls stat cat cp flatten rm ns snapshot run doctor; do
        grep -q "^\.SS $command\$" "$work/plain" || fail "deltafs.1 has no section $command"
        grep -q "deltafs $command" "$work/plain" || fail "deltafs.1's synopsis does not name $command"
    done
    for code in 0 1 2 3; do
        grep -qE "^\.B $code\$" "$work/plain" || fail "deltafs.1 does not say what exit code $code means"
    done
fi
page=$top_srcdir/man/deltafs-mpi.1
if [ -f "$page" ] && [ -x "$deltafs_mpi" ]; then
    pages=$((pages + 1))
    plain "$page" >"$work/plain"
    while read -r option; do
        grep -qE -- "$option( |\$|[^a-z_])" "$work/plain" || fail "deltafs-mpi.1 does not name $option"
    done <"$work/own"
    cat "$work/own" "$work/table" | sort -u >"$work/any"
    long_options <"$work/plain" | grep -vxF -f "$work/any" >"$work/extra"
    [ ! -s "$work/extra" ] || fail "deltafs-mpi.1 names options that are not there: $(xargs <"$work/extra")"
    for format in vpic raw; do
        grep -q -- "--format $format" "$work/plain" || fail "deltafs-mpi.1 does not name the format $format"
    done
    for code in 0 1 2 3; do
        grep -qE "^\.B $code\$" "$work/plain" || fail "deltafs-mpi.1 does not say what exit code $code means"
    done
fi
# Made from the table while building.
page=$top_builddir/man/deltafs.7
if [ -f "$page" ]; then
    pages=$((pages + 1))
    plain "$page" >"$work/plain"
    grep '^  [a-z]' "$work/options" >"$work/rows"
    [ -s "$work/rows" ] || fail "help options lists nothing"
    while read -r name text; do
        grep -qx "\.B $name" "$work/plain" || fail "deltafs.7 does not name the option $name"
        grep -qF "$text" "$work/plain" || fail "deltafs.7 does not say of the option $name: $text"
    done <"$work/rows"
    ! grep -q '@' "$work/plain" || fail "something is left to be filled in in deltafs.7"
fi
# Made from the headers while building: each has all functions and is correct for troff, if that is installed.
for page in "$top_builddir"/man/deltafs*.3; do
    [ -f "$page" ] || continue
    pages=$((pages + 1))
    name=$(basename "$page" .3)
    grep -oE '^DELTAFS_API .*[ *][A-Za-z0-9_]+\(' "$top_srcdir/include/deltafs/$name.h" | sed 's/.*[ *]//' >"$work/functions"
    [ -s "$work/functions" ] || fail "$name.h declares no functions"
    plain "$page" >"$work/plain"
    while read -r function; do
        grep -qF "$function" "$work/plain" || fail "$name.3 does not have $function)"
    done <"$work/functions"
    ! grep -qF 'DELTAFS_API' "$work/plain" || fail "$name.3 has DELTAFS_API"
    sed -n '/^\.SH EXAMPLE$/,/^\.fi$/{/^\./d; s/\\e/\\/g; p}' "$work/plain" >"$work/example"
    if [ -f "$top_srcdir/tests/examples/$name.c" ]; then
        same "$work/example" "$top_srcdir/tests/examples/$name.c" "the example of $name.3 is not the program"
    fi
done
if command -v groff >"$work/groff"; then
    for page in "$top_srcdir"/man/*.[1-7] "$top_builddir"/man/*.[1-7]; do
        [ ! -f "$page" ] || groff -t -man -ww -Tutf8 "$page" 2>&1 >"$work/page" | grep -v 'break\|adjust' >"$work/err"
        [ ! -s "$work/err" ] || fail "$page: $(cat "$work/err")"
    done
fi
[ $pages -gt 0 ] || skip "no manual pages"
