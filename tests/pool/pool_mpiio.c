/* MPI-IO as it is, on files of a pool: what its libraries do with locks of parts of files, and collective calls.
 *
 *     pool_mpiio FOLDER      by the prefix deltafs: there may be no shared pointer and no atomic mode */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK  48  /* bytes of a rank that are together */
#define BLOCKS 400 /* of a rank */

static int rank, ranks;
static char mine[BLOCK * BLOCKS];

static void require(int is_fine, const char *what)
{
    if (is_fine)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_File open_in(const char *folder, const char *name)
{
    char path[4096];
    MPI_File f;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    require(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f) == MPI_SUCCESS,
            "open");
    MPI_File_set_errhandler(f, MPI_ERRORS_ARE_FATAL);
    return f;
}

static char byte_of(int who, int i)
{
    return (char)(who * 31 + i * 7 + i / BLOCK);
}

/* Blocks of all ranks in turn: each rank writes those of its own, and reads those of the next. */
static void strided(const char *folder, const char *name, int is_collective)
{
    int next = (rank + 1) % ranks;
    MPI_File f = open_in(folder, name);
    MPI_Datatype view;

    MPI_Type_vector(BLOCKS, BLOCK, BLOCK * ranks, MPI_BYTE, &view);
    MPI_Type_commit(&view);
    for (int i = 0; i < BLOCK * BLOCKS; i++)
        mine[i] = byte_of(rank, i);
    MPI_File_set_view(f, (MPI_Offset)rank * BLOCK, MPI_BYTE, view, "native", MPI_INFO_NULL);
    /* In pieces, so that the ranks change the same parts of the file again and again. */
    for (int i = 0; i < BLOCKS; i += BLOCKS / 8)
        (is_collective ? MPI_File_write_all : MPI_File_write)(f, mine + (size_t)i * BLOCK, BLOCKS / 8 * BLOCK, MPI_BYTE,
                                                              MPI_STATUS_IGNORE);
    MPI_File_sync(f);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_view(f, (MPI_Offset)next * BLOCK, MPI_BYTE, view, "native", MPI_INFO_NULL);
    memset(mine, 0, sizeof mine);
    (is_collective ? MPI_File_read_all : MPI_File_read)(f, mine, sizeof mine, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int i = 0; i < BLOCK * BLOCKS; i++)
        require(mine[i] == byte_of(next, i), is_collective ? "bytes of a collective call" : "bytes of strided calls");
    MPI_Type_free(&view);
    MPI_File_close(&f);
}

/* No two writes by the shared file pointer have the same place. */
static void shared(const char *folder)
{
    MPI_File f = open_in(folder, "shared");
    MPI_Offset size;

    MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
    int code = MPI_File_seek_shared(f, 0, MPI_SEEK_SET);
    if (code != MPI_SUCCESS && strncmp(folder, "deltafs:", 8) == 0) {
        MPI_File_close(&f);
        return;
    }
    MPI_File_set_errhandler(f, MPI_ERRORS_ARE_FATAL);
    require(code == MPI_SUCCESS, "seek_shared");
    for (int i = 0; i < 20; i++)
        MPI_File_write_shared(f, mine, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_sync(f);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(f, &size);
    require(size == (MPI_Offset)ranks * 20 * BLOCK, "the size after writes by the shared file pointer");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_size(f, 100);
    MPI_File_get_size(f, &size);
    require(size == 100, "the size that was set");
    MPI_File_close(&f);
}

/* In atomic mode a read has all of one write. The driver for the prefix refuses it. */
static void atomic(const char *folder)
{
    MPI_File f = open_in(folder, "atomic");

    MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
    int is_refused = MPI_File_set_atomicity(f, 1) != MPI_SUCCESS;
    require(is_refused == (strncmp(folder, "deltafs:", 8) == 0), "atomic mode");
    MPI_File_set_errhandler(f, MPI_ERRORS_ARE_FATAL);
    for (int i = 0; i < 10 && !is_refused; i++) {
        memset(mine, rank, sizeof mine);
        MPI_File_write_at(f, 0, mine, sizeof mine, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_read_at(f, 0, mine, sizeof mine, MPI_BYTE, MPI_STATUS_IGNORE);
        require(memcmp(mine, mine + 1, sizeof mine - 1) == 0, "bytes in atomic mode");
    }
    MPI_File_close(&f);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc == 2) {
        strided(argv[1], "independent", 0);
        strided(argv[1], "collective", 1);
        shared(argv[1]);
        atomic(argv[1]);
    }
    MPI_Finalize();
    return argc == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
