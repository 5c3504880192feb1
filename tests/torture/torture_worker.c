/* A job to be killed: goes on with a directory behind its last epoch, or makes it.
 *
 *     torture_worker --dir DIR --seed S --epochs N --list FILE
 *
 * Writes the N next epochs of torture_truth.h; options of DeltaFS come from the environment. Once an epoch is
 * committed its label goes into FILE: what stands there must never be lost. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <deltafs/deltafs_mpi.h>
#include "torture_truth.h"

#define CANCEL_EVERY 7 /* epochs of which a first try is cancelled */
#define WAIT_EVERY   5 /* epochs which, with commit=async, are waited for */

struct worker {
    struct truth truth;
    deltafs_dir *dir;
    int rank, ranks, is_async, list;
    uint64_t label, listed;
};

static void complain(const struct worker *w, const char *what, const char *why)
{
    fprintf(stderr, "torture_worker: rank %d, epoch %" PRIu64 ": %s: %s\n", w->rank, w->label, what, why);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static void require(const struct worker *w, int status, const char *what)
{
    if (status != DELTAFS_OK)
        complain(w, what, deltafs_errmsg(w->dir));
}

static void list(struct worker *w, uint64_t label)
{
    char line[32];

    if (w->rank != 0 || label <= w->listed)
        return;
    int n = snprintf(line, sizeof line, "%" PRIu64 "\n", label);
    if (write(w->list, line, (size_t)n) != n || fsync(w->list) != 0)
        complain(w, "list", "cannot be written");
    w->listed = label;
}

/* A rank's share of the records, as of epoch `label`: all of a key go through one rank, so they keep their order. */
static void append(struct worker *w, uint64_t label)
{
    uint64_t n = truth_records(&w->truth, label), copies = truth_copies(&w->truth, label);
    struct truth_record r;

    for (uint64_t i = 0; i < n; i++) {
        if (i / copies % (uint64_t)w->ranks != (uint64_t)w->rank)
            continue;
        truth_make(&w->truth, label, i, &r);
        require(w,
                w->truth.is_bytes ? deltafs_append_bytes(w->dir, r.name, r.name_size, r.value, r.size)
                                  : deltafs_append(w->dir, r.key, r.value, r.size),
                "append");
    }
}

static void end_epoch(struct worker *w)
{
    require(w, deltafs_epoch_end(w->dir, w->label), "epoch end");
    list(w, w->is_async ? w->label - 1 : w->label);
    if (w->is_async && w->label % WAIT_EVERY == 0) {
        require(w, deltafs_epoch_wait(w->dir), "epoch wait");
        list(w, w->label);
    }
}

/* Other records are appended and cancelled, with commit=async before the epoch's end and behind it; none of them may
 * ever be seen. */
static void cancel_epoch(struct worker *w)
{
    append(w, w->label + 1);
    if (w->rank == w->ranks - 1)
        require(w, deltafs_epoch_cancel(w->dir, "a try"), "cancel");
    int status = deltafs_epoch_end(w->dir, w->label);
    if (status == DELTAFS_OK) {
        list(w, w->label - 1);
        append(w, w->label + 2);
        status = deltafs_epoch_wait(w->dir);
    }
    if (status != DELTAFS_ERR_CANCELLED)
        complain(w, "end of an epoch given up", deltafs_strerror(status));
}

/* Some jobs have appended what they do not end. */
static void close_dir(struct worker *w)
{
    uint64_t label = w->label + 1, left = label % 2 == 0 ? truth_records(&w->truth, label) : 0;

    if (left > 0)
        append(w, label);
    int status = deltafs_close(w->dir);
    w->dir = NULL;
    if (left == 0)
        require(w, status, "close");
    else if (status != DELTAFS_ERR_UNCOMMITTED)
        complain(w, "close with records that no end followed", deltafs_strerror(status));
    list(w, w->label);
}

static void begin(struct worker *w, const char *path)
{
    deltafs_options *o;
    const char *commit;
    char manifest[4096];

    snprintf(manifest, sizeof manifest, "%s/MANIFEST", path);
    int is_there = access(manifest, F_OK) == 0;
    MPI_Bcast(&is_there, 1, MPI_INT, 0, MPI_COMM_WORLD);
    require(w, deltafs_options_create(&o), "options");
    require(w, deltafs_options_set(o, "keys", w->truth.is_bytes ? "bytes" : "u64"), "options");
    require(w, deltafs_options_set(o, "value_size", w->truth.value_size), "options");
    require(w, deltafs_options_set(o, "layout", w->truth.place), "options");
    require(w, deltafs_options_set(o, "partitioner", w->truth.partitioner), "options");
    require(w, deltafs_options_get(o, "commit", &commit), "options");
    w->is_async = strcmp(commit, "async") == 0;
    require(w, (is_there ? deltafs_mpi_reopen : deltafs_mpi_create)(MPI_COMM_WORLD, path, o, &w->dir),
            is_there ? "reopen" : "create");
    deltafs_options_destroy(o);
    int status = deltafs_last_label(w->dir, &w->label);
    if (status != DELTAFS_ERR_NOT_FOUND)
        require(w, status, "last label");
    list(w, w->label);
}

int main(int argc, char **argv)
{
    struct worker w = {.list = -1};
    const char *path = NULL, *list_path = NULL;
    uint64_t seed = 0, epochs = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w.ranks);
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
    if (!path || !list_path || epochs == 0)
        complain(&w, "usage", "torture_worker --dir DIR --seed S --epochs N --list FILE");
    truth_init(&w.truth, seed);
    w.list = open(list_path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (w.list < 0)
        complain(&w, list_path, "cannot be opened");
    begin(&w, path);
    for (uint64_t last = w.label + epochs; w.label < last;) {
        w.label++;
        if (w.label % CANCEL_EVERY == 0)
            cancel_epoch(&w);
        append(&w, w.label);
        end_epoch(&w);
    }
    close_dir(&w);
    close(w.list);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
