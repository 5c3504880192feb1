/* Snapshots: arguments, namespaces on top that several processes create, collections, and merges of random changes
 * against a tree in memory. deltafs snapshot's test has the rules of merging. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "history.h"
#include "io/lease.h"
#include "namespace/pin.h"
#include "namespace/view.h"
#include "unit_snapshot.h"

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
    CHECK_IS(deltafs_snapshot_publish(path, ":@name"), DELTAFS_ERR_INVALID);
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
    deltafs_namespace *ns;
    pid_t pid[4];
    int ended;

    (void)state;
    new_published("below", "text", "base");
    for (unsigned k = 0; k < 4; k++) {
        pid[k] = fork();
        assert_true(pid[k] >= 0);
        if (pid[k] > 0)
            continue;
        char name[32];
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
    assert_string_equal(list_names(ns, "/"), "0 1 2 3 file");
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
    deltafs_namespace *ns;
    char table[32], copy[64];
    uint8_t *bytes;
    size_t n;

    (void)state;
    new_published("missing", "text", "missing");
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
    remove_leases(path);

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

/* A pin that was begun keeps all as long as the process holds a view, and goes then; without a view it stays. */
static void begun_pins(void **state)
{
    const char *path = unit_path("begun");
    struct deltafs_namespace_collected c = {.struct_size = sizeof c};
    struct pin pin = {.uuid = {1}, .holder = "none@begun"};
    struct io io = io_default();
    struct views views;
    struct error e;

    (void)state;
    close_ns(new_ns("begun"));
    CHECK_IS(views_begin(&views, &io, path, NULL, &e), DELTAFS_OK);
    pin.has_view = views_are_sure(&views);
    CHECK(pin.has_view);
    CHECK_IS(pin_begin(&io, path, &pin, &e), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_ERR_BUSY);
    CHECK_IS(count_pins(path), 1);
    views_end(&views);
    CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_OK);
    CHECK(c.pins == 0 && !c.is_kept);
    CHECK_IS(count_pins(path), 0);
    pin.has_view = 0;
    CHECK_IS(pin_begin(&io, path, &pin, &e), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_OK);
    CHECK(c.pins == 1 && c.is_kept);
    CHECK_IS(count_pins(path), 1);
    CHECK_IS(pin_remove(&io, path, pin.uuid, &e), DELTAFS_OK);
}

/* Two writers at once; each leaves bytes that nothing needs. */
static void write_junk(const char *path, const char *file, size_t size)
{
    deltafs_namespace *ns[2] = {open_ns(path, O_RDWR), open_ns(path, O_RDWR)};
    uint8_t *bytes = calloc(1, size);
    char name[32];

    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 4; k++) {
            snprintf(name, sizeof name, "/junk%d", k);
            put_file(ns[i], name, "junk");
            CHECK_IS(deltafs_namespace_unlink(ns[i], name), DELTAFS_OK);
        }
    for (int i = 0; i < 2 && file; i++) {
        deltafs_namespace_file *f;
        memset(bytes, 'a' + i, size);
        CHECK_IS(deltafs_namespace_file_open(ns[i], file, O_RDWR | O_CREAT, 0600, &f), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_write(f, 0, bytes, size), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
        put_file(ns[i], i ? "/kept1" : "/kept0", "kept");
    }
    free(bytes);
    close_ns(ns[0]);
    close_ns(ns[1]);
}

/* The bytes of the older of two files with one name are removed. A snapshot that is published later has the record of
 * that file, but does not need them; the next collections know. */
static void collected_again(void **state)
{
    static const size_t sizes[] = {10, 600000};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const char *path = unit_path("again%zu", i);
        deltafs_namespace *ns = open_ns(path, O_RDWR | O_CREAT);
        put_file(ns, "/f", "first");
        close_ns(ns);
        write_junk(path, "/f", sizes[i]);
        CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
        publish(path, "again");
        write_junk(path, NULL, 1);
        CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_verify(path, NULL, NULL, NULL), DELTAFS_OK);
        ns = open_ns(named("again"), O_RDONLY);
        CHECK_IS(stat_of(ns, "/f").size, sizes[i]);
        check_file(ns, "/kept0", "kept");
        check_file(ns, "/kept1", "kept");
        close_ns(ns);
        withdraw("again");
    }
}

