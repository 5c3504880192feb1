/* Refreshing a handle when something fails or is damaged; and what it costs: operations are counted, not timed. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "fake_io.h"
#include "namespace/namespace.h"
#include "unit_refresh.h"

static struct {
    int is_counting, has_failed;
    uint64_t operations, fails_at, bytes;
} counted;

static ssize_t count(struct fake_call *c)
{
    if (!counted.is_counting)
        return fake_do(c);
    if (++counted.operations == counted.fails_at) {
        counted.has_failed = 1;
        return -EIO;
    }
    ssize_t rc = fake_do(c);
    counted.bytes += c->op == FAKE_READ && rc > 0 ? (uint64_t)rc : 0;
    return rc;
}

/* With the operation of this number failing; 0: none. */
static int counted_refresh(deltafs_namespace *ns, uint64_t fails_at)
{
    memset(&counted, 0, sizeof counted);
    counted.fails_at = fails_at;
    counted.is_counting = 1;
    int status = deltafs_namespace_refresh(ns);
    counted.is_counting = 0;
    return status;
}

/* Whatever cannot be read, what was seen stays, and the next refresh finds all. */
static void failures(void **state)
{
    struct fake_io fake;
    int failed = 0;

    (void)state;
    for (int what = 0; what < 4; what++)
        for (uint64_t k = 1, has_failed = 1; has_failed; k++) {
            deltafs_namespace *a = new_ns("failures"), *c = NULL;
            const char *path = unit_path("failures");
            put_file(a, "/f", "one");
            commit(a);
            fake_io_begin(&fake, count);
            deltafs_namespace *b = open_ns(path, O_RDWR);
            check_file(b, "/f", "one");
            put_file(b, "/own", "own");
            if (k % 2 == 0)
                refresh(b);
            io_replace_default(NULL, NULL);
            put_file(a, "/f", "second");
            if (what == 1)
                make_many(a, "/many", 4000);
            commit(a);
            if (what == 2)
                put_file(c = open_ns(path, O_RDWR), "/c", "c");
            if (c)
                commit(c);
            if (what == 3)
                CHECK_IS(deltafs_namespace_compact(path, NULL), DELTAFS_OK);
            io_replace_default(&fake.ops, &fake);
            int status = counted_refresh(b, k);
            CHECK(status == DELTAFS_OK || (counted.has_failed && status == DELTAFS_ERR_IO));
            failed += status != DELTAFS_OK;
            has_failed = (uint64_t)counted.has_failed;
            check_file(b, "/own", "own");
            CHECK(has(b, "/f"));
            refresh(b);
            check_file(b, "/f", "second");
            check_file(b, "/own", "own");
            CHECK(has(b, "/many/3999") == (what == 1) && has(b, "/c") == (what == 2));
            close_ns(b);
            CHECK_IS(fake_io_end(&fake), 0);
            if (c)
                close_ns(c);
            close_ns(a);
            unit_remove(path);
        }
    CHECK(failed > 10);
}

/* A journal that is damaged behind what was read. */
static void damage(void **state)
{
    deltafs_options *o = unit_options("memory", "32M", "threads", "0", "sync", "commit", NULL);
    deltafs_namespace *a, *b;
    char table[32];
    size_t n, at;

    (void)state;
    CHECK_IS(deltafs_namespace_open(unit_path("damage"), O_RDWR | O_CREAT, o, &a), DELTAFS_OK);
    deltafs_options_destroy(o);
    b = open_ns(path_of(a), O_RDONLY);
    put_file(a, "/f", "one");
    commit(a);
    count_tables(path_of(a), table);
    const char *journal = unit_path("damage/%s" TABLE_JOURNAL, table);
    refresh(b);
    put_file(a, "/f", "two");
    commit(a);
    at = a->own.journal.end + 50;
    put_file(a, "/f", "three");
    commit(a);
    put_file(a, "/f", "four");
    commit(a);
    uint8_t *bytes = unit_load(journal, &n);
    bytes[at] ^= 1;
    unit_save(journal, bytes, n);
    CHECK_IS(deltafs_namespace_refresh(b), DELTAFS_ERR_DAMAGED);
    CHECK(strstr(deltafs_errmsg(NULL), journal));
    CHECK_IS(deltafs_namespace_refresh(b), DELTAFS_ERR_DAMAGED);
    check_file(b, "/f", "one");
    bytes[at] ^= 1;
    unit_save(journal, bytes, n);
    free(bytes);
    refresh(b);
    check_file(b, "/f", "four");
    close_ns(b);
    close_ns(a);
}

