/* Snapshots: arguments, namespaces on top that several processes create, failing operations, damage, and merges of
 * random changes against a tree in memory. deltafs snapshot's test has the rules of merging. */
#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "history.h"
#include "io/lease.h"
#include "unit_kth.h"
#include "unit_namespace.h"

/* ---- Help ---- */

/* REGISTRY@NAME, in the registry of the test's folder; valid until the teardown. */
static const char *named(const char *name)
{
    return unit_path("registry@%s", name);
}

static deltafs_namespace *open_view(const char *path, int flags, const char *a, const char *b, int policy)
{
    const char *const on[] = {a, b};
    deltafs_options *o = unit_options("memory", "32M", "threads", "0", NULL);
    deltafs_namespace *ns = NULL;

    CHECK_IS(deltafs_namespace_open_view(path, flags, b ? 2 : 1, on, policy, o, &ns), DELTAFS_OK);
    deltafs_options_destroy(o);
    return ns;
}

static void publish(const char *path, const char *name)
{
    CHECK_IS(deltafs_snapshot_publish(path, named(name)), DELTAFS_OK);
}

static void withdraw(const char *name)
{
    CHECK_IS(deltafs_snapshot_withdraw(named(name)), DELTAFS_OK);
}

static unsigned count_names(const char *path, const char *begin)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    unsigned n = 0;

    assert_non_null(d);
    while ((e = readdir(d)))
        n += strncmp(e->d_name, begin, strlen(begin)) == 0;
    closedir(d);
    return n;
}

static unsigned count_pins(const char *path)
{
    return count_names(path, "PIN.");
}

/* How many paths of a list begin so; each must, and a list is closed. */
static unsigned count_paths(deltafs_snapshot_paths *paths, const char *begin)
{
    const char *path;
    unsigned n = 0;

    while (deltafs_snapshot_paths_next(paths, &path) == DELTAFS_OK && path) {
        if (strncmp(path, begin, strlen(begin)) != 0)
            fail_msg("%s does not begin with %s", path, begin);
        n++;
    }
    CHECK_IS(deltafs_snapshot_paths_close(paths), DELTAFS_OK);
    return n;
}

/* ---- Arguments ---- */

