/* Namespaces against a tree in memory: random histories by one writer, with commits, reopens and crashes, and by
 * several processes at the same time, or in turns; with compactions meanwhile, collections, and snapshots that come and
 * go. UNIT_STEPS=N in the environment makes them N times as long. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "history.h"
#include "unit_namespace.h"

static unsigned steps(unsigned n)
{
    const char *times = getenv("UNIT_STEPS");

    return times ? n * (unsigned)strtoul(times, NULL, 10) : n;
}

static deltafs_namespace *open_threaded(const char *path, int flags)
{
    deltafs_options *o = unit_options("memory", "32M", "threads", "1", NULL);
    deltafs_namespace *ns;

    CHECK_IS(deltafs_namespace_open(path, flags, o, &ns), DELTAFS_OK);
    deltafs_options_destroy(o);
    return ns;
}

/* What a reader sees that opens it now. */
static void check_reader(const char *path, struct tree *root)
{
    deltafs_namespace *ns = open_threaded(path, O_RDONLY);

    tree_check(root, "/", ns);
    close_ns(ns);
}

static void compact(const char *path)
{
    CHECK_IS(deltafs_namespace_compact(path, NULL), DELTAFS_OK);
}

static void collect(const char *path, struct tree *root)
{
    CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
    check_reader(path, root);
}

/* ---- Snapshots ---- */

#define SNAPSHOTS 3

/* Of one namespace; what each has, NULL: it is withdrawn. */
struct snapshots {
    const char *path;
    struct tree *root[SNAPSHOTS];
};

static const char *name_of(const struct snapshots *s, size_t i)
{
    return unit_path("registry@%s%zu", strrchr(s->path, '/') + 1, i);
}

static void publish(struct snapshots *s, size_t i, const struct tree *root)
{
    CHECK_IS(deltafs_snapshot_publish(s->path, name_of(s, i)), DELTAFS_OK);
    s->root[i] = tree_copy(root);
}

static void withdraw(struct snapshots *s, size_t i)
{
    if (s->root[i]) {
        CHECK_IS(deltafs_snapshot_withdraw(name_of(s, i)), DELTAFS_OK);
        tree_destroy(s->root[i]);
        s->root[i] = NULL;
    }
}

/* What is committed is the tree. */
static void publish_or_withdraw(struct rng *r, struct snapshots *s, const struct tree *root)
{
    size_t i = (size_t)rng_below(r, SNAPSHOTS);

    if (s->root[i])
        withdraw(s, i);
    else
        publish(s, i, root);
}

static void check_snapshots(const struct snapshots *s)
{
    for (size_t i = 0; i < SNAPSHOTS; i++)
        if (s->root[i])
            check_reader(name_of(s, i), s->root[i]);
}

static void snapshots_end(struct snapshots *s)
{
    check_snapshots(s);
    for (size_t i = 0; i < SNAPSHOTS; i++)
        withdraw(s, i);
}

/* ---- One writer ---- */

