#!/bin/sh
# The other MPI of this machine: a program that was compiled with it gets an error, and so does deltafs-mpi that its
# launcher starts.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

other=mpich
! is_mpich || other=openmpi
mpicc=$(command -v mpicc.$other) && mpirun=$(command -v mpirun.$other) || skip "there is no other MPI, $other"
has_sanitizers && skip "the program is compiled without sanitizers"
libs=$(cd "$top_builddir/.libs" && pwd)

# Each call that takes a handle of MPI, and what is not there to be written.
cat >"$work/program.c" <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <deltafs/deltafs_mpi.h>

static int is_refused(const char *name, int status)
{
    int is = status == DELTAFS_ERR_MPI && strstr(deltafs_errmsg(NULL), "is built for");

    if (!is)
        printf("%s: status %d, %s\n", name, status, deltafs_errmsg(NULL));
    return is;
}

int main(int argc, char **argv)
{
    deltafs_options *options;
    deltafs_dir *dir;
    deltafs_logical *file;
    deltafs_indexer *indexer;
    MPI_Info info;
    int n = 0;

    MPI_Init(&argc, &argv);
    MPI_Info_create(&info);
    deltafs_options_create(&options);
    n += is_refused("create", deltafs_mpi_create(MPI_COMM_WORLD, argv[1], NULL, &dir));
    n += is_refused("reopen", deltafs_mpi_reopen(MPI_COMM_WORLD, argv[1], NULL, &dir));
    n += is_refused("info", deltafs_mpi_options_from_info(info, options));
    n += is_refused("logical", deltafs_mpi_logical_open(MPI_COMM_WORLD, argv[1], O_RDWR | O_CREAT, NULL, &file));
    n += is_refused("indexer", deltafs_mpi_indexer_open(MPI_COMM_WORLD, argv[1], "program.c", NULL, &indexer));
    deltafs_options_destroy(options);
    MPI_Info_free(&info);
    MPI_Finalize();
    return n != 5;
}
C
"$mpicc" -Wall -Werror -I"$top_srcdir/include" -o "$work/program" "$work/program.c" -L"$libs" -ldeltafs_mpi -ldeltafs \
    -Wl,--allow-shlib-undefined 2>"$work/err" || fail "the program cannot be compiled: $(cat "$work/err")"
LD_LIBRARY_PATH=$libs expect 0 timeout 60 "$mpirun" -np 2 "$work/program" "$work/made"
[ ! -e "$work/made" ] || fail "something was made"

printf '12345678' >"$work/dump"
import="import --format raw --schema id:u4,x:f4 --key id --epoch 1"
# shellcheck disable=SC2086 # words
timeout 60 "$mpirun" -np 2 "$deltafs_mpi" $import -o "$work/made" "$work/dump" >"$work/out" 2>"$work/err" &&
    fail "two jobs of one rank each wrote one directory"
says "deltafs-mpi: "
says "$MPIEXEC"
[ ! -e "$work/made" ] || fail "something was made"
# One rank is one job, whatever started it.
# shellcheck disable=SC2086
timeout 60 "$mpirun" -np 1 "$deltafs_mpi" $import -o "$work/one" "$work/dump" || fail "one rank is refused"
