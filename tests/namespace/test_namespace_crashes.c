/* Namespaces: commits that fail, writers that are killed, damage. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "namespace/entry.h"
#include "namespace/journal.h"
#include "unit_io.h"
#include "unit_kth.h"
#include "unit_namespace.h"

/* ---- Failures ---- */

/* More than goes into a journal at once. */
static void put_links(deltafs_namespace *ns)
{
    static char target[ENTRY_TARGET_MAX + 1];
    char name[16];

    memset(target, 't', sizeof target - 1);
    for (unsigned i = 0; i <= JOURNAL_GROUP_MAX / ENTRY_TARGET_MAX; i++) {
        snprintf(name, sizeof name, "/link%u", i);
        CHECK_IS(deltafs_namespace_symlink(ns, target, name), DELTAFS_OK);
    }
}

/* A commit that fails leaves what was committed, and nothing else can be changed. */
static void commits_that_fail(void **state)
{
    static const char *const where[] = {"MANIFEST", ".index", ".data", ".journal"};
    deltafs_namespace *ns = new_ns("fail");
    deltafs_namespace_file *f;
    deltafs_namespace_list *l;
    char name[16];

    (void)state;
    put_file(ns, "/kept", "kept");
    close_ns(ns);
    for (unsigned i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "/%u", i);
        unit_io_begin();
        ns = open_ns(unit_path("fail"), O_RDWR);
        put_file(ns, name, "lost");
        if (i < 3)
            put_links(ns);
        CHECK_IS(deltafs_namespace_file_open(ns, "/open", O_RDWR | O_CREAT, 0600, &f), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_write(f, 0, "x", 1), DELTAFS_OK);
        unit_io_fail(OP_WRITE, where[i], 0, 1, EIO);
        CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_ERR_IO);
        unit_io_fail(OP_WRITE, where[i], 0, 0, EIO);
        CHECK_IS(deltafs_namespace_mkdir(ns, "/x", 0700), DELTAFS_ERR_IO);
        CHECK_IS(deltafs_namespace_list_open(ns, "/", &l), DELTAFS_ERR_IO);
        CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_ERR_IO);
        check_file(ns, "/kept", "kept");
        CHECK_IS(deltafs_namespace_file_write(f, 0, "y", 1), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_ERR_IO);
        CHECK_IS(deltafs_namespace_close(ns), DELTAFS_ERR_IO);
        unit_io_end();
        ns = open_ns(unit_path("fail"), O_RDWR);
        assert_string_equal(list_names(ns, "/"), "kept");
        check_file(ns, "/kept", "kept");
        close_ns(ns);
    }
}

/* Changes in two commits; returns the status of the first call that failed. */
static int change_all(const char *path)
{
    deltafs_namespace *ns = NULL;
    deltafs_namespace_file *f = NULL;
    deltafs_namespace_list *l = NULL;
    const struct deltafs_namespace_entry *entry;
    int status = try_open(path, O_RDWR, "32M", &ns), rc;

    if (status != DELTAFS_OK)
        return status;
    status = deltafs_namespace_mkdir(ns, "/new", 0700);
    if (status == DELTAFS_OK)
        status = deltafs_namespace_rename(ns, "/old", "/new/old");
    if (status == DELTAFS_OK)
        status = deltafs_namespace_commit(ns);
    if (status == DELTAFS_OK)
        status = deltafs_namespace_file_open(ns, "/new/old", O_RDWR, 0, &f);
    if (status == DELTAFS_OK)
        status = deltafs_namespace_file_write(f, 4, "er", 2);
    rc = deltafs_namespace_file_close(f);
    status = status == DELTAFS_OK ? rc : status;
    if (status == DELTAFS_OK)
        status = deltafs_namespace_list_open(ns, "/new", &l);
    if (status == DELTAFS_OK)
        status = deltafs_namespace_list_next(l, &entry);
    deltafs_namespace_list_close(l);
    rc = deltafs_namespace_close(ns);
    return status == DELTAFS_OK ? rc : status;
}