/* A writer was killed while it created the data of its table: a collection removes that, and the table can be used. */
static void collected_half(void **state)
{
    const char *path = unit_path("half");
    deltafs_namespace *ns = new_ns("half");
    char table[32];

    (void)state;
    CHECK_IS(deltafs_namespace_mkdir(ns, "/folder", 0700), DELTAFS_OK);
    close_ns(ns);
    CHECK_IS(count_tables(path, table), 1);
    CHECK_IS(mkdir(unit_path("half/%s.data", table), 0700), 0);
    CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
    CHECK(!unit_exists(unit_path("half/%s.data", table)));
    ns = open_ns(path, O_RDWR);
    put_file(ns, "/file", "text");
    close_ns(ns);
    CHECK_IS(count_tables(path, table), 1);
}

/* A withdrawal of somebody else that cannot be finished is not an error of the next. */
static void withdrawn_beside(void **state)
{
    const char *path = unit_path("beside"), *other = unit_path("registry/.withdrawn.other");
    deltafs_namespace *ns = new_ns("beside");

    (void)state;
    close_ns(ns);
    publish(path, "beside");
    CHECK_IS(mkdir(other, 0700), 0);
    unit_save(unit_path("registry/.withdrawn.other/SNAPSHOT"), "damaged", 7);
    withdraw("beside");
    CHECK(unit_exists(other));
    unit_remove(other);
}

/* A namespace that is reached by two paths needs one pin for both; its copy is another namespace, with which it cannot
 * be merged. */
static void same_tables(void **state)
{
    const char *path = unit_path("same"), *way = unit_path("way"), *copy = unit_path("copied");
    const char *const two[] = {named("same1"), named("same2")}, *const copied[] = {named("same2"), named("copied")};
    deltafs_namespace *ns;

    (void)state;
    new_published("same", "first", "same1");
    ns = open_ns(path, O_RDWR);
    put_file(ns, "/file", "second");
    close_ns(ns);
    CHECK_IS(symlink("same", way), 0);
    publish(way, "same2");
    CHECK_IS(deltafs_snapshot_merge(2, two, DELTAFS_SNAPSHOT_FIRST, named("both")), DELTAFS_OK);
    unit_copy(path, copy);
    withdraw("same1");
    ns = open_ns(path, O_RDWR);
    CHECK_IS(deltafs_namespace_unlink(ns, "/file"), DELTAFS_OK);
    close_ns(ns);
    CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
    ns = open_view(NULL, O_RDONLY, named("both"), NULL, DELTAFS_SNAPSHOT_NEWEST);
    check_file(ns, "/file", "second");
    close_ns(ns);
    ns = open_ns(copy, O_RDWR);
    put_file(ns, "/other", "other");
    close_ns(ns);
    publish(copy, "copied");
    CHECK_IS(deltafs_snapshot_merge(2, copied, DELTAFS_SNAPSHOT_NEWEST, named("wrong")), DELTAFS_ERR_INVALID);
}

/* Many names that were removed are between those of a folder: a list does not hold them in memory. */
static void removed_between(void **state)
{
    enum { MANY = 40000 };
    static char text[MANY][16];
    static const char *names[MANY];
    const char *const on[] = {named("removed"), named("plain")};
    deltafs_options *o = unit_options("memory", "8M", "threads", "0", NULL);
    deltafs_namespace *ns = new_ns("removed");

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(text[i], sizeof text[i], "%d", i);
        names[i] = text[i];
    }
    CHECK_IS(deltafs_namespace_create_many(ns, "/", names, MANY, 0600), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    for (int i = 1; i < MANY; i++)
        CHECK_IS(deltafs_namespace_unlink(ns, names[i]), DELTAFS_OK);
    close_ns(ns);
    publish(unit_path("removed"), "removed");
    close_ns(new_ns("plain"));
    publish(unit_path("plain"), "plain");
    CHECK_IS(deltafs_namespace_open_view(NULL, O_RDONLY, 2, on, DELTAFS_SNAPSHOT_FIRST, o, &ns), DELTAFS_OK);
    assert_string_equal(list_names(ns, "/"), "0");
    close_ns(ns);
    deltafs_options_destroy(o);
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
        if (k > 0) /* the first asks the layer below, the others have its names themselves */
            CHECK_IS(deltafs_namespace_compact(unit_path("part%u", k), NULL), DELTAFS_OK);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments),       cmocka_unit_test(created_at_once),  cmocka_unit_test(what_is_missing),
        cmocka_unit_test(collected_alone), cmocka_unit_test(begun_pins),       cmocka_unit_test(collected_again),
        cmocka_unit_test(collected_half),  cmocka_unit_test(withdrawn_beside), cmocka_unit_test(same_tables),
        cmocka_unit_test(removed_between), cmocka_unit_test(merged_histories)};

    return cmocka_run_group_tests(tests, setup_unsynced, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
