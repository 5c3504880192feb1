#!/bin/sh
# Large files are made shorter, and removed, in parts.
. "$top_srcdir/tests/pool/pool_lib.sh"

pool_start 1
timeout 60 ./pool_large "$point" 1500 4 || fail "one server"
pool_stop

pool_start 2
timeout 60 ./pool_large "$point" 2500 6 || fail "two servers"
pool_stop

# Servers that have nothing of a file are not asked.
pool_start 4 --placement local
timeout 60 ./pool_large "$point" 20 2 || fail "a file that is stored where it is created"
pool_stop
