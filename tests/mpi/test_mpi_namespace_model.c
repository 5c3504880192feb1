/* Namespaces that several ranks have open, against a tree in memory. Every rank has the tree, and makes the calls of
 * all ranks on it; each on the namespace only its own. In a shared one they also publish snapshots. UNIT_STEPS=N in the
 * environment makes the histories N times as long.
 *
 *     test_mpi_namespace_model FOLDER turns|parts|private
 *
 * turns: shared; now one rank changes the tree, now another. parts: shared; all at once, each a part of the tree, which
 * another had before. private: the same, and the ranks open the namespace again to see the others' changes. */
#include <fcntl.h>
#include <deltafs/deltafs_mpi.h>
#include "history.h"

static int rank, ranks;
static const char *path;
static deltafs_namespace *ns;
static struct tree *root;

static unsigned steps(unsigned n)
{
    const char *times = getenv("UNIT_STEPS");

    return times ? n * (unsigned)strtoul(times, NULL, 10) : n;
}

static void open_ns(enum deltafs_namespace_mode mode)
{
    deltafs_options *o = unit_options("memory", "40M", "threads", "1", NULL);

    CHECK_IS(deltafs_mpi_namespace_open(MPI_COMM_WORLD, path, O_RDWR | O_CREAT, o, mode, &ns), DELTAFS_OK);
    deltafs_options_destroy(o);
}

static void close_ns(void)
{
    CHECK_IS(deltafs_namespace_close(ns), DELTAFS_OK);
}

static void barrier(void)
{
    CHECK_IS(deltafs_mpi_namespace_barrier(ns), DELTAFS_OK);
}

/* ---- Snapshots of one that is shared ---- */

static char snapshot[300];
static struct tree *published; /* what it has */

static void check_snapshot(void)
{
    deltafs_namespace *view;

    if (!published)
        return;
    CHECK_IS(deltafs_namespace_open(snapshot, O_RDONLY, NULL, &view), DELTAFS_OK);
    tree_check(published, "/", view);
    CHECK_IS(deltafs_namespace_close(view), DELTAFS_OK);
}

/* All have committed. The last snapshot is still what it was; another takes its place. */
static void publish(void)
{
    snprintf(snapshot, sizeof snapshot, "%s.registry@s", path);
    check_snapshot();
    barrier();
    if (rank == 0 && published)
        CHECK_IS(deltafs_snapshot_withdraw(snapshot), DELTAFS_OK);
    if (rank == 0)
        CHECK_IS(deltafs_snapshot_publish(path, snapshot), DELTAFS_OK);
    if (published)
        tree_destroy(published);
    published = tree_copy(root);
    barrier();
}

/* ---- Histories ---- */

/* All look; then, now and then, all commit and publish that, or begin again. */
static void end_round(struct rng *r)
{
    tree_check(root, "/", ns);
    barrier();
    switch (rng_below(r, 4)) {
    case 0:
        CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
        publish();
        break;
    case 1:
        close_ns();
        open_ns(DELTAFS_NAMESPACE_SHARED);
        break;
    default:;
    }
}

static void take_turns(void)
{
    struct rng r = rng_init(1);

    open_ns(DELTAFS_NAMESPACE_SHARED);
    for (unsigned round = 0; round < steps(6); round++) {
        for (unsigned turn = 0; turn < 12; turn++) {
            int who = (int)rng_below(&r, (uint64_t)ranks);
            history_run(&r, 12, "", 0, who == rank ? ns : NULL, root);
            barrier();
        }
        end_round(&r);
    }
    close_ns();
}

/* What rank `k` does in a round, if it is this one; else only the tree gets it. */
static void change_part(unsigned round, int k)
{
    struct rng r = rng_of(1000 + round * 100 + (unsigned)k);
    char below[16];

    snprintf(below, sizeof below, "/p%d", ((int)round + k) % ranks);
    history_run(&r, 100, below, 0, k == rank ? ns : NULL, root);
    if (k == rank)
        tree_check(root, below, ns);
}

static void share_parts(enum deltafs_namespace_mode mode)
{
    struct rng r = rng_init(2);

    open_ns(mode);
    for (int k = 0; k < ranks; k++) {
        char name[16];
        snprintf(name, sizeof name, "/p%d", k);
        if (rank == 0)
            CHECK_IS(deltafs_namespace_mkdir(ns, name, 0700), DELTAFS_OK);
        CHECK_IS(tree_new(root, name, TREE_FOLDER, 0700, NULL), DELTAFS_OK);
    }
    for (unsigned round = 0; round < steps(4); round++) {
        if (mode == DELTAFS_NAMESPACE_PRIVATE) {
            close_ns();
            MPI_Barrier(MPI_COMM_WORLD);
            open_ns(mode);
        } else {
            barrier();
        }
        change_part(round, rank);
        for (int k = 0; k < ranks; k++)
            if (k != rank)
                change_part(round, k);
        if (mode == DELTAFS_NAMESPACE_SHARED) {
            barrier();
            end_round(&r);
        }
    }
    close_ns();
    MPI_Barrier(MPI_COMM_WORLD);
    open_ns(mode);
    tree_check(root, "/", ns);
    close_ns();
}

int main(int argc, char **argv)
{
    const char *way = argc > 2 ? argv[2] : "";

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    path = argv[1];
    root = tree_create();
    if (strcmp(way, "turns") == 0)
        take_turns();
    else
        share_parts(strcmp(way, "parts") == 0 ? DELTAFS_NAMESPACE_SHARED : DELTAFS_NAMESPACE_PRIVATE);
    check_snapshot();
    if (published)
        tree_destroy(published);
    tree_destroy(root);
    MPI_Finalize();
    return 0;
}