static void arguments(void **state)
{
    const char *const one[] = {named("args")};
    const char *path = unit_path("args");
    struct deltafs_snapshot_stat stat = {.struct_size = sizeof stat};
    struct deltafs_snapshot_layer layer = {.struct_size = sizeof layer};
    deltafs_snapshot *s = NULL;
    deltafs_snapshot_list *list = NULL;
    deltafs_snapshot_paths *paths = NULL;
    deltafs_namespace *ns = new_ns("args");

    (void)state;
    put_file(ns, "/file", "text");
    close_ns(ns);
    CHECK_IS(deltafs_snapshot_publish(NULL, one[0]), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_snapshot_publish(path, NULL), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_snapshot_publish(path, "no-at"), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_snapshot_publish(path, "reg@"), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_snapshot_publish(path, "reg@.hidden"), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_snapshot_publish(path, "@name"), DELTAFS_ERR_INVALID);
    CHECK_IS(count_pins(path), 0);
    publish(path, "args");
    CHECK_IS(count_pins(path), 1);
    CHECK_IS(deltafs_snapshot_publish(path, one[0]), DELTAFS_ERR_EXISTS);
    CHECK_IS(count_pins(path), 1);

    CHECK_IS(deltafs_snapshot_open(NULL, &s), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_snapshot_open(named("none"), &s), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_snapshot_open(one[0], &s), DELTAFS_OK);
    CHECK_IS(deltafs_snapshot_stat(s, NULL), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_snapshot_stat(s, &stat), DELTAFS_OK);
    CHECK(stat.layers == 1 && strlen(stat.uuid) == 36);
    assert_string_equal(stat.path, unit_path("registry/args"));
    CHECK_IS(deltafs_snapshot_layer(s, 1, &layer), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_snapshot_layer(s, 0, &layer), DELTAFS_OK);
    CHECK(layer.tables == 1 && layer.inputs == 0);
    assert_string_equal(layer.path, path);
    CHECK_IS(deltafs_snapshot_close(s), DELTAFS_OK);

    CHECK_IS(deltafs_snapshot_list_open(unit_path("none"), &list), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_snapshot_list_open(NULL, &list), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_snapshot_merge(1, one, 4, named("x")), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_snapshot_merge(0, one, 0, named("x")), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_snapshot_diff_open(one[0], NULL, &paths), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_snapshot_conflicts_open(0, one, &paths), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_namespace_open_view(NULL, O_RDWR | O_CREAT, 1, one, 0, NULL, &ns), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_namespace_open_view(path, O_RDONLY, 1, one, 0, NULL, &ns), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_namespace_open_view(NULL, O_RDONLY, 1, one, -1, NULL, &ns), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_namespace_open_view(path, O_RDWR | O_CREAT, 1, one, 0, NULL, &ns), DELTAFS_ERR_EXISTS);
    CHECK_IS(count_pins(path), 1);
    CHECK_IS(deltafs_namespace_open(one[0], O_RDWR, NULL, &ns), DELTAFS_ERR_MODE);
    ns = open_ns(one[0], O_RDONLY);
    CHECK_IS(deltafs_namespace_mkdir(ns, "/new", 0700), DELTAFS_ERR_MODE);
    close_ns(ns);
    CHECK_IS(deltafs_namespace_collect(NULL, NULL), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
    ns = open_ns(path, O_RDWR);
    CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_ERR_BUSY);
    close_ns(ns);
    withdraw("args");
    CHECK_IS(deltafs_snapshot_withdraw(one[0]), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(count_pins(path), 0);
}

/* ---- Namespaces on top ---- */

/* Processes that create the same namespace on the same snapshot have one; on another it is refused. */
static void created_at_once(void **state)
{
    const char *below = unit_path("below"), *path = unit_path("above");
    const char *const other[] = {named("other")};
    deltafs_namespace *ns = new_ns("below");
    pid_t pid[4];
    int ended;

    (void)state;
    put_file(ns, "/file", "text");
    close_ns(ns);
    publish(below, "base");
    for (unsigned k = 0; k < 4; k++) {
        pid[k] = fork();
        assert_true(pid[k] >= 0);
        if (pid[k] > 0)
            continue;
        char name[16];
        snprintf(name, sizeof name, "/%u", k);
        ns = open_view(path, O_RDWR | O_CREAT, named("base"), NULL, DELTAFS_SNAPSHOT_NEWEST);
        put_file(ns, name, "own");
        check_file(ns, "/file", "text");
        close_ns(ns);
        _exit(0);
    }
    for (unsigned k = 0; k < 4; k++) {
        assert_true(waitpid(pid[k], &ended, 0) == pid[k]);
        CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    }
    CHECK_IS(count_pins(below), 2);
    ns = open_ns(path, O_RDWR);
    assert_string_equal(names_in(ns, "/"), "0 1 2 3 file");
    close_ns(ns);
    ns = open_ns(below, O_RDWR);
    put_file(ns, "/later", "text");
    close_ns(ns);
    publish(below, "other");
    CHECK_IS(deltafs_namespace_open_view(path, O_RDWR | O_CREAT, 1, other, 0, NULL, &ns), DELTAFS_ERR_EXISTS);
    CHECK_IS(count_pins(below), 3);
    withdraw("base");
    withdraw("other");
    ns = open_ns(path, O_RDONLY);
    check_file(ns, "/file", "text");
    close_ns(ns);
}

/* What a snapshot needs must be there, and be what it was. */
static void what_is_missing(void **state)
{
    const char *path = unit_path("missing"), *moved = unit_path("moved");
    const char *text = unit_path("registry/missing/SNAPSHOT");
    deltafs_namespace *ns = new_ns("missing");
    char table[32], copy[64];
    uint8_t *bytes;
    size_t n;

    (void)state;
    put_file(ns, "/file", "text");
    close_ns(ns);
    publish(path, "missing");
    CHECK_IS(rename(path, moved), 0);
    CHECK_IS(try_open(named("missing"), O_RDONLY, "32M", &ns), DELTAFS_ERR_NOT_FOUND);
    close_ns(new_ns("missing"));
    CHECK_IS(try_open(named("missing"), O_RDONLY, "32M", &ns), DELTAFS_ERR_NOT_FOUND);
    unit_remove(path);
    CHECK_IS(rename(moved, path), 0);
    CHECK_IS(count_tables(path, table), 1);
    snprintf(copy, sizeof copy, "missing/x%s", table);
    CHECK_IS(rename(unit_path("missing/%s", table), unit_path("%s", copy)), 0);
    CHECK(try_open(named("missing"), O_RDONLY, "32M", &ns) != DELTAFS_OK);
    CHECK_IS(rename(unit_path("%s", copy), unit_path("missing/%s", table)), 0);
    close_ns(open_ns(named("missing"), O_RDONLY));

    bytes = unit_load(text, &n);
    unit_poke(text, n / 2, (uint8_t)(bytes[n / 2] ^ 1));
    CHECK_IS(try_open(named("missing"), O_RDONLY, "32M", &ns), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_snapshot_withdraw(named("missing")), DELTAFS_ERR_DAMAGED);
    unit_save(text, bytes, n);
    free(bytes);
    withdraw("missing");
}

/* While a namespace is collected, nobody writes to it or publishes it; while somebody writes, it is not collected. */
static void collected_alone(void **state)
{
    const char *path = unit_path("alone");
    struct deltafs_namespace_collected c = {.struct_size = sizeof c};
    struct io io = io_default();
    struct lease lease;
    struct error e;
    deltafs_namespace *ns = new_ns("alone"), *reader;

    (void)state;
    put_file(ns, "/file", "text");
    put_file(ns, "/gone", "text");
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_ERR_BUSY);
    reader = open_ns(path, O_RDONLY);
    CHECK_IS(deltafs_namespace_unlink(ns, "/gone"), DELTAFS_OK);
    close_ns(ns);

    CHECK_IS(lease_take(&lease, &io, path, 1000, 0, &e), DELTAFS_OK);
    CHECK_IS(try_open(path, O_RDWR, "32M", &ns), DELTAFS_ERR_BUSY);
    CHECK_IS(deltafs_snapshot_publish(path, named("alone")), DELTAFS_ERR_BUSY);
    CHECK_IS(count_pins(path), 0);
    CHECK_IS(lease_drop(&lease, &e), DELTAFS_OK);
    publish(path, "alone");
    CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_OK);
    CHECK(c.pins == 1 && !c.is_kept && c.bytes_before > c.bytes_after && c.bytes_after > 0);
    /* A reader that has not read from the data yet, and one that has. */
    check_file(reader, "/file", "text");
    ns = open_ns(path, O_RDWR);
    put_file(ns, "/more", "text");
    CHECK_IS(deltafs_namespace_unlink(ns, "/more"), DELTAFS_OK);
    close_ns(ns);
    CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_OK);
    check_file(reader, "/file", "text");
    close_ns(reader);
    withdraw("alone");
}

