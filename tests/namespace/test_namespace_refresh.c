/* Refreshing a handle: it sees what others have committed, as one that is opened now does. */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "namespace/namespace.h"
#include "unit_refresh.h"

static void changes(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "changes%d", i);
        deltafs_namespace *a = create_one(name, i & 1), *b = open_ns(path_of(a), i & 2 ? O_RDWR : O_RDONLY);
        see_changes(a, b);
        close_ns(b);
        close_ns(a);
    }
}

/* A journal that becomes an epoch, one that the next writer goes on with, and epochs without a journal. */
static void journals(void **state)
{
    deltafs_namespace *a = new_ns("journals"), *b = open_ns(path_of(a), O_RDWR),
                      *seldom = open_ns(path_of(a), O_RDONLY);
    static char text[200000];
    char path[32];
    size_t got;

    (void)state;
    for (int i = 0; i < 40; i++) {
        deltafs_namespace_file *f;
        snprintf(path, sizeof path, "/%d", i);
        memset(text, 'a' + i % 26, sizeof text);
        CHECK_IS(deltafs_namespace_file_open(a, path, O_RDWR | O_CREAT, 0600, &f), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_write(f, 0, text, sizeof text), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
        commit(a);
        if (i == 20) {
            close_ns(a);
            a = open_ns(path_of(b), O_RDWR);
        }
        for (int k = 0; k < 2; k++) {
            deltafs_namespace *ns = k == 0 ? b : seldom;
            if (k == 1 && i % 9 != 8)
                continue;
            refresh(ns);
            CHECK_IS(deltafs_namespace_file_open(ns, path, O_RDONLY, 0, &f), DELTAFS_OK);
            CHECK_IS(deltafs_namespace_file_read(f, 0, text, sizeof text, &got), DELTAFS_OK);
            CHECK(got == sizeof text && text[0] == 'a' + i % 26 && text[got - 1] == text[0]);
            CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
            CHECK(has(ns, "/0") && !has(ns, "/40"));
        }
    }
    close_ns(seldom);
    make_many(a, "/many", 4000);
    CHECK(!has(b, "/many/3999"));
    refresh(b);
    CHECK(has(b, "/many/3999") && has(b, "/39"));
    check_as_opened(b, "/");
    close_ns(b);
    close_ns(a);
}

/* An epoch of what was seen in a journal, and one that has copies of others, let no names be forgotten. */
static void seen_epochs(void **state)
{
    deltafs_namespace *a = new_ns("seen"), *b = open_ns(path_of(a), O_RDONLY);
    static char text[200000];
    char path[32];

    (void)state;
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof path, "/many%d", i);
        make_many(a, path, 4000);
    }
    for (int i = 0; i < 2; i++) {
        deltafs_namespace_file *f;
        snprintf(path, sizeof path, "/%d", i);
        CHECK_IS(deltafs_namespace_file_open(a, path, O_RDWR | O_CREAT, 0600, &f), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_write(f, 0, text, sizeof text), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
        commit(a);
    }
    refresh(b);
    CHECK(has(b, "/1") && !has(b, "/2"));
    uint64_t clears = b->clears;
    close_ns(a);
    CHECK_IS(count_names(path_of(b), "t"), 2); /* no journal */
    refresh(b);
    CHECK_IS(b->clears, clears);
    CHECK(has(b, "/1") && !has(b, "/2") && has(b, "/many7/3999"));
    check_as_opened(b, "/");
    close_ns(b);
}

/* Tables of new writers: more than the handle had memory for when it was opened. */
static void new_writers(void **state)
{
    deltafs_namespace *a = new_ns("writers"), *b = open_ns(path_of(a), O_RDONLY), *writer[7];
    char path[32];

    (void)state;
    for (int i = 0; i < 7; i++) {
        writer[i] = open_ns(path_of(a), O_RDWR);
        refresh(b); /* nothing is in the table yet */
        snprintf(path, sizeof path, "/%d", i);
        put_file(writer[i], path, path);
        commit(writer[i]);
        refresh(b);
        check_file(b, path, path);
        put_file(writer[i], "/all", path);
        commit(writer[i]);
        if (i > 0)
            refresh(writer[i - 1]);
        refresh(b);
        check_file(b, "/all", path);
    }
    check_as_opened(b, "/");
    for (int i = 0; i < 7; i++)
        close_ns(writer[i]);
    refresh(b);
    check_as_opened(b, "/");
    close_ns(b);
    close_ns(a);
}

/* Epochs that others cover, and a compaction. */
static void merges(void **state)
{
    char path[32];

    (void)state;
    for (int has_journals = 0; has_journals < 2; has_journals++) {
        deltafs_namespace *a = create_one(has_journals ? "merges" : "merges0", has_journals);
        deltafs_namespace *b = open_ns(path_of(a), O_RDWR), *c = open_ns(path_of(a), O_RDONLY);
        for (int i = 0; i < 24; i++) {
            snprintf(path, sizeof path, "/%d", i);
            put_file(a, path, path);
            put_file(a, "/last", path);
            commit(a);
            put_file(b, "/b", path);
            if (i % 5 == 4) {
                commit(b);
                refresh(a);
                check_file(a, "/b", path);
            }
            if (i % 8 == 7)
                CHECK_IS(deltafs_namespace_compact(path_of(a), NULL), DELTAFS_OK);
            refresh(b);
            check_file(b, path, path);
            check_file(b, "/last", path);
            if (i % 11 != 10)
                continue;
            refresh(c);
            check_file(c, "/last", path);
            check_as_opened(c, "/");
        }
        commit(b);
        make_many(a, "/many", 4000); /* an epoch, with what was compacted when it was in a journal */
        refresh(a);
        check_as_opened(a, "/");
        refresh(b);
        check_as_opened(b, "/");
        close_ns(c);
        close_ns(b);
        close_ns(a);
    }
}

