/* Snapshots: operations that fail, and processes that are killed between any two operations. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fake_io.h"
#include "unit_kth.h"
#include "unit_snapshot.h"

/* The operation that fails after the k-th did: every third does, and if UNIT_STEPS is given, every one. */
static uint64_t next_k(uint64_t k)
{
    return k + (getenv("UNIT_STEPS") ? 1 : 3);
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

static int verify_kth(const char *path)
{
    return deltafs_namespace_verify(path, NULL, NULL, NULL);
}

static int repair_kth(const char *path)
{
    return deltafs_namespace_repair(path, NULL, NULL, NULL);
}

static int exists(const char *name)
{
    deltafs_snapshot *s = NULL;
    int status = deltafs_snapshot_open(name, &s);

    CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND);
    deltafs_snapshot_close(s);
    return status == DELTAFS_OK;
}

/* A call whose k-th operation fails, for many k, and then once without a failure. `path` has two snapshots. After each
 * the namespace, the snapshots and their pins are sound. */
static void fail_each(const char *path, int (*call)(const char *path), int is_withdrawal)
{
    unsigned pins = 2;
    int has_failed = 1;

    for (uint64_t k = 0; has_failed; k = next_k(k)) {
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
    setenv("DELTAFS_SYNC", "commit", 1);
    fail_each(path, publish_kth, 0);
    fail_each(path, withdraw_kth, 1);
    fail_each(path, merge_kth, 0);
    fail_each(path, verify_kth, 0);
    fail_each(path, repair_kth, 0);
    fail_each(path, compact_kth, 0);
    fail_each(path, collect_kth, 0);
    fail_each(path, view_kth, 0);
    setenv("DELTAFS_SYNC", "none", 1);
    withdraw("one");
    withdraw("two");
}

/* ---- Killed between any two operations ---- */

/* Remove the pins that are not in the list, as the manual says. */
static void remove_other_pins(const char *path, const char *kept)
{
    DIR *d = opendir(path);
    const struct dirent *e;

    assert_non_null(d);
    while ((e = readdir(d)))
        if (strncmp(e->d_name, "PIN.", 4) == 0 && !strstr(kept, e->d_name))
            CHECK_IS(unlinkat(dirfd(d), e->d_name, 0), 0);
    closedir(d);
}

static void list_pins(const char *path, char *text, size_t room)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    size_t n = 0;

    assert_non_null(d);
    while ((e = readdir(d)))
        if (strncmp(e->d_name, "PIN.", 4) == 0)
            n += (size_t)snprintf(text + n, room - n, "%s ", e->d_name);
    closedir(d);
}

static void check_snapshot(const char *name, const char *file)
{
    deltafs_namespace *ns = open_ns(name, O_RDONLY);

    check_file(ns, "/file", file);
    close_ns(ns);
}

/* A process is killed in the call, before its k-th operation, for many k, and each time in the same namespace. Then
 * all that was there is there, also after a collection; and that leaves nothing of what was interrupted. */
static void kill_each(const char *path, int (*call)(const char *path), int is_withdrawal)
{
    static struct fake_io fake;
    struct deltafs_namespace_collected c = {.struct_size = sizeof c};
    const char *copy = unit_path("killed.copy");
    char pins[256];
    int ended = 1;

    list_pins(path, pins, sizeof pins);
    unit_copy(path, copy);
    for (uint64_t k = 0; ended != 0; k = next_k(k)) {
        unit_remove(path);
        unit_copy(copy, path);
        if (is_withdrawal)
            publish(path, "kth");
        pid_t child = fork();
        if (child == 0) {
            fake_io_begin_killed(&fake, k);
            _exit(call(path) == DELTAFS_OK ? 0 : 1);
        }
        CHECK_IS(waitpid(child, &ended, 0), child);
        CHECK(ended == 0 || (WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL));
        CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_OK);
        CHECK(!c.is_kept);
        check_snapshot(path, "new");
        check_snapshot(named("one"), "text");
        if (exists(named("kth")))
            check_snapshot(named("kth"), "new");
        unit_remove(unit_path("view"));
        if (!exists(named("kth")))
            publish(path, "kth");
        withdraw("kth"); /* finishes one that was interrupted, too */
        CHECK_IS(count_names(unit_path("registry"), ".withdrawn"), 0);
        remove_other_pins(path, pins);
        CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
        CHECK_IS(count_names(path, ".deltafs-removed"), 0);
        CHECK_IS(count_names(path, "t"), 2); /* a table and its data */
        check_snapshot(named("one"), "text");
    }
    unit_remove(copy);
}