/* A process is killed when it has committed, and then changed more. */
static void crash(struct rng *r, const char *path, struct tree *root)
{
    struct rng same = *r;
    pid_t pid = fork();
    int ended;

    assert_true(pid >= 0);
    if (pid == 0) {
        deltafs_namespace *ns = open_threaded(path, O_RDWR);
        history_run(&same, 100, "", 1, ns, root);
        CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
        history_run(&same, 50, "", 0, ns, root);
        kill(getpid(), SIGKILL);
    }
    assert_true(waitpid(pid, &ended, 0) == pid);
    CHECK(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
    history_run(r, 100, "", 1, NULL, root);
    check_reader(path, root);
}

/* Without journals, each commit is an epoch. */
static void write_alone(const char *name, int has_journals, struct rng r, unsigned rounds)
{
    const char *path = unit_path("%s", name);
    struct snapshots snapshots = {.path = path};
    struct tree *root = tree_create();
    deltafs_namespace *ns = has_journals ? new_ns(name) : new_ns_without_journals(name);

    close_ns(ns);
    ns = open_threaded(path, O_RDWR);
    for (unsigned i = 0; i < rounds; i++) {
        history_run(&r, 200, "", 1, ns, root);
        tree_check(root, "/", ns);
        if (rng_below(&r, 3) == 0) {
            CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
            check_reader(path, root);
        }
        if (rng_below(&r, has_journals ? 3 : 20) == 0)
            compact(path);
        if (rng_below(&r, 3) == 0)
            continue;
        close_ns(ns);
        check_reader(path, root);
        if (rng_below(&r, 3) == 0)
            crash(&r, path, root);
        if (rng_below(&r, 2) == 0)
            publish_or_withdraw(&r, &snapshots, root);
        if (rng_below(&r, 4) == 0)
            collect(path, root);
        check_snapshots(&snapshots);
        ns = open_threaded(path, O_RDWR);
    }
    close_ns(ns);
    snapshots_end(&snapshots);
    tree_destroy(root);
}

static void one_writer(void **state)
{
    (void)state;
    write_alone("one", 1, rng_init(1), steps(30));
    write_alone("epochs", 0, rng_of(2), steps(20));
}

#define WRITERS 4

/* What writer `k` does in a round: to a part of the tree that another writer had before. */
static void write_part(unsigned round, unsigned k, deltafs_namespace *ns, struct tree *root)
{
    struct rng r = rng_of(1000 + round * WRITERS + k);
    char below[16];

    snprintf(below, sizeof below, "/p%u", (round + k) % WRITERS);
    history_run(&r, 150, below, 1, ns, root);
    if (ns)
        tree_check(root, below, ns);
}

static void child(const char *path, unsigned round, unsigned k, struct tree *root)
{
    deltafs_namespace *ns = open_threaded(path, O_RDWR);

    write_part(round, k, ns, root);
    if (rng_below(&(struct rng){round * WRITERS + k}, 3) > 0)
        close_ns(ns);
    else
        CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    kill(getpid(), SIGKILL);
}

static void several_writers(void **state)
{
    const char *path = unit_path("several");
    struct snapshots snapshots = {.path = path};
    struct rng r = rng_init(3);
    struct tree *root = tree_create();
    deltafs_namespace *ns = open_threaded(path, O_RDWR | O_CREAT);
    deltafs_namespace *reader = NULL;
    pid_t pid[WRITERS];
    int ended;

    (void)state;
    for (unsigned k = 0; k < WRITERS; k++) {
        char name[16];
        snprintf(name, sizeof name, "/p%u", k);
        CHECK_IS(deltafs_namespace_mkdir(ns, name, 0700), DELTAFS_OK);
        CHECK_IS(tree_new(root, name, TREE_FOLDER, 0700, NULL), DELTAFS_OK);
    }
    close_ns(ns);
    for (unsigned round = 0; round < steps(6); round++) {
        if (!reader)
            reader = open_threaded(path, O_RDONLY);
        for (unsigned k = 0; k < WRITERS; k++) {
            pid[k] = fork();
            assert_true(pid[k] >= 0);
            if (pid[k] == 0)
                child(path, round, k, root);
        }
        compact(path); /* while they write */
        for (unsigned k = 0; k < WRITERS; k++) {
            assert_true(waitpid(pid[k], &ended, 0) == pid[k]);
            CHECK(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
            write_part(round, k, NULL, root);
        }
        check_reader(path, root);
        CHECK_IS(deltafs_namespace_refresh(reader), DELTAFS_OK);
        tree_check(root, "/", reader);
        publish_or_withdraw(&r, &snapshots, root);
        if (round % 2 == 0)
            compact(path);
        if (round % 4 == 1) {
            close_ns(reader);
            reader = NULL;
            collect(path, root);
        }
        check_snapshots(&snapshots);
    }
    close_ns(reader);
    snapshots_end(&snapshots);
    tree_destroy(root);
}

/* ---- Several that are open ---- */

static void refresh(deltafs_namespace *ns, struct tree *root)
{
    CHECK_IS(deltafs_namespace_refresh(ns), DELTAFS_OK);
    tree_check(root, "/", ns);
}

/* Writers take turns: each sees after a refresh what all others have done, and goes on from there. So does a reader
 * that refreshes seldom. */
static void take_turns(const char *name, int has_journals, struct rng r, unsigned turns)
{
    const char *path = unit_path("%s", name);
    struct tree *root = tree_create();
    deltafs_namespace *writer[WRITERS], *reader;

    close_ns(has_journals ? new_ns(name) : new_ns_without_journals(name));
    reader = open_threaded(path, O_RDONLY);
    for (unsigned k = 0; k < WRITERS; k++)
        writer[k] = open_threaded(path, O_RDWR);
    for (unsigned i = 0; i < turns; i++) {
        unsigned k = (unsigned)rng_below(&r, WRITERS);
        refresh(writer[k], root);
        history_run(&r, 1 + (unsigned)rng_below(&r, 30), "", 1, writer[k], root);
        CHECK_IS(deltafs_namespace_commit(writer[k]), DELTAFS_OK);
        tree_check(root, "/", writer[k]);
        if (rng_below(&r, 8) == 0)
            refresh(reader, root);
        if (rng_below(&r, 20) == 0)
            compact(path);
        if (rng_below(&r, 10) == 0) {
            close_ns(writer[k]);
            check_reader(path, root);
            writer[k] = open_threaded(path, O_RDWR);
        }
    }
    refresh(reader, root);
    close_ns(reader);
    for (unsigned k = 0; k < WRITERS; k++)
        close_ns(writer[k]);
    tree_destroy(root);
}

static void refreshed_writers(void **state)
{
    (void)state;
    take_turns("turns", 1, rng_init(7), steps(100));
    take_turns("turns0", 0, rng_of(8), steps(60));
}

/* ---- Namespaces on top of each other ---- */

#define LEVELS 6

static const char *level_path(unsigned level)
{
    return unit_path("level%u", level);
}

static const char *level_snapshot(unsigned level)
{
    return unit_path("registry@level%u", level);
}

static deltafs_namespace *open_level(unsigned level)
{
    const char *const below[] = {level > 0 ? level_snapshot(level - 1) : NULL};
    deltafs_options *o = unit_options("memory", "32M", "threads", "1", NULL);
    deltafs_namespace *ns;

    if (level == 0)
        CHECK_IS(deltafs_namespace_open(level_path(0), O_RDWR | O_CREAT | O_EXCL, o, &ns), DELTAFS_OK);
    else
        CHECK_IS(deltafs_namespace_open_view(level_path(level), O_RDWR | O_CREAT | O_EXCL, 1, below,
                                             DELTAFS_SNAPSHOT_NEWEST, o, &ns),
                 DELTAFS_OK);
    deltafs_options_destroy(o);
    return ns;
}

/* Each goes on from the snapshot of the one before. Any of them is compacted and collected at any time, which changes
 * neither it, nor what is on top of it, nor a snapshot. */
static void levels(void **state)
{
    struct rng r = rng_init(5);

    (void)state;
    for (unsigned round = 0; round < steps(2); round++) {
        struct tree *root = tree_create(), *published[LEVELS];
        for (unsigned level = 0; level < LEVELS; level++) {
            deltafs_namespace *ns = open_level(level);
            for (unsigned i = 0; i < 4; i++) {
                tree_check(root, "/", ns);
                history_run(&r, 60, "", 1, ns, root);
                if (rng_below(&r, 2) == 0) {
                    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
                    if (rng_below(&r, 2) == 0)
                        compact(level_path(level));
                    check_reader(level_path(level), root);
                }
                if (rng_below(&r, 2) == 0) {
                    close_ns(ns);
                    ns = open_ns(level_path(level), O_RDWR);
                }
            }
            close_ns(ns);
            if (rng_below(&r, 2) == 0)
                compact(level_path(level));
            CHECK_IS(deltafs_snapshot_publish(level_path(level), level_snapshot(level)), DELTAFS_OK);
            published[level] = tree_copy(root);
            unsigned any = (unsigned)rng_below(&r, level + 1);
            compact(level_path(any));
            collect(level_path(any), published[any]);
            for (unsigned k = 0; k <= level; k++)
                check_reader(level_snapshot(k), published[k]);
        }
        for (unsigned level = LEVELS; level-- > 0;) {
            CHECK_IS(deltafs_snapshot_withdraw(level_snapshot(level)), DELTAFS_OK);
            compact(level_path(level));
            collect(level_path(level), published[level]);
            unit_remove(level_path(level));
            tree_destroy(published[level]);
        }
        tree_destroy(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_writer), cmocka_unit_test(several_writers),
                                       cmocka_unit_test(refreshed_writers), cmocka_unit_test(levels)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