/* Whatever fails is reported, and what is there then is one of the states that were committed. */
static void every_operation_fails(void **state)
{
    const char *path = unit_path("kth"), *copy = unit_path("copy");
    deltafs_namespace *ns = new_ns("kth");
    int has_failed = 1;

    (void)state;
    put_file(ns, "/old", "text");
    close_ns(ns);
    for (uint64_t k = 0; has_failed; k++) {
        unit_copy(path, copy);
        unit_kth_begin_default(k, EIO);
        unit_kth_count(1);
        int status = change_all(copy);
        unit_kth_count(0);
        has_failed = unit_kth_end();
        CHECK(has_failed || status == DELTAFS_OK);
        ns = open_ns(copy, O_RDWR);
        if (has(ns, "/old")) {
            CHECK(status != DELTAFS_OK && !has(ns, "/new"));
            check_file(ns, "/old", "text");
        } else if (stat_of(ns, "/new/old").size == 4) {
            CHECK(status != DELTAFS_OK);
            check_file(ns, "/new/old", "text");
        } else {
            check_file(ns, "/new/old", "texter");
        }
        close_ns(ns);
        unit_remove(copy);
    }
}

/* A writer that dies leaves what it has committed, and its table to the next. */
static void killed_writer(void **state)
{
    const char *path = unit_path("killed");
    deltafs_namespace *ns = new_ns("killed");
    char name[32];
    int ended;

    (void)state;
    close_ns(ns);
    for (int round = 0; round < 3; round++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            ns = open_ns(path, O_RDWR);
            put_file(ns, "/committed", "bytes");
            CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
            put_file(ns, "/lost", "bytes");
            put_file(ns, "/committed", "other");
            check_file(ns, "/lost", "bytes"); /* which commits the bytes, and not the name */
            die();
        }
        assert_true(waitpid(pid, &ended, 0) == pid);
        CHECK(has_died(ended));
        CHECK_IS(count_tables(path, name), 1);
        ns = open_ns(path, round == 1 ? O_RDWR : O_RDONLY);
        assert_string_equal(list_names(ns, "/"), "committed");
        check_file(ns, "/committed", "bytes");
        close_ns(ns);
    }
}

/* A writer was killed while it created its table, or its data: both are left alone. */
static void interrupted_creation(void **state)
{
    const char *path = unit_path("half");
    deltafs_namespace *ns = new_ns("half");
    char name[32];

    (void)state;
    put_file(ns, "/a", "first");
    close_ns(ns);
    CHECK_IS(count_tables(path, name), 1);
    unit_remove(unit_path("half/%s.data", name));
    mkdir(unit_path("half/%s.data", name), 0700);
    mkdir(unit_path("half/t0000000000000001"), 0700);
    for (int round = 0; round < 2; round++) {
        ns = open_ns(path, O_RDWR);
        put_file(ns, "/b", "second");
        check_file(ns, "/b", "second");
        close_ns(ns);
        CHECK_IS(count_tables(path, name), 3);
    }
    ns = open_ns(path, O_RDONLY);
    assert_string_equal(list_names(ns, "/"), "a b");
    check_file(ns, "/b", "second");
    close_ns(ns);
}

/* ---- Damage ---- */

static void check_damaged(const char *path)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace *ns = open_ns(path, O_RDONLY);
    deltafs_namespace_list *l;
    int status = deltafs_namespace_list_open(ns, "/", &l);

    CHECK_IS(deltafs_namespace_stat(ns, "/f", 0, &s), DELTAFS_ERR_DAMAGED);
    if (status == DELTAFS_OK) {
        while ((status = deltafs_namespace_list_next(l, &entry)) == DELTAFS_OK && entry)
            ;
        deltafs_namespace_list_close(l);
    }
    CHECK_IS(status, DELTAFS_ERR_DAMAGED);
    close_ns(ns);
}