static void killed_anywhere(void **state)
{
    const char *path = unit_path("killed");
    deltafs_namespace *ns;

    (void)state;
    new_published("killed", "text", "one");
    ns = open_ns(path, O_RDWR);
    put_file(ns, "/file", "new");
    put_file(ns, "/waste", "waste");
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_unlink(ns, "/waste"), DELTAFS_OK);
    close_ns(ns);
    publish(path, "two");
    kill_each(path, publish_kth, 0);
    kill_each(path, withdraw_kth, 1);
    kill_each(path, merge_kth, 0);
    kill_each(path, view_kth, 0);
    kill_each(path, collect_kth, 0);
    withdraw("one");
    withdraw("two");
}

/* Compact, with the k-th operation failing, or being the last one. Returns 0 if all went well without that. */
static int compact_in_child(const char *path, uint64_t k, int is_killed)
{
    static struct fake_io fake;
    pid_t child = fork();
    int ended;

    if (child == 0) {
        if (is_killed)
            fake_io_begin_killed(&fake, k);
        else
            unit_kth_begin_default(k, EIO);
        unit_kth_count(1);
        int status = compact_kth(path);
        _exit(!is_killed && unit_kth_has_failed() ? 2 : status != DELTAFS_OK);
    }
    CHECK_IS(waitpid(child, &ended, 0), child);
    CHECK(is_killed && ended != 0 ? WIFSIGNALED(ended) : WIFEXITED(ended) && WEXITSTATUS(ended) != 1);
    return ended;
}

/* The compaction of a namespace on top of a snapshot is interrupted anywhere: it is as before, or all is done. */
static void stack_interrupted(void **state)
{
    const char *path = unit_path("stack"), *copy = unit_path("stack.copy");
    struct deltafs_namespace_info info = {.struct_size = sizeof info};
    deltafs_namespace *ns;

    (void)state;
    new_published("stack.below", "text", "one");
    ns = open_view(path, O_RDWR | O_CREAT, named("one"), NULL, DELTAFS_SNAPSHOT_NEWEST);
    put_file(ns, "/other", "other");
    close_ns(ns);
    unit_copy(path, copy);
    setenv("DELTAFS_SYNC", "commit", 1);
    for (int is_killed = 0; is_killed < 2; is_killed++) {
        int ended = 1;
        for (uint64_t k = 0; ended != 0; k = next_k(k)) {
            unit_remove(path);
            unit_copy(copy, path);
            ended = compact_in_child(path, k, is_killed);
            for (int i = 0; i < 3; i++) {
                ns = open_ns(path, O_RDONLY);
                check_file(ns, "/file", "text");
                check_file(ns, "/other", "other");
                close_ns(ns);
                CHECK_IS(deltafs_namespace_info(path, &info), DELTAFS_OK);
                CHECK(info.is_complete || (i < 2 && ended != 0));
                CHECK_IS(i == 0 ? deltafs_namespace_collect(path, NULL) : compact_kth(path), DELTAFS_OK);
            }
        }
    }
    setenv("DELTAFS_SYNC", "none", 1);
    withdraw("one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_operation_fails), cmocka_unit_test(killed_anywhere),
                                       cmocka_unit_test(stack_interrupted)};

    return cmocka_run_group_tests(tests, setup_unsynced, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
