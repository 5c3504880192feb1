/* Namespaces: lists, more names than memory has room for, several writers. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "namespace/name_filter.h"
#include "unit_namespace.h"

/* ---- Lists ---- */

/* Create files in a folder: the numbers from `i` to end - 1, with so many digits at least. */
static void create_many(deltafs_namespace *ns, const char *folder, int digits, unsigned i, unsigned end)
{
    char path[256];

    for (; i < end; i++) {
        snprintf(path, sizeof path, "/%s/%0*u", folder, digits, i);
        CHECK_IS(deltafs_namespace_create(ns, path, 0600, 0), DELTAFS_OK);
    }
}

/* A folder of many entries is removed while it is listed, and others come. */
static void list_and_change(void **state)
{
    enum { COUNT = 3000 };
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace *ns = new_ns("list");
    deltafs_namespace_list *l;
    unsigned count = 0;
    char path[64];

    (void)state;
    CHECK_IS(deltafs_namespace_mkdir(ns, "/d", 0700), DELTAFS_OK);
    for (unsigned i = 0; i < COUNT; i += 1000) {
        CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
        create_many(ns, "d", 1, i, i + 1000);
    }
    CHECK_IS(deltafs_namespace_rmdir(ns, "/d"), DELTAFS_ERR_NOT_EMPTY);
    CHECK_IS(deltafs_namespace_list_open(ns, "/d", &l), DELTAFS_OK);
    for (;;) {
        CHECK_IS(deltafs_namespace_list_next(l, &entry), DELTAFS_OK);
        if (!entry)
            break;
        CHECK(entry->name[0] != 'n');
        snprintf(path, sizeof path, "/d/%.20s", entry->name);
        CHECK_IS(deltafs_namespace_unlink(ns, path), DELTAFS_OK);
        snprintf(path, sizeof path, "/d/new%u", count);
        if (count++ % 2 == 0)
            CHECK_IS(deltafs_namespace_create(ns, path, 0600, O_EXCL), DELTAFS_OK);
        if (count == COUNT / 2) /* what is left is removed by another name: it does not come any more */
            CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    }
    CHECK_IS(deltafs_namespace_list_close(l), DELTAFS_OK);
    CHECK_IS(count, COUNT);
    for (unsigned i = 0; i < COUNT; i += 2) {
        snprintf(path, sizeof path, "/d/new%u", i);
        CHECK_IS(deltafs_namespace_unlink(ns, path), DELTAFS_OK);
    }
    CHECK_IS(deltafs_namespace_rmdir(ns, "/d"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_list_open(ns, "/d", &l), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_namespace_list_close(NULL), DELTAFS_OK);
    close_ns(ns);
}

/* More names than memory has room for: they are committed on the way. */
static void more_than_memory(void **state)
{
    enum { COUNT = 150000 };
    deltafs_namespace *ns = new_ns("memory"), *reader;

    (void)state;
    CHECK_IS(deltafs_namespace_mkdir(ns, "/d", 0700), DELTAFS_OK);
    create_many(ns, "d", 1, 0, COUNT);
    reader = open_ns(unit_path("memory"), O_RDONLY);
    CHECK(has(reader, "/d/0") && !has(reader, "/d/149999"));
    CHECK(has(ns, "/d/0") && has(ns, "/d/149999") && !has(ns, "/d/150000"));
    CHECK_IS(deltafs_namespace_create(ns, "/d/0", 0600, O_EXCL), DELTAFS_ERR_EXISTS);
    close_ns(reader);
    close_ns(ns);
}

/* The same, with lists and changed files that are open. */
static void open_beyond_memory(void **state)
{
    enum { OPEN = 4000, COUNT = 40000 };
    static deltafs_namespace_file *f[OPEN];
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace *ns = new_ns("beyond");
    deltafs_namespace_list *l;
    char path[256];

    (void)state;
    CHECK_IS(deltafs_namespace_mkdir(ns, "/d", 0700), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(ns, "/e", 0700), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(ns, "/removed", 0700), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_create(ns, "/removed/x", 0600, 0), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_list_open(ns, "/removed", &l), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_unlink(ns, "/removed/x"), DELTAFS_OK);
    for (unsigned i = 0; i < OPEN; i++) {
        snprintf(path, sizeof path, "/d/f%0200u", i);
        CHECK_IS(deltafs_namespace_file_open(ns, path, O_WRONLY | O_CREAT, 0600, &f[i]), DELTAFS_OK);
    }
    create_many(ns, "d", 200, 0, COUNT);
    for (unsigned i = 0; i < OPEN; i++)
        CHECK_IS(deltafs_namespace_file_write(f[i], 0, "x", 1), DELTAFS_OK);
    create_many(ns, "e", 200, 0, COUNT);
    for (unsigned i = 0; i < OPEN; i++)
        CHECK_IS(deltafs_namespace_file_close(f[i]), DELTAFS_OK);
    check_file(ns, path, "x");
    CHECK_IS(deltafs_namespace_list_next(l, &entry), DELTAFS_OK);
    CHECK(!entry);
    CHECK_IS(deltafs_namespace_list_close(l), DELTAFS_OK);
    close_ns(ns);
}

/* What was added is found, and little else. */
static void filter_of_names(void **state)
{
    enum { COUNT = 50000 };
    struct name_filter f = {0};
    struct error e;
    unsigned wrong = 0;

    (void)state;
    CHECK_IS(name_filter_has(&f, 1), 0);
    CHECK_IS(name_filter_init(&f, COUNT * 10 / 8, &e), DELTAFS_OK);
    for (uint64_t i = 0; i < COUNT; i++)
        name_filter_add(&f, i << 32 | i);
    for (uint64_t i = 0; i < COUNT; i++) {
        CHECK(name_filter_has(&f, i << 32 | i));
        wrong += name_filter_has(&f, i << 32 | (i + 1)) != 0;
    }
    CHECK(wrong < COUNT / 40);
    name_filter_fini(&f);
}

/* ---- Several writers ---- */

static void conflicts(void **state)
{
    const char *path = unit_path("conflicts");
    deltafs_namespace *a = new_ns("conflicts"), *b = open_ns(path, O_RDWR), *c;
    char name[32];

    (void)state;
    /* The same folder from both is one. */
    CHECK_IS(deltafs_namespace_mkdir(a, "/out", 0700), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(b, "/out", 0750), DELTAFS_OK);
    put_file(a, "/out/a", "a");
    put_file(b, "/out/b", "b");
    put_file(a, "/out/both", "first");
    put_file(b, "/out/both", "second");
    /* A name that is a folder and a file, whichever came last. */
    put_file(a, "/one", "file");
    CHECK_IS(deltafs_namespace_mkdir(b, "/one", 0700), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(b, "/two", 0700), DELTAFS_OK);
    put_file(a, "/two", "file");
    CHECK(!has(b, "/out/a"));
    close_ns(b);
    close_ns(a);
    CHECK_IS(count_tables(path, name), 2);

    c = open_ns(path, O_RDWR);
    assert_string_equal(list_names(c, "/"), "one out two");
    assert_string_equal(list_names(c, "/out"), "a b both");
    check_file(c, "/out/both", "second");
    CHECK_IS(stat_of(c, "/out").mode, S_IFDIR | 0750);
    CHECK(S_ISDIR(stat_of(c, "/one").mode) && S_ISDIR(stat_of(c, "/two").mode));
    CHECK_IS(deltafs_namespace_rmdir(c, "/out"), DELTAFS_ERR_NOT_EMPTY);
    CHECK_IS(deltafs_namespace_rename(c, "/out", "/in"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_unlink(c, "/in/both"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_rmdir(c, "/one"), DELTAFS_OK);
    put_file(c, "/in/b", "new");
    put_file(c, "/in/c", "c");
    close_ns(c);
    CHECK_IS(count_tables(path, name), 2); /* the writer has taken over one that was there */

    c = open_ns(path, O_RDWR);
    assert_string_equal(list_names(c, "/"), "in two");
    assert_string_equal(list_names(c, "/in"), "a b c");
    check_file(c, "/in/b", "new");
    CHECK_IS(deltafs_namespace_unlink(c, "/in/a"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_unlink(c, "/in/b"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_unlink(c, "/in/c"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_rmdir(c, "/in"), DELTAFS_OK);
    close_ns(c);
    c = open_ns(path, O_RDONLY);
    assert_string_equal(list_names(c, "/"), "two");
    close_ns(c);
}

/* Several processes create the same namespace and the same folder, and fill it. */
static void created_together(void **state)
{
    enum { WRITERS = 4, FILES = 3 };
    const char *path = unit_path("together");
    deltafs_namespace *ns;
    char name[64];
    int ended, rc;

    (void)state;
    for (int k = 0; k < WRITERS; k++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid > 0)
            continue;
        ns = open_ns(path, O_RDWR | O_CREAT);
        rc = deltafs_namespace_mkdir(ns, "/out", 0700); /* another may have committed it by now */
        CHECK(rc == DELTAFS_OK || rc == DELTAFS_ERR_EXISTS);
        for (int i = 0; i < FILES; i++) {
            snprintf(name, sizeof name, "/out/%d.%d", k, i);
            put_file(ns, name, name);
        }
        close_ns(ns);
        _exit(0);
    }
    for (int k = 0; k < WRITERS; k++) {
        assert_true(wait(&ended) > 0);
        CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    }
    ns = open_ns(path, O_RDONLY);
    assert_string_equal(list_names(ns, "/"), "out");
    for (int k = 0; k < WRITERS; k++)
        for (int i = 0; i < FILES; i++) {
            snprintf(name, sizeof name, "/out/%d.%d", k, i);
            check_file(ns, name, name);
        }
    assert_string_equal(list_names(ns, "/out"), "0.0 0.1 0.2 1.0 1.1 1.2 2.0 2.1 2.2 3.0 3.1 3.2");
    close_ns(ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(list_and_change),    cmocka_unit_test(more_than_memory),
                                       cmocka_unit_test(open_beyond_memory), cmocka_unit_test(filter_of_names),
                                       cmocka_unit_test(conflicts),          cmocka_unit_test(created_together)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
