/* Compaction of namespaces: each entry is then in one table, snapshots keep what they have, and tables that nothing
 * needs are removed. test_namespace_model compacts while others write; test_snapshot lets every operation fail. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "io/lease.h"
#include "namespace/all_records.h"
#include "unit_namespace.h"

#define WRITERS 3

static const char *named(const char *name)
{
    return unit_path("registry@%s", name);
}

static struct deltafs_namespace_compacted compact(const char *path)
{
    struct deltafs_namespace_compacted c = {.struct_size = sizeof c};

    CHECK_IS(deltafs_namespace_compact(path, &c), DELTAFS_OK);
    return c;
}

static struct deltafs_namespace_collected collect(const char *path)
{
    struct deltafs_namespace_collected c = {.struct_size = sizeof c};

    CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_OK);
    return c;
}

static uint64_t conflicts(const char *a, const char *b)
{
    const char *const both[] = {named(a), named(b)};
    deltafs_snapshot_paths *paths;
    const char *path = "";
    uint64_t n = 0;

    CHECK_IS(deltafs_snapshot_conflicts_open(2, both, &paths), DELTAFS_OK);
    for (; path; n += path != NULL)
        CHECK_IS(deltafs_snapshot_paths_next(paths, &path), DELTAFS_OK);
    deltafs_snapshot_paths_close(paths);
    return n;
}

/* How many records a reader finds; no entry is in two of them. */
static uint64_t count_records(const char *path)
{
    static const struct layers none = {0};
    struct io io = io_default();
    struct tables t;
    struct all_records a;
    struct error e;
    uint64_t n = 0;

    CHECK_IS(tables_init(&t, &io, path, 0, &none, NULL, &e), DELTAFS_OK);
    CHECK_IS(all_records_open(&a, &t, &e), DELTAFS_OK);
    for (;;) {
        CHECK_IS(all_records_next(&a, &e), DELTAFS_OK);
        if (a.versions == 0)
            break;
        for (size_t i = 0; i < a.versions; i++)
            for (size_t k = 0; k < i; k++)
                CHECK(!version_is_same_entry(&a.version[i], &a.version[k]));
        n += a.versions;
    }
    all_records_close(&a);
    tables_fini(&t);
    return n;
}

/* By several writers, each with a table: a file that each changes, some of its own, and one that is removed. */
#define ENTRIES 8 /* all, gone, folder, link, w1, w2, and two in the folder */
static void fill(const char *path)
{
    deltafs_namespace *ns[WRITERS];
    char name[32];

    for (int k = 0; k < WRITERS; k++)
        ns[k] = open_ns(path, O_RDWR);
    put_file(ns[0], "/all", "0");
    put_file(ns[0], "/gone", "gone");
    CHECK_IS(deltafs_namespace_mkdir(ns[0], "/folder", 0755), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_symlink(ns[0], "folder", "/link"), DELTAFS_OK);
    close_ns(ns[0]);
    for (int k = 1; k < WRITERS; k++) {
        snprintf(name, sizeof name, "/w%d", k);
        put_file(ns[k], name, name);
        close_ns(ns[k]);
        ns[k] = open_ns(path, O_RDWR);
        snprintf(name, sizeof name, "%d", k);
        put_file(ns[k], "/all", name);
        snprintf(name, sizeof name, "/folder/%d", k);
        put_file(ns[k], name, name);
        close_ns(ns[k]);
    }
    ns[0] = open_ns(path, O_RDWR);
    CHECK_IS(deltafs_namespace_unlink(ns[0], "/gone"), DELTAFS_OK);
    close_ns(ns[0]);
    make_epochs(path);
}

static void check_filled(deltafs_namespace *ns)
{
    check_file(ns, "/all", "2");
    check_file(ns, "/link/1", "/folder/1");
    check_file(ns, "/folder/2", "/folder/2");
    CHECK(!has(ns, "/gone"));
    assert_string_equal(list_names(ns, "/"), "all folder link w1 w2");
    assert_string_equal(list_names(ns, "/folder"), "1 2");
}

static void check_path(const char *path)
{
    deltafs_namespace *ns = open_ns(path, O_RDONLY);

    check_filled(ns);
    close_ns(ns);
}

