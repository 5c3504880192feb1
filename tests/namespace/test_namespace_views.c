/* Collection and views: what is open for reading is not removed, whether it is a namespace or a snapshot that was
 * withdrawn meanwhile. The lease of a process that has ended does not count, that of another host as long as the option
 * lease says. Who cannot write one reads without it. */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "fake_io.h"
#include "unit_namespace.h"

#define TEXT "bytes"

static void put_text(const char *path, const char *text)
{
    deltafs_namespace *ns = open_ns(path, O_RDWR);

    put_file(ns, "/f", text);
    close_ns(ns);
}

/* A namespace with a file, which reads `TEXT`. */
static const char *filled(const char *name)
{
    close_ns(new_ns(name));
    put_text(unit_path("%s", name), TEXT);
    return unit_path("%s", name);
}

static unsigned views(const char *path)
{
    return count_names(path, "VIEW.") + count_names(path, ".VIEW.");
}

static void check_refused(const char *path)
{
    CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_ERR_BUSY);
    assert_non_null(strstr(deltafs_errmsg(NULL), "/VIEW."));
    assert_non_null(strstr(deltafs_errmsg(NULL), "has the namespace open"));
}

static uint64_t collect(const char *path)
{
    struct deltafs_namespace_collected c = {.struct_size = sizeof c};

    CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_OK);
    return c.bytes_before - c.bytes_after;
}

static void of_namespaces(void **state)
{
    const char *path = filled("plain");
    deltafs_namespace *one = open_ns(path, O_RDONLY), *two;

    (void)state;
    put_text(path, "newer");
    CHECK_IS(deltafs_namespace_compact(path, NULL), DELTAFS_OK);
    two = open_ns(path, O_RDONLY);
    CHECK_IS(views(path), 2);
    check_refused(path);
    check_file(one, "/f", TEXT);
    close_ns(one);
    check_refused(path);
    close_ns(two);
    CHECK_IS(views(path), 0);
    CHECK(collect(path) > 0);
    /* A writer holds the lease of its table instead. */
    one = open_ns(path, O_RDWR);
    CHECK_IS(views(path), 0);
    close_ns(one);
}

/* By its name, or as a view of two; in both namespaces. */
static void of_snapshots(void **state)
{
    const char *a = filled("a"), *b = filled("b");
    const char *const both[] = {named("a"), named("b")};

    (void)state;
    for (size_t count = 1; count <= 2; count++) {
        deltafs_namespace *ns;
        CHECK_IS(deltafs_snapshot_publish(a, both[0]), DELTAFS_OK);
        CHECK_IS(deltafs_snapshot_publish(b, both[1]), DELTAFS_OK);
        if (count == 1)
            ns = open_ns(both[0], O_RDONLY);
        else
            CHECK_IS(deltafs_namespace_open_view(NULL, O_RDONLY, 2, both, DELTAFS_SNAPSHOT_FIRST, NULL, &ns),
                     DELTAFS_OK);
        for (size_t i = 0; i < 2; i++)
            CHECK_IS(deltafs_snapshot_withdraw(both[i]), DELTAFS_OK);
        put_text(a, "newer");
        check_refused(a);
        CHECK_IS(views(b), count - 1);
        check_file(ns, "/f", TEXT);
        close_ns(ns);
        CHECK_IS(views(a) + views(b), 0);
        CHECK(collect(a) > 0);
        collect(b);
        put_text(a, TEXT);
    }
}

static void of_the_dead(void **state)
{
    const char *path = filled("dead");
    pid_t pid = fork();
    int ended;

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        open_ns(path, O_RDONLY);
        die();
    }
    assert_true(waitpid(pid, &ended, 0) == pid);
    CHECK(has_died(ended));
    CHECK_IS(views(path), 1);
    collect(path);
    CHECK_IS(views(path), 0);
}

static void leave_lease(const char *file, const char *host, time_t renewed)
{
    FILE *f = fopen(file, "w");

    assert_non_null(f);
    fprintf(f, "host=%s pid=7 job=- session=00000000-0000-0000-0000-000000000000 renewed=%lld\n", host,
            (long long)renewed);
    fclose(f);
}

static void of_other_hosts(void **state)
{
    const char *path = filled("hosts"), *file = unit_path("hosts/VIEW.1");

    (void)state;
    leave_lease(file, "elsewhere", time(NULL) - 10);
    check_refused(path);
    assert_non_null(strstr(deltafs_errmsg(NULL), "elsewhere"));
    setenv("DELTAFS_LEASE", "5", 1);
    collect(path);
    CHECK_IS(views(path), 0);
    unsetenv("DELTAFS_LEASE");
    leave_lease(unit_path("hosts/.VIEW.2"), "elsewhere", 1000);
    collect(path);
    CHECK_IS(views(path), 0);
}

/* ---- Operations that fail, and what happens just before them ---- */