/* A reader without a lease, whose tables were removed. */
static void removed_tables(void **state)
{
    deltafs_namespace *a = new_ns("removed"), *b;
    const char *path = unit_path("removed");

    (void)state;
    put_file(a, "/one", "1");
    make_many(a, "/many", 4000);
    b = open_ns(path, O_RDONLY);
    check_file(b, "/one", "1");
    remove_leases(path);
    put_file(a, "/two", "2");
    close_ns(a);
    CHECK_IS(deltafs_namespace_compact(path, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
    refresh(b);
    check_file(b, "/one", "1");
    check_file(b, "/two", "2");
    CHECK(has(b, "/many/3999"));
    check_as_opened(b, "/");
    close_ns(b);
}

/* On top of snapshots; and names that a resolver looks up. */
static void layers(void **state)
{
    const char *below[2];
    deltafs_namespace *a, *b;

    (void)state;
    for (int i = 0; i < 2; i++) {
        a = new_ns(i == 0 ? "below0" : "below1");
        put_file(a, "/f", i == 0 ? "zero" : "one");
        put_file(a, i == 0 ? "/0" : "/1", "x");
        close_ns(a);
        CHECK_IS(deltafs_snapshot_publish(unit_path("below%d", i), unit_path("registry@%d", i)), DELTAFS_OK);
    }
    below[0] = unit_path("registry@0");
    below[1] = unit_path("registry@1");
    CHECK_IS(
        deltafs_namespace_open_view(unit_path("above"), O_RDWR | O_CREAT, 2, below, DELTAFS_SNAPSHOT_FIRST, NULL, &a),
        DELTAFS_OK);
    b = open_ns(unit_path("above"), O_RDWR);
    check_file(b, "/f", "zero");
    put_file(a, "/f", "above");
    CHECK_IS(deltafs_namespace_unlink(a, "/1"), DELTAFS_OK);
    commit(a);
    check_file(b, "/f", "zero");
    refresh(b);
    check_file(b, "/f", "above");
    check_as_opened(b, "/");
    put_file(b, "/b", "b");
    commit(b);
    refresh(a);
    check_as_opened(a, "/");
    close_ns(b);
    CHECK_IS(deltafs_namespace_open_view(NULL, O_RDONLY, 2, below, DELTAFS_SNAPSHOT_FIRST, NULL, &b), DELTAFS_OK);
    refresh(b);
    assert_string_equal(list_names(b, "/"), "0 1 f");
    close_ns(b);
    CHECK_IS(deltafs_snapshot_publish(unit_path("above"), unit_path("registry@above")), DELTAFS_OK);
    b = open_ns(unit_path("registry@above"), O_RDONLY);
    put_file(a, "/f", "later");
    commit(a);
    refresh(b);
    check_file(b, "/f", "above");
    close_ns(b);
    close_ns(a);
}

#define COMMITS 400

/* Commit two files with the same number, again and again; some commits are epochs, or fill the journal. */
static noreturn void write_numbers(const char *path)
{
    deltafs_namespace *ns = open_ns(path, O_RDWR);
    static char text[100000];
    deltafs_namespace_file *f;

    for (int i = 1; i <= COMMITS; i++) {
        snprintf(text, sizeof text, "%d", i);
        for (int k = 0; k < 2; k++) {
            CHECK_IS(deltafs_namespace_file_open(ns, k ? "/b" : "/a", O_WRONLY | O_CREAT | O_TRUNC, 0600, &f),
                     DELTAFS_OK);
            CHECK_IS(deltafs_namespace_file_write(f, 0, text, i % 3 == 0 ? sizeof text : 20), DELTAFS_OK);
            CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
        }
        if (i % 50 == 0) {
            snprintf(text, sizeof text, "/many%d", i);
            make_many(ns, text, 3000);
        }
        commit(ns);
    }
    CHECK_IS(deltafs_namespace_close(ns), DELTAFS_OK);
    die();
}

static int number_in(deltafs_namespace *ns, const char *path)
{
    char text[20] = "0";
    deltafs_namespace_file *f;
    size_t got;

    if (!has(ns, path))
        return 0;
    CHECK_IS(deltafs_namespace_file_open(ns, path, O_RDONLY, 0, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_read(f, 0, text, sizeof text, &got), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    return atoi(text);
}

/* While another process commits, a refresh sees all or nothing of each commit, and never less than before. */
static void beside_a_writer(void **state)
{
    deltafs_namespace *ns = new_ns("beside");
    int last = 0, ended = 0;
    pid_t gone = 0;

    (void)state;
    commit(ns);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        write_numbers(unit_path("beside"));
    while (gone == 0) {
        gone = waitpid(pid, &ended, WNOHANG);
        refresh(ns);
        int a = number_in(ns, "/a"), b = number_in(ns, "/b");
        CHECK(a == b && a >= last);
        last = a;
    }
    CHECK(gone == pid && has_died(ended));
    CHECK_IS(last, COMMITS);
    CHECK(has(ns, "/many400/2999"));
    check_as_opened(ns, "/");
    close_ns(ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(changes),        cmocka_unit_test(journals),
                                       cmocka_unit_test(seen_epochs),    cmocka_unit_test(new_writers),
                                       cmocka_unit_test(merges),         cmocka_unit_test(layers),
                                       cmocka_unit_test(removed_tables), cmocka_unit_test(beside_a_writer)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
