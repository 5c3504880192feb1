#!/bin/sh
# What the manual page says must be refused is refused, where only the checksum is right.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
need_python
"$PYTHON3" "$top_srcdir/tests/corpus/forge.py" "$deltafs" "$work" || fail "forged containers are taken for sound ones"
