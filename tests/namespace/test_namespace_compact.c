/* Compaction of namespaces: each entry is then in one table, snapshots keep what they have, and tables that nothing
 * needs are removed. test_namespace_model compacts while others write; test_snapshot_faults lets every operation fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "io/lease.h"
#include "namespace/all_records.h"
#include "namespace/head.h"
#include "unit_io.h"
#include "unit_namespace.h"

#define WRITERS 3

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

/* How many records a reader finds, in the layers below, too; no entry is in two of them. */
static uint64_t count_records(const char *path)
{
    struct io io = io_default();
    struct head head;
    struct tables t;
    struct all_records a;
    struct error e;
    uint64_t n = 0;

    CHECK_IS(head_read(&io, path, &head, &e), DELTAFS_OK);
    CHECK_IS(tables_init(&t, &io, path, 0, &head.below, NULL, &e), DELTAFS_OK);
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
    layers_fini(&head.below);
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

/* ---- Stacks ---- */

static deltafs_namespace *open_on(const char *name, const char *a, const char *b, int policy)
{
    const char *const inputs[] = {named(a), b ? named(b) : NULL};
    deltafs_options *o = unit_options("memory", "32M", "threads", "0", NULL);
    deltafs_namespace *ns = NULL;

    CHECK_IS(deltafs_namespace_open_view(unit_path(name), O_RDWR | O_CREAT, b ? 2 : 1, inputs, policy, o, &ns),
             DELTAFS_OK);
    deltafs_options_destroy(o);
    return ns;
}

static void publish(const char *ns, const char *name)
{
    CHECK_IS(deltafs_snapshot_publish(unit_path(ns), named(name)), DELTAFS_OK);
}

/* Three namespaces on top of each other, each with changes of what is below; snapshots s0, s1, s2. */
#define LARGE_TEXT 600000
static void make_stack(void)
{
    static char large[LARGE_TEXT + 1];
    deltafs_namespace *ns = new_ns("l0");

    memset(large, 'x', LARGE_TEXT);
    close_ns(ns);
    fill(unit_path("l0"));
    ns = open_ns(unit_path("l0"), O_RDWR);
    put_file(ns, "/large", large);
    close_ns(ns);
    publish("l0", "s0");
    ns = open_on("l1", "s0", NULL, 0);
    put_file(ns, "/all", "l1");
    CHECK_IS(deltafs_namespace_rename(ns, "/folder", "/moved"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_unlink(ns, "/w1"), DELTAFS_OK);
    put_file(ns, "/of l1", "l1");
    close_ns(ns);
    publish("l1", "s1");
    ns = open_on("l2", "s1", NULL, 0);
    put_file(ns, "/moved/2", "l2");
    CHECK_IS(deltafs_namespace_unlink(ns, "/of l1"), DELTAFS_OK);
    close_ns(ns);
    publish("l2", "s2");
}

static void check_stack(const char *path)
{
    deltafs_namespace *ns = open_ns(path, O_RDONLY);

    assert_string_equal(list_names(ns, "/"), "all large link moved w2");
    assert_string_equal(list_names(ns, "/moved"), "1 2");
    check_file(ns, "/all", "l1");
    check_file(ns, "/moved/1", "/folder/1");
    check_file(ns, "/moved/2", "l2");
    CHECK_IS(stat_of(ns, "/large").size, LARGE_TEXT);
    CHECK(!has(ns, "/gone") && !has(ns, "/w1") && !has(ns, "/folder"));
    close_ns(ns);
}

/* How many layers of a snapshot, which are `count`, are complete. */
static unsigned complete_layers(const char *name, size_t count)
{
    struct deltafs_snapshot_stat st = {.struct_size = sizeof st};
    struct deltafs_snapshot_layer l = {.struct_size = sizeof l};
    deltafs_snapshot *s;
    unsigned n = 0;

    CHECK_IS(deltafs_snapshot_open(named(name), &s), DELTAFS_OK);
    CHECK_IS(deltafs_snapshot_stat(s, &st), DELTAFS_OK);
    CHECK_IS(st.layers, count);
    for (size_t i = 0; i < st.layers; i++) {
        CHECK_IS(deltafs_snapshot_layer(s, i, &l), DELTAFS_OK);
        n += l.is_complete != 0;
    }
    deltafs_snapshot_close(s);
    return n;
}

static int is_complete(const char *path)
{
    struct deltafs_namespace_info i = {.struct_size = sizeof i};

    CHECK_IS(deltafs_namespace_info(path, &i), DELTAFS_OK);
    return i.is_complete;
}

/* Names are in one table, and the tables of the layers below may even be lost; their data is needed. */
static void stack_in_one_table(void **state)
{
    const char *path = unit_path("l2");
    char table[32];
    deltafs_namespace *ns;

    (void)state;
    make_stack();
    CHECK_IS(rename(unit_path("l0"), unit_path("lost")), 0);
    CHECK_IS(deltafs_namespace_compact(path, NULL), DELTAFS_ERR_NOT_FOUND);
    assert_non_null(strstr(deltafs_errmsg(NULL), "must stay where they are"));
    CHECK_IS(rename(unit_path("lost"), unit_path("l0")), 0);
    CHECK(!is_complete(path));
    struct deltafs_namespace_compacted c = compact(path);
    CHECK(c.tables > 3 && c.records > c.entries && is_complete(path));
    CHECK_IS(count_records(path), c.entries);
    check_stack(path);
    check_stack(named("s2"));
    CHECK_IS(compact(path).tables, 0);
    collect(path);
    check_stack(named("s2")); /* its tables are pinned */
    publish("l2", "s3");
    CHECK_IS(complete_layers("s2", 3), 0);
    CHECK_IS(complete_layers("s3", 3), 1);
    check_stack(named("s3"));
    CHECK_IS(conflicts("s2", "s3"), 0);

    /* Without the table that all others have changed. */
    CHECK_IS(count_tables(unit_path("l1"), table), 1);
    CHECK_IS(rename(unit_path("l1/%s", table), unit_path("lost")), 0);
    check_stack(path);
    check_stack(named("s3"));
    ns = open_on("l3", "s3", NULL, 0);
    put_file(ns, "/of l3", "l3");
    close_ns(ns);
    publish("l3", "s4");
    CHECK_IS(try_open(named("s2"), O_RDONLY, "32M", &ns), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(rename(unit_path("lost"), unit_path("l1/%s", table)), 0);
    CHECK_IS(complete_layers("s4", 4), 1);

    /* On: in the namespace, and in the next. */
    ns = open_ns(path, O_RDWR);
    put_file(ns, "/all", "on");
    CHECK_IS(deltafs_namespace_unlink(ns, "/moved/1"), DELTAFS_OK);
    close_ns(ns);
    c = compact(path);
    CHECK(c.tables <= 2 && is_complete(path));
    ns = open_ns(path, O_RDONLY);
    check_file(ns, "/all", "on");
    assert_string_equal(list_names(ns, "/moved"), "2");
    close_ns(ns);
    compact(unit_path("l3"));
    CHECK_IS(count_records(unit_path("l3")), c.entries + 1);
    for (int i = 0; i < 3; i++)
        collect(unit_path("l%d", i));
    check_stack(named("s2"));
    check_stack(named("s3"));
    ns = open_ns(unit_path("l3"), O_RDONLY);
    check_file(ns, "/of l3", "l3");
    assert_string_equal(list_names(ns, "/"), "all large link moved of l3 w2");
    close_ns(ns);
}

/* The paths that the inputs of a merge disagree on, and what each policy chooses, are the same as without the
 * compaction. */
static void merge_both(const char *a, const char *b, int policy, char *text, size_t room)
{
    const char *const both[] = {named(a), named(b)};
    deltafs_namespace *ns;
    char bytes[16];
    size_t got = 0;

    CHECK_IS(deltafs_snapshot_merge(2, both, policy, named("both")), DELTAFS_OK);
    ns = open_ns(named("both"), O_RDONLY);
    snprintf(text, room, "%s; ", list_names(ns, "/"));
    snprintf(text + strlen(text), room - strlen(text), "%s;", list_names(ns, "/moved"));
    for (const char *const *p = (const char *const[]){"/all", "/w1", "/w2", "/moved/1", "/moved/2", NULL}; *p; p++) {
        deltafs_namespace_file *f;
        int status = deltafs_namespace_file_open(ns, *p, O_RDONLY, 0, &f);
        size_t n = strlen(text);
        if (status != DELTAFS_OK)
            continue;
        CHECK_IS(deltafs_namespace_file_read(f, 0, bytes, sizeof bytes, &got), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
        snprintf(text + n, room - n, " %s=%.*s", *p, (int)got, bytes);
    }
    close_ns(ns);
    CHECK_IS(deltafs_snapshot_withdraw(named("both")), DELTAFS_OK);
}

static void stacks_are_merged(void **state)
{
    static const char *const other[] = {"other", "later"}, *const stack[] = {"s2", "s3"};
    char want[512], text[512];
    deltafs_namespace *ns;

    (void)state;
    /* One goes on from s1, and has changed the same and other things; the other is a later s0. */
    ns = open_on("other", "s1", NULL, 0);
    put_file(ns, "/moved/2", "other");
    put_file(ns, "/moved/1", "other");
    CHECK_IS(deltafs_namespace_unlink(ns, "/w2"), DELTAFS_OK);
    close_ns(ns);
    publish("other", "other");
    ns = open_ns(unit_path("l0"), O_RDWR);
    put_file(ns, "/all", "later");
    put_file(ns, "/w2", "later");
    close_ns(ns);
    compact(unit_path("l0"));
    publish("l0", "later");
    for (size_t k = 0; k < 2; k++)
        for (int policy = DELTAFS_SNAPSHOT_NEWEST; policy < DELTAFS_SNAPSHOT_ERROR; policy++) {
            merge_both(stack[0], other[k], policy, want, sizeof want);
            merge_both(stack[1], other[k], policy, text, sizeof text);
            assert_string_equal(text, want);
            merge_both(other[k], stack[0], policy, want, sizeof want);
            merge_both(other[k], stack[1], policy, text, sizeof text);
            assert_string_equal(text, want);
            CHECK(conflicts(stack[0], other[k]) > 0);
            CHECK_IS(conflicts(stack[1], other[k]), conflicts(stack[0], other[k]));
        }
    CHECK_IS(conflicts("s3", "s4"), 0);

    /* On top of merges: by the newest change all names are copied; by another policy they stay where they are. */
    for (int policy = DELTAFS_SNAPSHOT_NEWEST; policy <= DELTAFS_SNAPSHOT_LAST; policy++) {
        char name[32];
        snprintf(name, sizeof name, "top%d", policy);
        close_ns(open_on(name, "s3", "other", policy));
        publish(name, name);
        int is_copied = policy == DELTAFS_SNAPSHOT_NEWEST;
        CHECK_IS(compact(unit_path(name)).tables > 0, is_copied);
        CHECK_IS(is_complete(unit_path(name)), is_copied);
        ns = open_ns(unit_path(name), O_RDWR);
        check_file(ns, "/moved/2", policy == DELTAFS_SNAPSHOT_FIRST ? "l2" : "other");
        put_file(ns, "/on", "on");
        CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
        put_file(ns, "/on", "more");
        close_ns(ns);
        make_epochs(unit_path(name));
        compact(unit_path(name));
        ns = open_ns(unit_path(name), O_RDONLY);
        check_file(ns, "/moved/2", policy == DELTAFS_SNAPSHOT_FIRST ? "l2" : "other");
        check_file(ns, "/moved/1", "other");
        check_file(ns, "/on", "more");
        CHECK(!has(ns, "/w2"));
        close_ns(ns);
    }
}

static int read_status(deltafs_namespace *ns, const char *path)
{
    deltafs_namespace_file *f;
    char bytes[16];
    size_t got;

    CHECK_IS(deltafs_namespace_file_open(ns, path, O_RDONLY, 0, &f), DELTAFS_OK);
    int status = deltafs_namespace_file_read(f, 0, bytes, sizeof bytes, &got);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    return status;
}

/* Bytes of files that are in the journal of a layer below: it is read when they are needed. */
static void bytes_in_journals(void **state)
{
    const char *path = unit_path("j1"), *journal;
    uint8_t *bytes;
    size_t n;
    deltafs_options *o = unit_options("memory", "32M", "threads", "0", "sync", "commit", NULL);
    char table[32];
    deltafs_namespace *ns;

    (void)state;
    CHECK_IS(deltafs_namespace_open(unit_path("j0"), O_RDWR | O_CREAT, o, &ns), DELTAFS_OK);
    deltafs_options_destroy(o);
    put_file(ns, "/f", "first");
    put_file(ns, "/g", "second");
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    close_ns(ns);
    publish("j0", "j0");
    close_ns(open_on("j1", "j0", NULL, 0));
    CHECK_IS(compact(path).entries, 2);

    CHECK_IS(count_tables(unit_path("j0"), table), 1);
    journal = unit_path("j0/%s" TABLE_JOURNAL, table);
    bytes = unit_load(journal, &n);
    ns = open_ns(path, O_RDONLY);
    unit_poke(journal, 40, (uint8_t)~bytes[40]);
    assert_string_equal(list_names(ns, "/"), "f g");
    CHECK_IS(read_status(ns, "/f"), DELTAFS_ERR_DAMAGED);
    assert_non_null(strstr(deltafs_errmsg(NULL), TABLE_JOURNAL));
    CHECK_IS(read_status(ns, "/f"), DELTAFS_ERR_DAMAGED);
    unit_poke(journal, 40, bytes[40]);
    free(bytes);
    check_file(ns, "/f", "first");
    make_epochs(unit_path("j0"));
    CHECK(!unit_exists(journal));
    check_file(ns, "/g", "second");
    close_ns(ns);
    ns = open_ns(path, O_RDONLY);
    check_file(ns, "/f", "first");
    check_file(ns, "/g", "second");
    close_ns(ns);
}

static void write_text(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* With sync=close, too, the new table is durable before anything says that it counts. */
static void synced_before(void **state)
{
    const char *path = unit_path("durable");

    (void)state;
    close_ns(new_ns("durable"));
    fill(path);
    setenv("DELTAFS_SYNC", "close", 1);
    unit_io_begin();
    unit_io_fail(OP_SYNC, "p00000000", 0, UINT64_MAX, EIO);
    CHECK_IS(deltafs_namespace_compact(path, NULL), DELTAFS_ERR_IO);
    unit_io_end();
    setenv("DELTAFS_SYNC", "none", 1);
    CHECK(!unit_exists(unit_path("durable/COMPACTED")));
    check_path(path);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_one_table),      cmocka_unit_test(snapshots_stay),
                                       cmocka_unit_test(old_tables_go),     cmocka_unit_test(stack_in_one_table),
                                       cmocka_unit_test(stacks_are_merged), cmocka_unit_test(bytes_in_journals),
                                       cmocka_unit_test(synced_before),     cmocka_unit_test(wrong)};

    return cmocka_run_group_tests(tests, setup_unsynced, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
