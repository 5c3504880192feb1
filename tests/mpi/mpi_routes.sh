#!/bin/sh
# The shuffle against its oracle by all routes, on any number of nodes.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

# routes RANKS FIRST COUNT SCALE; 24 cases meet every value size with every route.
routes() {
    fresh
    check "$1" ./test_mpi_shuffle "$data" "$2" "$3" "$4" single any
}
routes 2 0 12 30
routes 3 100 24 30
routes 5 200 24 15
routes 8 300 24 15
# Grids with turns within their nodes, three of them.
routes 12 410 7 10
# One rank is slow.
routes 4 500 4 0
