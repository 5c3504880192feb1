/* Files by their whole path: what MPI-IO's drivers call, and how a pool is found.
 *
 *     pool_paths POINT FOLDER      FOLDER: where there is no pool; POINT is in it
 *     pool_paths PATH              the kind of a file that is created there, and removed */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <deltafs/deltafs_mpi.h>
#include <deltafs/deltafs_pool.h>

#define PIECE  3000 /* bytes of a rank that are together; chunks of the pool have 512 KiB */
#define PIECES 500

static int rank, ranks;
static char mine[PIECE * PIECES];
static struct deltafs_extent extents[PIECES];

#define REQUIRE(condition) require((condition) != 0, #condition, __LINE__)
static void require(int is_fine, const char *what, int line)
{
    if (is_fine)
        return;
    fprintf(stderr, "rank %d, line %d: not so: %s (%s)\n", rank, line, what, deltafs_errmsg(NULL));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void finds(const char *point, const char *folder)
{
    char path[4200], inside[DELTAFS_POOL_PATH_ROOM];
    deltafs_pool *pool, *again;

    snprintf(path, sizeof path, "%s/a//b/../c/", point);
    REQUIRE(deltafs_pool_open_path(path, &pool, inside) == DELTAFS_OK && strcmp(inside, "/a/c") == 0);
    REQUIRE(deltafs_pool_open_path(point, &again, inside) == DELTAFS_OK && strcmp(inside, "/") == 0);
    REQUIRE(pool == again);
    deltafs_pool_close(pool);
    REQUIRE(deltafs_pool_servers(again) > 0);
    deltafs_pool_close(again);
    REQUIRE(chdir(folder) == 0);
    REQUIRE(deltafs_pool_open_path(strrchr(point, '/') + 1, &pool, inside) == DELTAFS_OK && strcmp(inside, "/") == 0);
    deltafs_pool_close(pool);
    snprintf(path, sizeof path, "%s/../file", point);
    REQUIRE(deltafs_pool_open_path(path, &pool, inside) == DELTAFS_ERR_NOT_FOUND);
    REQUIRE(deltafs_pool_open_path("file", &pool, inside) == DELTAFS_ERR_NOT_FOUND);
    snprintf(path, sizeof path, "%s/%0300d", point, 1);
    REQUIRE(deltafs_pool_open_path(path, &pool, inside) == DELTAFS_ERR_NOT_FOUND);
}

/* Extents in any order, also empty ones and some of several chunks, by one call. */
static void lists(const char *point)
{
    static const struct deltafs_extent list[] = {{2000000, 700000}, {0, 0}, {10, 5}, {1300000, 100000}, {15, 1}};
    char path[4200], inside[DELTAFS_POOL_PATH_ROOM], *at = mine;
    static char got[700000];
    struct deltafs_pool_stat s = {.struct_size = sizeof s};
    deltafs_pool *pool;
    deltafs_pool_file *f;
    size_t n;

    snprintf(path, sizeof path, "%s/list.%d", point, rank);
    REQUIRE(deltafs_pool_open_path(path, &pool, inside) == DELTAFS_OK);
    REQUIRE(deltafs_pool_file_open(pool, inside, O_RDWR | O_CREAT, 0666, &f) == DELTAFS_OK);
    for (size_t i = 0; i < sizeof mine; i++)
        mine[i] = (char)(i * 7 + i / 1000);
    REQUIRE(deltafs_pool_file_write_list(f, 5, list, mine) == DELTAFS_OK);
    REQUIRE(deltafs_pool_file_stat_opened(f, &s) == DELTAFS_OK && s.size == 0);
    REQUIRE(deltafs_pool_file_stat(f, &s) == DELTAFS_OK && s.size == 2700000);
    for (int i = 0; i < 5; at += list[i++].size) {
        REQUIRE(deltafs_pool_file_read(f, list[i].offset, got, list[i].size, &n) == DELTAFS_OK && n == list[i].size);
        REQUIRE(memcmp(got, at, n) == 0);
    }
    REQUIRE(deltafs_pool_file_write_list(f, 1, &(struct deltafs_extent){UINT64_MAX, 1}, mine) == DELTAFS_ERR_TOO_LARGE);
    deltafs_pool_file_close(f);
    REQUIRE(deltafs_pool_file_open(pool, inside, O_WRONLY | O_APPEND, 0, &f) == DELTAFS_OK);
    REQUIRE(deltafs_pool_file_stat_opened(f, &s) == DELTAFS_OK && s.size == 2700000);
    REQUIRE(deltafs_pool_file_write_list(f, 5, list, mine) == DELTAFS_ERR_INVALID);
    deltafs_pool_file_close(f);
    REQUIRE(deltafs_pool_unlink(pool, inside) == DELTAFS_OK);
    deltafs_pool_close(pool);
}

static int opened(const char *path, int flags, deltafs_mpi_file **out)
{
    return deltafs_mpi_file_open(MPI_COMM_WORLD, rank == 0 ? path : "elsewhere", rank == 0 ? flags : O_RDONLY, NULL,
                                 out);
}

/* Pieces of all ranks in turn. */
static void bytes(deltafs_mpi_file *file)
{
    int next = (rank + 1) % ranks;
    size_t got;

    for (int i = 0; i < PIECES; i++)
        extents[i] = (struct deltafs_extent){((uint64_t)i * (uint64_t)ranks + (uint64_t)rank) * PIECE, PIECE};
    for (size_t i = 0; i < sizeof mine; i++)
        mine[i] = (char)((size_t)rank * 31 + i * 7 + i / PIECE);
    REQUIRE(deltafs_mpi_file_write_list(file, PIECES, extents, mine) == DELTAFS_OK);
    REQUIRE(deltafs_mpi_file_exchange(file) == DELTAFS_OK);
    for (int i = 0; i < PIECES; i++)
        extents[i].offset = ((uint64_t)i * (uint64_t)ranks + (uint64_t)next) * PIECE;
    REQUIRE(deltafs_mpi_file_read_list(file, PIECES, extents, mine, &got) == DELTAFS_OK && got == sizeof mine);
    for (size_t i = 0; i < sizeof mine; i++)
        REQUIRE(mine[i] == (char)((size_t)next * 31 + i * 7 + i / PIECE));
    /* Beyond the end there are zeros; the second piece is the last one with a byte of the file. */
    const struct deltafs_extent few[] = {{10, 20}, {(uint64_t)ranks * sizeof mine - 5, 10}, {UINT32_MAX, 10}};
    REQUIRE(deltafs_mpi_file_read_list(file, 3, few, mine, &got) == DELTAFS_OK && got == 25);
    for (int i = 25; i < 40; i++)
        REQUIRE(mine[i] == 0);
    const struct deltafs_extent near[] = {{(uint64_t)ranks * sizeof mine - 9, 3},
                                          {(uint64_t)ranks * sizeof mine - 5, 10},
                                          {(uint64_t)ranks * sizeof mine + 9, 10}};
    memset(mine, 1, 30);
    REQUIRE(deltafs_mpi_file_read_list(file, 3, near, mine, &got) == DELTAFS_OK && got == 8);
    for (int i = 8; i < 23; i++)
        REQUIRE(mine[i] == 0);
    REQUIRE(mine[23] == 1);
}

static void sizes(deltafs_mpi_file *file)
{
    uint64_t size;

    MPI_Barrier(MPI_COMM_WORLD);
    REQUIRE(deltafs_mpi_file_truncate(file, 1000) == DELTAFS_OK);
    REQUIRE(deltafs_mpi_file_size(file, &size) == DELTAFS_OK && size == 1000);
    MPI_Barrier(MPI_COMM_WORLD);
    REQUIRE(deltafs_mpi_file_extend(file, 500) == DELTAFS_OK);
    REQUIRE(deltafs_mpi_file_extend(file, 2000000) == DELTAFS_OK);
    REQUIRE(deltafs_mpi_file_size(file, &size) == DELTAFS_OK && size == 2000000);
    REQUIRE(deltafs_mpi_file_sync(file) == DELTAFS_OK);
}

static void in_pool(const char *point)
{
    deltafs_mpi_file *file, *other;
    char path[4200];
    uint64_t size;

    snprintf(path, sizeof path, "%s/file", point);
    REQUIRE(opened(path, O_RDWR, &file) == DELTAFS_ERR_NOT_FOUND && strstr(deltafs_errmsg(NULL), path));
    REQUIRE(opened(path, O_RDWR | O_CREAT | O_EXCL, &file) == DELTAFS_OK && deltafs_mpi_file_is_pooled(file));
    REQUIRE(opened(path, O_RDWR | O_CREAT | O_EXCL, &other) == DELTAFS_ERR_EXISTS);
    bytes(file);
    sizes(file);
    REQUIRE(deltafs_mpi_file_set_atomic(file, 0) == DELTAFS_OK);
    REQUIRE(deltafs_mpi_file_set_atomic(file, 1) == DELTAFS_ERR_INVALID && strstr(deltafs_errmsg(NULL), path));
    REQUIRE(opened(path, O_RDONLY, &other) == DELTAFS_OK);
    REQUIRE(deltafs_mpi_file_write_list(other, 1, extents, mine) == DELTAFS_ERR_INVALID);
    REQUIRE(deltafs_mpi_file_truncate(other, 1) == DELTAFS_ERR_INVALID && strstr(deltafs_errmsg(NULL), path));
    REQUIRE(deltafs_mpi_file_close(other) == DELTAFS_OK);
    REQUIRE(deltafs_mpi_file_close(file) == DELTAFS_OK);
    REQUIRE(opened(path, O_RDWR | O_CREAT | O_TRUNC, &file) == DELTAFS_OK);
    REQUIRE(deltafs_mpi_file_size(file, &size) == DELTAFS_OK && size == 0);
    REQUIRE(deltafs_mpi_file_close(file) == DELTAFS_OK);
    if (rank == 0) {
        REQUIRE(deltafs_mpi_file_remove(path) == DELTAFS_OK);
        REQUIRE(deltafs_mpi_file_remove(path) == DELTAFS_ERR_NOT_FOUND && strstr(deltafs_errmsg(NULL), path));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    REQUIRE(opened(point, O_RDWR, &file) == DELTAFS_ERR_FOLDER);
}

static void elsewhere(const char *folder)
{
    deltafs_mpi_file *file;
    char path[4200];

    snprintf(path, sizeof path, "%s/file", folder);
    REQUIRE(opened(path, O_RDWR | O_CREAT, &file) == DELTAFS_OK && !deltafs_mpi_file_is_pooled(file));
    bytes(file);
    sizes(file);
    REQUIRE(deltafs_mpi_file_close(file) == DELTAFS_OK);
    MPI_Barrier(MPI_COMM_WORLD);
    REQUIRE(rank != 0 || deltafs_mpi_file_remove(path) == DELTAFS_OK);
}

static void kind(const char *path)
{
    deltafs_mpi_file *file;

    REQUIRE(opened(path, O_RDWR | O_CREAT | O_EXCL, &file) == DELTAFS_OK);
    if (rank == 0)
        puts(deltafs_mpi_file_is_pooled(file) ? "pool" : "logical");
    REQUIRE(deltafs_mpi_file_close(file) == DELTAFS_OK);
    REQUIRE(rank != 0 || deltafs_mpi_file_remove(path) == DELTAFS_OK);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc == 3) {
        finds(argv[1], argv[2]);
        lists(argv[1]);
        in_pool(argv[1]);
        elsewhere(argv[2]);
    } else {
        kind(argv[1]);
    }
    MPI_Finalize();
    return EXIT_SUCCESS;
}