static const char *busy_path; /* of a namespace, or REGISTRY@NAME */
static int removals;          /* so many times, or a withdrawal */

static int is_view(const struct fake_call *c)
{
    return c->path && strstr(c->path, "VIEW.");
}

static ssize_t refuse_views(struct fake_call *c)
{
    return c->op == FAKE_OPEN && is_view(c) ? -EACCES : fake_do(c);
}

static ssize_t fail_views(struct fake_call *c)
{
    return is_view(c) && (c->op == FAKE_WRITE || c->op == FAKE_RENAME) ? -ENOSPC : fake_do(c);
}

static ssize_t fail_reads(struct fake_call *c)
{
    return is_view(c) && (c->op == FAKE_READ || c->op == FAKE_LOCK) ? -EIO : fake_do(c);
}

static ssize_t remove_first(struct fake_call *c)
{
    if (c->op == FAKE_RENAME && is_view(c) && removals > 0 && removals--)
        CHECK_IS(unlink(c->from), 0);
    return fake_do(c);
}

static ssize_t withdraw_first(struct fake_call *c)
{
    int calls = c->op == FAKE_RENAME && is_view(c) ? removals : 0;

    if (calls > 0) {
        removals = 0; /* publishing holds a view, too */
        CHECK_IS(deltafs_snapshot_withdraw(busy_path), DELTAFS_OK);
        if (calls > 1)
            CHECK_IS(deltafs_snapshot_publish(unit_path("meanwhile"), busy_path), DELTAFS_OK);
    }
    return fake_do(c);
}

static int try_with(fake_fn fn, const char *path, int times, deltafs_namespace **ns)
{
    static struct fake_io io; /* the namespace opens files through it later, too */

    removals = times;
    fake_io_begin(&io, fn);
    int status = deltafs_namespace_open(path, O_RDONLY, NULL, ns);
    fake_io_end(&io);
    return status;
}

static void without_leases(void **state)
{
    const char *path = filled("without");
    deltafs_namespace *ns;

    (void)state;
    for (int i = 0; i < 2; i++) {
        CHECK_IS(try_with(i == 0 ? refuse_views : fail_views, path, 0, &ns), DELTAFS_OK);
        CHECK_IS(views(path), 0);
        collect(path);
        check_file(ns, "/f", TEXT);
        close_ns(ns);
    }
    CHECK_IS(try_with(remove_first, path, 1, &ns), DELTAFS_OK);
    check_refused(path);
    close_ns(ns);
    CHECK_IS(try_with(remove_first, path, 100, &ns), DELTAFS_OK);
    CHECK_IS(views(path), 0);
    close_ns(ns);
}

/* Who collects cannot read the lease: with another user, whose files others cannot read. (It was taken for one whose
 * process has ended.) */
static void unreadable(void **state)
{
    const char *path = filled("unreadable");
    deltafs_namespace *ns = open_ns(path, O_RDONLY);
    struct fake_io io;

    (void)state;
    put_text(path, "newer");
    for (int i = 0; i < 2; i++) {
        fake_io_begin(&io, i == 0 ? refuse_views : fail_reads);
        int status = deltafs_namespace_collect(path, NULL);
        fake_io_end(&io);
        CHECK_IS(status, DELTAFS_ERR_BUSY);
        assert_non_null(strstr(deltafs_errmsg(NULL), "/VIEW."));
    }
    check_file(ns, "/f", TEXT);
    close_ns(ns);
    CHECK(collect(path) > 0);
}

/* By the time that the lease is held, the snapshot has been withdrawn, or is another one. */
static void withdrawn_before(void **state)
{
    const char *path = filled("meanwhile"), *const one[] = {named("meanwhile")};
    deltafs_namespace *ns = NULL;
    struct fake_io io;

    (void)state;
    busy_path = one[0];
    for (int way = 0; way < 4; way++) {
        CHECK_IS(deltafs_snapshot_publish(path, one[0]), DELTAFS_OK);
        removals = 1 + way % 2;
        fake_io_begin(&io, withdraw_first);
        int status = way < 2 ? deltafs_namespace_open(one[0], O_RDONLY, NULL, &ns)
                             : deltafs_namespace_open_view(NULL, O_RDONLY, 1, one, 0, NULL, &ns);
        fake_io_end(&io);
        CHECK_IS(status, way % 2 ? DELTAFS_ERR_CHANGED : DELTAFS_ERR_NOT_FOUND);
        CHECK_IS(views(path), 0);
        if (way % 2)
            CHECK_IS(deltafs_snapshot_withdraw(one[0]), DELTAFS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_namespaces),   cmocka_unit_test(of_snapshots),
                                       cmocka_unit_test(of_the_dead),     cmocka_unit_test(of_other_hosts),
                                       cmocka_unit_test(without_leases),  cmocka_unit_test(unreadable),
                                       cmocka_unit_test(withdrawn_before)};

    return cmocka_run_group_tests(tests, setup_unsynced, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
