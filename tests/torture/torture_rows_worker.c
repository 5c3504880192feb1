/* A job to be killed that writes records with columns: goes on with a directory behind its last epoch, or makes it.
 *
 *     torture_rows_worker --dir DIR --seed S --epochs N --list FILE
 *
 * Epochs are 1, 2, 3, ..., with the records that torture_rows.h makes of the seed; options of DeltaFS, such as
 * index_by, come from the environment. Once an epoch is committed its label goes into FILE: what stands there must
 * never be lost. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <deltafs/deltafs_mpi.h>
#include "torture_rows.h"

static void require(int is, const char *what, const char *why)
{
    if (is)
        return;
    fprintf(stderr, "torture_rows_worker: %s: %s\n", what, why);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static deltafs_dir *begin(const char *path, uint64_t *label)
{
    char manifest[4096];
    deltafs_options *o;
    deltafs_dir *d;

    snprintf(manifest, sizeof manifest, "%s/MANIFEST", path);
    int is_there = access(manifest, F_OK) == 0;
    MPI_Bcast(&is_there, 1, MPI_INT, 0, MPI_COMM_WORLD);
    require(deltafs_options_create(&o) == DELTAFS_OK && deltafs_options_set(o, "schema", ROWS_SCHEMA) == DELTAFS_OK,
            "options", deltafs_errmsg(NULL));
    int status = (is_there ? deltafs_mpi_reopen : deltafs_mpi_create)(MPI_COMM_WORLD, path, o, &d);
    require(status == DELTAFS_OK, is_there ? "reopen" : "create", deltafs_errmsg(NULL));
    deltafs_options_destroy(o);
    *label = 0;
    status = deltafs_last_label(d, label);
    require(status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND, "last label", deltafs_errmsg(d));
    return d;
}

int main(int argc, char **argv)
{
    const char *path = NULL, *list_path = NULL;
    uint64_t seed = 0, epochs = 0, label;
    int rank, ranks;
    char line[32];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--dir") == 0)
            path = argv[i + 1];
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--epochs") == 0)
            epochs = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--list") == 0)
            list_path = argv[i + 1];
    }
    require(path && list_path && epochs > 0, "usage", "torture_rows_worker --dir DIR --seed S --epochs N --list FILE");
    int list = open(list_path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    require(list >= 0, list_path, "cannot be opened");
    deltafs_dir *d = begin(path, &label);
    for (uint64_t last = label + epochs; label < last;) {
        struct torture_epoch epoch = rows_epoch(seed, ++label, ROWS_MOST);
        require(rows_append(&epoch, (uint32_t)rank, (uint32_t)ranks, d) == DELTAFS_OK, "append", deltafs_errmsg(d));
        require(deltafs_epoch_end(d, label) == DELTAFS_OK, "epoch end", deltafs_errmsg(d));
        int n = snprintf(line, sizeof line, "%" PRIu64 "\n", label);
        require(rank > 0 || write(list, line, (size_t)n) == n, list_path, "cannot be written");
    }
    require(deltafs_close(d) == DELTAFS_OK, "close", deltafs_errmsg(NULL));
    close(list);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