/* ---- Failing operations ---- */

static int publish_kth(const char *path)
{
    return deltafs_snapshot_publish(path, named("kth"));
}

static int withdraw_kth(const char *path)
{
    (void)path;
    return deltafs_snapshot_withdraw(named("kth"));
}

static int merge_kth(const char *path)
{
    const char *const inputs[] = {named("one"), named("two")};

    (void)path;
    return deltafs_snapshot_merge(2, inputs, DELTAFS_SNAPSHOT_ERROR, named("kth"));
}

static int view_kth(const char *path)
{
    const char *const inputs[] = {named("one"), named("two")};
    deltafs_namespace *ns = NULL;
    deltafs_options *o = unit_options("memory", "32M", "threads", "0", NULL);
    int status = deltafs_namespace_open_view(unit_path("view"), O_RDWR | O_CREAT | O_EXCL, 2, inputs,
                                             DELTAFS_SNAPSHOT_FIRST, o, &ns);

    (void)path;
    deltafs_options_destroy(o);
    if (status == DELTAFS_OK)
        deltafs_namespace_close(ns);
    return status;
}

static int collect_kth(const char *path)
{
    return deltafs_namespace_collect(path, NULL);
}

static int compact_kth(const char *path)
{
    return deltafs_namespace_compact(path, NULL);
}