static int is_there(const char *path, const char *table, const char *suffix)
{
    struct stat st;
    char name[4096];

    snprintf(name, sizeof name, "%s/%s%s", path, table, suffix);
    return stat(name, &st) == 0;
}

static void in_one_table(void **state)
{
    const char *path = unit_path("one");
    struct deltafs_namespace_compacted c;
    char first[32], name[32];

    (void)state;
    close_ns(new_ns("one"));
    c = compact(path);
    CHECK(c.tables == 0 && c.records == 0 && c.entries == 0);
    fill(path);
    count_tables(path, first);
    c = compact(path);
    CHECK(c.tables > 1 && c.records > c.entries);
    CHECK_IS(c.entries, ENTRIES);
    CHECK_IS(count_records(path), ENTRIES);
    check_path(path);
    c = compact(path);
    CHECK_IS(c.tables, 0);
    collect(path);
    CHECK_IS(count_tables(path, name), 1);
    CHECK(!is_there(path, first, ""));
    check_path(path);

    /* On: writers begin with what was compacted, in that table or in others. */
    deltafs_namespace *ns = open_ns(path, O_RDWR);
    check_filled(ns);
    put_file(ns, "/all", "on");
    CHECK_IS(deltafs_namespace_rename(ns, "/folder", "/other"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    c = compact(path);
    CHECK(c.records > ENTRIES && c.entries == ENTRIES + 1);
    /* The writer has the old table, and goes on there. */
    put_file(ns, "/later", "later");
    check_file(ns, "/other/1", "/folder/1");
    close_ns(ns);
    CHECK_IS(count_records(path), ENTRIES + 2);
    ns = open_ns(path, O_RDONLY);
    assert_string_equal(list_names(ns, "/"), "all later link other w1 w2");
    check_file(ns, "/all", "on");
    check_file(ns, "/later", "later");
    close_ns(ns);
    CHECK_IS(compact(path).entries, ENTRIES + 2);
}

/* A snapshot of before, and one of after, while the tables are removed one after the other. */
static void snapshots_stay(void **state)
{
    const char *path = unit_path("snap"), *const before[] = {named("before")};
    const char *const both[] = {named("mine"), named("after")};
    unsigned tables;
    char name[32];
    deltafs_namespace *ns;

    (void)state;
    close_ns(new_ns("snap"));
    fill(path);
    tables = count_tables(path, name);
    CHECK_IS(deltafs_snapshot_publish(path, named("before")), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_open_view(unit_path("on"), O_RDWR | O_CREAT, 1, before, 0, NULL, &ns), DELTAFS_OK);
    check_filled(ns);
    put_file(ns, "/folder/1", "mine");
    put_file(ns, "/w1", "mine");
    put_file(ns, "/w2", "mine");
    close_ns(ns);
    CHECK_IS(deltafs_snapshot_publish(unit_path("on"), named("mine")), DELTAFS_OK);
    ns = open_ns(path, O_RDWR);
    put_file(ns, "/folder/2", "after");
    close_ns(ns);
    compact(path);
    CHECK_IS(deltafs_snapshot_publish(path, named("after")), DELTAFS_OK);
    CHECK_IS(conflicts("before", "after"), 0);
    CHECK_IS(conflicts("mine", "after"), 0); /* both have changed other files */

    collect(path);
    CHECK_IS(count_tables(path, name), tables + 1);
    check_path(named("before"));
    for (int policy = DELTAFS_SNAPSHOT_NEWEST; policy <= DELTAFS_SNAPSHOT_ERROR; policy++) {
        CHECK_IS(deltafs_snapshot_merge(2, both, policy, named("merge")), DELTAFS_OK);
        ns = open_ns(named("merge"), O_RDONLY);
        check_file(ns, "/folder/1", "mine");
        check_file(ns, "/folder/2", "after");
        CHECK(!has(ns, "/gone"));
        close_ns(ns);
        CHECK_IS(deltafs_snapshot_withdraw(named("merge")), DELTAFS_OK);
    }

    CHECK_IS(deltafs_snapshot_withdraw(named("before")), DELTAFS_OK);
    collect(path);
    CHECK_IS(count_tables(path, name), tables + 1); /* what is on top of it needs it, too */
    CHECK_IS(deltafs_snapshot_withdraw(named("mine")), DELTAFS_OK);
    unit_remove(unit_path("on"));
    struct deltafs_namespace_collected c = collect(path);
    CHECK_IS(c.pins, 2); /* of the snapshot, and of the namespace that was removed */
    for (int i = 0; i < 2; i++) {
        ns = open_ns(i == 0 ? path : named("after"), O_RDONLY);
        check_file(ns, "/folder/1", "/folder/1");
        check_file(ns, "/folder/2", "after");
        close_ns(ns);
    }
}

/* A snapshot of after needs the new table only. */
static void old_tables_go(void **state)
{
    const char *path = unit_path("go");
    struct deltafs_namespace_stat st = {.struct_size = sizeof st};
    char name[32];
    deltafs_namespace *reader, *late;
    deltafs_namespace_list *list = NULL;

    (void)state;
    close_ns(new_ns("go"));
    fill(path);
    reader = open_ns(path, O_RDONLY);
    late = open_ns(path, O_RDONLY);
    check_filled(reader);
    remove_leases(path);
    compact(path);
    CHECK_IS(deltafs_snapshot_publish(path, named("go")), DELTAFS_OK);
    CHECK(collect(path).bytes_before > 0);
    CHECK_IS(count_tables(path, name), 1);
    check_path(path);
    check_path(named("go"));
    /* A reader that has not read yet finds no table any more. */
    CHECK_IS(deltafs_namespace_stat(late, "/all", 0, &st), DELTAFS_ERR_CHANGED);
    assert_non_null(strstr(deltafs_errmsg(NULL), "open it again"));
    CHECK_IS(deltafs_namespace_list_open(late, "/", &list), DELTAFS_ERR_CHANGED);
    close_ns(late);
    close_ns(reader);
    CHECK_IS(deltafs_snapshot_withdraw(named("go")), DELTAFS_OK);
}

static void write_text(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void wrong(void **state)
{
    struct deltafs_namespace_compacted small = {.struct_size = 1};
    const char *path = unit_path("wrong"), *file = unit_path("wrong/COMPACTED");
    struct io io = io_default();
    deltafs_namespace *ns = NULL;
    struct lease lease;
    struct error e;
    char name[32];

    (void)state;
    CHECK_IS(deltafs_namespace_compact(NULL, NULL), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_namespace_compact("", NULL), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_namespace_compact(unit_path("none"), NULL), DELTAFS_ERR_NOT_FOUND);
    close_ns(new_ns("wrong"));
    CHECK_IS(deltafs_namespace_compact(path, &small), DELTAFS_ERR_INVALID);
    fill(path);
    close_ns(new_ns("busy"));
    fill(unit_path("busy"));
    CHECK_IS(lease_take(&lease, &io, unit_path("busy"), 1000, 0, &e), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_compact(unit_path("busy"), NULL), DELTAFS_ERR_BUSY);
    CHECK_IS(lease_drop(&lease, &e), DELTAFS_OK);
    compact(path);
    collect(path);
    CHECK_IS(count_tables(path, name), 1);
    /* The new table is lost. */
    CHECK_IS(rename(unit_path("wrong/%s", name), unit_path("lost")), 0);
    CHECK_IS(try_open(path, O_RDONLY, "32M", &ns), DELTAFS_ERR_DAMAGED);
    assert_non_null(strstr(deltafs_errmsg(NULL), "has lost what a compaction has written"));
    CHECK_IS(rename(unit_path("lost"), unit_path("wrong/%s", name)), 0);
    check_path(path);
    write_text(file, "no line\n");
    CHECK_IS(try_open(path, O_RDONLY, "32M", &ns), DELTAFS_ERR_DAMAGED);
    assert_non_null(strstr(deltafs_errmsg(NULL), "COMPACTED"));
    CHECK_IS(unlink(file), 0);
    check_path(path);
}

static int setup(void **state)
{
    int rc = unit_setup(state);

    setenv("DELTAFS_SYNC", "none", 1);
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_one_table), cmocka_unit_test(snapshots_stay),
                                       cmocka_unit_test(old_tables_go), cmocka_unit_test(wrong)};

    return cmocka_run_group_tests(tests, setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