/* A journal that was written again by a repair, without a commit that was damaged. */
static void repaired(void **state)
{
    char table[32], path[32];
    size_t n, first = 0;

    (void)state;
    for (int is_open = 0; is_open < 2; is_open++) {
        snprintf(path, sizeof path, "repaired%d", is_open);
        deltafs_namespace *a = new_ns(path), *b = open_ns(path_of(a), O_RDONLY);
        for (int i = 0; i < 5; i++) {
            snprintf(path, sizeof path, "/%d", i);
            put_file(a, path, path);
            commit(a);
            if (i == 0)
                first = a->own.journal.end;
            if (i == 1 || (i == 2 && is_open))
                refresh(b);
        }
        count_tables(path_of(a), table);
        const char *journal = unit_path("repaired%d/%s" TABLE_JOURNAL, is_open, table);
        const char *aside = unit_path("repaired%d/aside", is_open);
        uint8_t *bytes = unit_load(journal, &n);
        unit_save(aside, bytes + first, n - first);
        free(bytes);
        CHECK_IS(rename(aside, journal), 0);
        refresh(b);
        assert_string_equal(list_names(b, "/"), "1 2 3 4");
        check_as_opened(b, "/");
        check_file(b, "/3", "/3");
        close_ns(b);
        close_ns(a);
    }
}

/* A commit that was seen, and then taken back, as it could not be synced. */
static void taken_back(void **state)
{
    deltafs_namespace *a = new_ns("back"), *b = open_ns(path_of(a), O_RDWR);
    char table[32];

    (void)state;
    put_file(a, "/f", "one");
    commit(a);
    off_t end = (off_t)a->own.journal.end;
    snprintf(table, sizeof table, "t%016llx", (unsigned long long)a->own.number);
    put_file(b, "/own", "own");
    put_file(a, "/f", "two");
    put_file(a, "/g", "g");
    put_file(a, "/own", "of a");
    commit(a);
    refresh(b);
    check_file(b, "/f", "two");
    check_file(b, "/own", "of a");
    assert_string_equal(list_names(b, "/"), "f g own");
    CHECK_IS(truncate(unit_path("back/%s" TABLE_JOURNAL, table), end), 0);
    refresh(b);
    check_file(b, "/f", "one");
    check_file(b, "/own", "own");
    assert_string_equal(list_names(b, "/"), "f own");
    CHECK(!has(b, "/g"));
    close_ns(b);
    close_ns(a);
}

/* On a file system where this host may see late what others do. */
static ssize_t be_late(struct fake_call *c)
{
    return c->op == FAKE_REFRESH ? 1 : fake_do(c);
}

static void late(void **state)
{
    deltafs_namespace *a = new_ns("late"), *b;
    struct fake_io fake;

    (void)state;
    fake_io_init(&fake, be_late);
    fake_io_has_all(&fake);
    io_replace_default(&fake.ops, &fake);
    b = open_ns(path_of(a), O_RDWR);
    io_replace_default(NULL, NULL);
    see_changes(a, b);
    CHECK(b->tables.is_late);
    close_ns(b);
    CHECK_IS(fake_io_end(&fake), 0);
    close_ns(a);
}

static void refusals(void **state)
{
    deltafs_namespace *a = new_ns("refusals");

    (void)state;
    CHECK_IS(deltafs_namespace_refresh(NULL), DELTAFS_ERR_INVALID);
    a->broken = (struct error){.status = DELTAFS_ERR_NO_SPACE, .text = "broken"};
    CHECK_IS(deltafs_namespace_refresh(a), DELTAFS_ERR_NO_SPACE);
    a->broken.status = DELTAFS_OK;
    close_ns(a);
}

/* What a refresh costs depends on what is new, and on nothing else. */
static void costs(void **state)
{
    deltafs_namespace *writer[4] = {new_ns("costs")}, *b;
    static char text[200000];
    struct fake_io fake;

    (void)state;
    for (int i = 1; i < 4; i++)
        writer[i] = open_ns(path_of(writer[0]), O_RDWR);
    make_many(writer[0], "/many", 4000);
    for (int i = 0; i < 4; i++) {
        deltafs_namespace_file *f = open_file(writer[i], "/large", O_RDWR | O_CREAT);
        CHECK_IS(deltafs_namespace_file_write(f, 0, text, sizeof text), DELTAFS_OK);
        close_file(f);
        commit(writer[i]);
    }
    fake_io_begin(&fake, count);
    b = open_ns(path_of(writer[0]), O_RDONLY);
    CHECK_IS(counted_refresh(b, 0), DELTAFS_OK);
    CHECK_IS(counted_refresh(b, 0), DELTAFS_OK);
    CHECK(counted.operations <= 6 && counted.bytes == 0);
    for (int i = 0; i < 4; i++) {
        CHECK(!has(b, "/new"));
        put_file(writer[i], "/new", "1");
        commit(writer[i]);
        CHECK_IS(counted_refresh(b, 0), DELTAFS_OK);
        CHECK(counted.operations <= 11 && counted.bytes < 300);
        CHECK(has(b, "/new"));
        CHECK_IS(deltafs_namespace_unlink(writer[i], "/new"), DELTAFS_OK);
        commit(writer[i]);
        CHECK_IS(counted_refresh(b, 0), DELTAFS_OK);
        CHECK(counted.operations <= 8 && counted.bytes < 300); /* the journal is open now */
        CHECK(!has(b, "/new"));
    }
    close_ns(b);
    CHECK_IS(fake_io_end(&fake), 0);
    for (int i = 0; i < 4; i++)
        close_ns(writer[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures), cmocka_unit_test(damage), cmocka_unit_test(refusals), cmocka_unit_test(taken_back),
        cmocka_unit_test(repaired), cmocka_unit_test(late),   cmocka_unit_test(costs)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