static int exists(const char *name)
{
    deltafs_snapshot *s = NULL;
    int status = deltafs_snapshot_open(name, &s);

    CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND);
    deltafs_snapshot_close(s);
    return status == DELTAFS_OK;
}

/* A call whose k-th operation fails, for every k, and then once without a failure. `path` has two snapshots. After each
 * the namespace, the snapshots and their pins are sound. */
static void fail_each(const char *path, int (*call)(const char *path), int is_withdrawal)
{
    unsigned pins = 2;
    int has_failed = 1;

    for (uint64_t k = 0; has_failed; k++) {
        if (is_withdrawal)
            publish(path, "kth");
        unit_kth_begin_default(k, EIO);
        unit_kth_count(1);
        int status = call(path);
        unit_kth_count(0);
        has_failed = unit_kth_end();
        CHECK(has_failed || status == DELTAFS_OK);
        deltafs_namespace *ns = open_ns(path, O_RDONLY);
        check_file(ns, "/file", "new");
        close_ns(ns);
        ns = open_ns(named("one"), O_RDONLY);
        check_file(ns, "/file", "text");
        check_file(ns, "/gone", "gone");
        close_ns(ns);
        if (exists(named("kth"))) {
            ns = open_ns(named("kth"), O_RDONLY);
            check_file(ns, "/file", "new");
            close_ns(ns);
            CHECK_IS(count_pins(path), 3);
            withdraw("kth");
        } else if (is_withdrawal) {
            publish(path, "kth");
            withdraw("kth"); /* finishes the other */
        }
        /* A namespace on top that was created has a pin, also if something failed later. */
        if (unit_exists(unit_path("view"))) {
            unit_remove(unit_path("view"));
            pins++;
        }
        CHECK_IS(count_pins(path), pins);
    }
}

static void every_operation_fails(void **state)
{
    const char *path = unit_path("each");
    deltafs_namespace *ns = new_ns("each");

    (void)state;
    put_file(ns, "/file", "text");
    put_file(ns, "/gone", "gone");
    close_ns(ns);
    publish(path, "one");
    ns = open_ns(path, O_RDWR);
    put_file(ns, "/file", "new");
    CHECK_IS(deltafs_namespace_unlink(ns, "/gone"), DELTAFS_OK);
    put_file(ns, "/waste", "waste");
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_unlink(ns, "/waste"), DELTAFS_OK);
    close_ns(ns);
    publish(path, "two");
    fail_each(path, publish_kth, 0);
    fail_each(path, withdraw_kth, 1);
    fail_each(path, merge_kth, 0);
    fail_each(path, compact_kth, 0);
    fail_each(path, collect_kth, 0);
    fail_each(path, view_kth, 0);
}

/* ---- Merges against a tree ---- */

#define PARTS 3

/* Each of several namespaces on the same snapshot changes a part of the tree. A merge by any policy has all changes,
 * nothing is in conflict, and each differs from the snapshot in its part only. */