static void damaged_tables(void **state)
{
    const char *path = unit_path("damage");
    deltafs_namespace *ns = new_ns("damage");
    deltafs_namespace_file *f;
    char name[32], bytes[8];
    size_t n, got;

    (void)state;
    put_file(ns, "/f", "bytes");
    close_ns(ns);
    make_epochs(path);
    CHECK_IS(count_tables(path, name), 1);
    const char *table = unit_path("damage/%s/00/p00000000.data", name);
    const char *data = unit_path("damage/%s.data/00/p00000000.data", name);
    uint8_t *was = unit_load(table, &n);
    unit_poke(table, n - 1, (uint8_t)(was[n - 1] ^ 1));
    check_damaged(path);
    unit_poke(table, n - 1, was[n - 1]);
    free(was);

    was = unit_load(data, &n);
    unit_poke(data, n - 1, (uint8_t)(was[n - 1] ^ 1));
    ns = open_ns(path, O_RDONLY);
    CHECK_IS(deltafs_namespace_file_open(ns, "/f", O_RDONLY, 0, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_read(f, 0, bytes, 5, &got), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    free(was);
    unit_remove(unit_path("damage/%s.data", name));
    CHECK_IS(deltafs_namespace_file_open(ns, "/f", O_RDONLY, 0, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_read(f, 0, bytes, 5, &got), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    close_ns(ns);
}

/* Records that no writer makes, under the key of a name that is asked for. */
static void hostile_records(void **state)
{
    const struct entry good = {.parent = {0, 1},
                               .name = "f",
                               .name_size = 1,
                               .target = "target",
                               .target_size = 6,
                               .inode = {.id = {7, 8}, .stamp = 9, .size = 6, .type = ENTRY_LINK}};
    const struct folder root = folder_of(&good.parent);
    const struct entry_name key = name_in(&root, name_hash("f", 1), "f", 1);
    uint8_t bytes[ENTRY_SIZE_MAX];
    struct entry got;
    size_t n = entry_encode(&good, bytes);
    struct rng r = rng_of(3);

    (void)state;
    CHECK_IS(entry_decode(bytes, n, &got), 0);
    CHECK(got.target_size == 6 && memcmp(got.target, "target", 6) == 0 && got.inode.stamp == 9);
    for (size_t cut = 0; cut < n; cut++)
        CHECK_IS(entry_decode(bytes, cut, &got), -1);
    for (int i = 0; i < 20000; i++) { /* whatever it says, it reads what is there */
        uint8_t *noise = malloc(n);
        memcpy(noise, bytes, n);
        noise[rng_below(&r, n)] = (uint8_t)rng_next(&r);
        noise[rng_below(&r, n)] = (uint8_t)rng_next(&r);
        if (entry_decode(noise, n, &got) == 0)
            CHECK((const uint8_t *)got.name + got.name_size <= noise + n && got.target_size <= n);
        free(noise);
    }
    static const char *const bad[] = {"", "x", "a/b", "..", "."};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *path = unit_path("hostile%zu", i);
        deltafs_namespace *ns = open_ns(path, O_RDWR | O_CREAT);
        struct entry e = good;
        deltafs_dir *d;
        char name[32];
        CHECK_IS(deltafs_namespace_create(ns, "/g", 0600, 0), DELTAFS_OK);
        close_ns(ns);
        CHECK_IS(count_tables(path, name), 1);
        CHECK_IS(deltafs_reopen(unit_path("hostile%zu/%s", i, name), NULL, &d), DELTAFS_OK);
        e.name = bad[i];
        e.name_size = strlen(bad[i]);
        n = i == 1 ? 1 : entry_encode(&e, bytes);
        CHECK_IS(deltafs_append(d, key.key, bytes, n), DELTAFS_OK);
        CHECK_IS(deltafs_epoch_end(d, UINT64_MAX / 2), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        check_damaged(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(commits_that_fail), cmocka_unit_test(every_operation_fails),
                                       cmocka_unit_test(killed_writer),     cmocka_unit_test(interrupted_creation),
                                       cmocka_unit_test(damaged_tables),    cmocka_unit_test(hostile_records)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