static void merged_histories(void **state)
{
    struct rng r = rng_init(7);
    struct tree *root = tree_create(), *base = tree_create();
    deltafs_namespace *ns = new_ns("history");
    const char *const inputs[] = {named("part0"), named("part1"), named("part2")};
    deltafs_snapshot_paths *paths;
    char below[16];

    (void)state;
    for (unsigned k = 0; k < PARTS; k++) {
        snprintf(below, sizeof below, "/p%u", k);
        CHECK_IS(deltafs_namespace_mkdir(ns, below, 0700), DELTAFS_OK);
        CHECK_IS(tree_new(root, below, TREE_FOLDER, 0700, NULL), DELTAFS_OK);
        CHECK_IS(tree_new(base, below, TREE_FOLDER, 0700, NULL), DELTAFS_OK);
        struct rng again = r;
        history_run(&again, 150, below, 1, NULL, base);
        history_run(&r, 150, below, 1, ns, root);
    }
    close_ns(ns);
    publish(unit_path("history"), "base0");
    for (unsigned k = 0; k < PARTS; k++) {
        snprintf(below, sizeof below, "/p%u", k);
        ns = open_view(unit_path("part%u", k), O_RDWR | O_CREAT, named("base0"), NULL, DELTAFS_SNAPSHOT_NEWEST);
        tree_check(base, "/", ns);
        history_run(&r, 200, below, 1, ns, root);
        tree_check(root, below, ns);
        close_ns(ns);
        CHECK_IS(deltafs_snapshot_publish(unit_path("part%u", k), inputs[k]), DELTAFS_OK);
        CHECK_IS(deltafs_snapshot_diff_open(named("base0"), inputs[k], &paths), DELTAFS_OK);
        CHECK(count_paths(paths, below) > 0);
        ns = open_ns(unit_path("history"), O_RDONLY);
        tree_check(base, "/", ns);
        close_ns(ns);
    }
    CHECK_IS(deltafs_snapshot_conflicts_open(PARTS, inputs, &paths), DELTAFS_OK);
    CHECK_IS(count_paths(paths, "/nothing"), 0);
    for (int policy = DELTAFS_SNAPSHOT_NEWEST; policy <= DELTAFS_SNAPSHOT_ERROR; policy++) {
        char name[32];
        snprintf(name, sizeof name, "merge%d", policy);
        CHECK_IS(deltafs_snapshot_merge(PARTS, inputs, policy, named(name)), DELTAFS_OK);
        ns = open_ns(named(name), O_RDONLY);
        tree_check(root, "/", ns);
        close_ns(ns);
    }
    /* And on top of a merge, as in any namespace. */
    ns = open_view(unit_path("top"), O_RDWR | O_CREAT, named("merge1"), named("merge2"), DELTAFS_SNAPSHOT_LAST);
    for (unsigned i = 0; i < 3; i++) {
        history_run(&r, 200, "", 1, ns, root);
        tree_check(root, "/", ns);
        close_ns(ns);
        ns = open_ns(unit_path("top"), O_RDWR);
        tree_check(root, "/", ns);
    }
    close_ns(ns);
    for (unsigned k = 0; k < PARTS; k++)
        CHECK_IS(deltafs_namespace_collect(unit_path("part%u", k), NULL), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_collect(unit_path("history"), NULL), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_collect(unit_path("top"), NULL), DELTAFS_OK);
    ns = open_ns(unit_path("top"), O_RDONLY);
    tree_check(root, "/", ns);
    close_ns(ns);
    ns = open_ns(named("base0"), O_RDONLY);
    tree_check(base, "/", ns);
    close_ns(ns);
    tree_destroy(root);
    tree_destroy(base);
}

static int setup(void **state)
{
    int rc = unit_setup(state);

    setenv("DELTAFS_SYNC", "none", 1);
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments),       cmocka_unit_test(created_at_once),       cmocka_unit_test(what_is_missing),
        cmocka_unit_test(collected_alone), cmocka_unit_test(every_operation_fails), cmocka_unit_test(merged_histories)};

    return cmocka_run_group_tests(tests, setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
