/* Errors of directories, through the public API: what is refused, by which status, and that all else stays as it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fake_io.h"
#include "unit_help.h"

static int count_record(const struct deltafs_record *record, void *arg)
{
    (void)record;
    ++*(size_t *)arg;
    return 0;
}

static void test_uncommitted(void **state)
{
    struct rng r = rng_init(70);
    struct model m = {0};
    const char *path = unit_path("uncommitted");
    deltafs_dir *d = unit_create(path, unit_options("partitions", "2", NULL));

    (void)state;
    model_append_some(&m, d, &r, KEYS_DENSE, 500, -1);
    model_end_epoch(&m, d, 1);
    CHECK_CALL(d, deltafs_append(d, 1, "x", 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_ERR_UNCOMMITTED);
    CHECK(strstr(deltafs_errmsg(NULL), "1 record was") != NULL);
    model_check_directory(&m, path, &r);
    model_fini(&m);
}

/* What is refused is discarded, also what is on disk already, unless the option says otherwise. */
static void test_labels(void **state)
{
    static const char *const layouts[] = {"partitioned", "local"};
    struct rng r = rng_init(71);

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct model m = {0};
        const char *path = unit_path("labels%d", i);
        int is_kept = i % 2;
        deltafs_dir *d =
            unit_create(path, unit_options("layout", layouts[i / 2], "memory", "8M", "value_size", "40", "partitions",
                                           "2", "old_label", is_kept ? "keep" : "discard", NULL));
        model_append_some(&m, d, &r, KEYS_DENSE, 100, 40);
        model_end_epoch(&m, d, 5);
        model_append_some(&m, d, &r, KEYS_DENSE, 200000, 40);
        CHECK_IS(deltafs_epoch_end(d, 5), DELTAFS_ERR_LABEL);
        CHECK(strstr(deltafs_errmsg(d), is_kept ? "(200000) are kept" : "(200000) are discarded"));
        if (!is_kept)
            model_discard(&m);
        CHECK_IS(deltafs_epoch_end(d, 4), DELTAFS_ERR_LABEL);
        CHECK_IS(deltafs_epoch_end(d, 0), DELTAFS_ERR_LABEL);
        model_append_some(&m, d, &r, KEYS_DENSE, 100, 40);
        model_end_epoch(&m, d, 6);
        model_end_epoch(&m, d, UINT64_MAX);
        CHECK_IS(deltafs_epoch_end(d, UINT64_MAX), DELTAFS_ERR_LABEL);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        model_check_directory(&m, path, &r);
        model_fini(&m);
        unit_remove(path);
    }
}

/* A program that begins again at step 0, and ends an epoch at each step as if it had never run. */
static void test_restart(void **state)
{
    struct rng r = rng_init(74);
    struct model m = {0};
    const char *path = unit_path("restart");

    (void)state;
    for (int i = 0; i < 6; i++) {
        uint64_t committed = m.epochs;
        deltafs_options *o = unit_options("partitions", "2", "memory", "8M", "value_size", "8", "old_label", "skip",
                                          "commit", i % 2 ? "async" : "wait", NULL);
        deltafs_dir *d = NULL;
        if (i > 0)
            CHECK_CALL(NULL, deltafs_reopen(path, o, &d), DELTAFS_OK);
        deltafs_options_destroy(i > 0 ? o : NULL);
        d = i > 0 ? d : unit_create(path, o);
        for (uint64_t step = 0; step < committed + 2; step++) {
            model_append_some(&m, d, &r, KEYS_DENSE, step == 1 ? 200000 : 100, 8);
            if (i == 4)
                CHECK_CALL(d, deltafs_epoch_cancel(d, "no matter"), DELTAFS_OK);
            if (step < committed || i == 4) {
                CHECK_IS(deltafs_epoch_end(d, 10 * step), step < committed ? DELTAFS_OK : DELTAFS_ERR_CANCELLED);
                model_discard(&m);
            } else {
                model_end_epoch(&m, d, 10 * step);
            }
        }
        /* One that is not committed is refused. */
        CHECK_CALL(d, deltafs_append(d, 1, "12345678", 8), DELTAFS_OK);
        CHECK_IS(deltafs_epoch_end(d, 5), DELTAFS_ERR_LABEL);
        CHECK(strstr(deltafs_errmsg(d), "(1) are discarded"));
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        model_check_directory(&m, path, &r);
    }
    model_fini(&m);
    unit_remove(path);
}

static void test_sizes(void **state)
{
    static uint8_t bytes[(1 << 20) + 1];
    struct rng r = rng_init(72);
    struct model m = {0};
    const char *path = unit_path("sizes");
    deltafs_dir *d = unit_create(path, unit_options("value_size", "8", NULL));

    (void)state;
    model_append_some(&m, d, &r, KEYS_DENSE, 100, 8);
    model_end_epoch(&m, d, 1);
    for (size_t size = 0; size < 20; size += size == 7 ? 2 : 1) {
        model_append_some(&m, d, &r, KEYS_DENSE, 10, 8);
        CHECK_IS(deltafs_append(d, 1, bytes, size), DELTAFS_ERR_SIZE);
        model_append_some(&m, d, &r, KEYS_DENSE, 10, 8);
        CHECK_IS(deltafs_epoch_end(d, 2), DELTAFS_ERR_SIZE);
        model_discard(&m);
    }
    model_append_some(&m, d, &r, KEYS_DENSE, 100, 8);
    model_end_epoch(&m, d, 2);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_check_directory(&m, path, &r);
    unit_remove(path);
    model_fini(&m);

    d = unit_create(path, unit_options(NULL, NULL));
    CHECK_IS(deltafs_append(d, 1, bytes, sizeof bytes), DELTAFS_ERR_SIZE);
    CHECK_IS(deltafs_append(d, 1, NULL, 1), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_append_many(d, 1, NULL, 8, bytes, 1, 1), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_epoch_end(d, 2), DELTAFS_ERR_SIZE);
    CHECK_CALL(d, deltafs_append(d, 1, NULL, 0), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 2), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void test_cancel(void **state)
{
    struct rng r = rng_init(73);
    struct model m = {0};
    const char *path = unit_path("cancel");
    deltafs_dir *d = unit_create(path, unit_options("partitions", "3", "memory", "8M", "value_size", "8", NULL));

    (void)state;
    for (uint64_t epoch = 0; epoch < 5; epoch++) {
        /* Enough for runs and segments on disk, which must not show. */
        model_append_some(&m, d, &r, KEYS_DENSE, epoch == 1 ? 10 : 200000, 8);
        CHECK_CALL(d, deltafs_epoch_cancel(d, epoch == 3 ? NULL : "the input is gone"), DELTAFS_OK);
        CHECK_CALL(d, deltafs_epoch_cancel(d, "again"), DELTAFS_OK);
        model_append_some(&m, d, &r, KEYS_DENSE, 50, 8);
        CHECK_IS(deltafs_epoch_end(d, epoch), DELTAFS_ERR_CANCELLED);
        CHECK(epoch == 3 || strstr(deltafs_errmsg(d), "the input is gone") != NULL);
        model_discard(&m);
        model_append_some(&m, d, &r, KEYS_DENSE, 5000, 8);
        model_end_epoch(&m, d, epoch);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_check_directory(&m, path, &r);
    model_fini(&m);
}

static void test_modes(void **state)
{
    const char *path = unit_path("modes");
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
    struct deltafs_io_stat io = {.struct_size = sizeof io};
    struct deltafs_verify_counts verified = {.struct_size = sizeof verified};
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    deltafs_records *records = NULL;
    deltafs_file *file = NULL;
    uint64_t bytes;
    size_t count;
    deltafs_dir *d = unit_create(path, unit_options(NULL, NULL));

    (void)state;
    assert_int_equal(deltafs_get(d, 1, NULL, &records), DELTAFS_ERR_MODE);
    assert_int_equal(deltafs_scan(d, NULL, count_record, &count, NULL), DELTAFS_ERR_MODE);
    assert_int_equal(deltafs_scan_partition(d, 0, NULL, count_record, &count, NULL), DELTAFS_ERR_MODE);
    assert_int_equal(deltafs_stat(d, &stat), DELTAFS_ERR_MODE);
    assert_int_equal(deltafs_epoch_stat(d, 0, &epoch), DELTAFS_ERR_MODE);
    assert_int_equal(deltafs_bytes_stored(d, &bytes), DELTAFS_ERR_MODE);
    assert_int_equal(deltafs_verify(d, NULL, NULL, &verified), DELTAFS_ERR_MODE);
    assert_int_equal(deltafs_openat(d, "1", O_RDONLY, &file), DELTAFS_ERR_MODE);
    assert_int_equal(deltafs_io_stat(d, &io), DELTAFS_OK);
    assert_int_equal(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    assert_int_equal(deltafs_append(d, 1, "x", 1), DELTAFS_ERR_MODE);
    assert_int_equal(deltafs_append_many(d, 0, NULL, 0, NULL, 0, 0), DELTAFS_ERR_MODE);
    assert_int_equal(deltafs_epoch_end(d, 1), DELTAFS_ERR_MODE);
    assert_int_equal(deltafs_epoch_cancel(d, "why not"), DELTAFS_ERR_MODE);
    assert_int_equal(deltafs_openat(d, "1", O_WRONLY, &file), DELTAFS_ERR_MODE);
    assert_non_null(strstr(deltafs_errmsg(d), "reading"));
    assert_int_equal(deltafs_get(d, 1, NULL, &records), DELTAFS_ERR_NOT_FOUND);
    assert_null(records);
    assert_int_equal(deltafs_close(d), DELTAFS_OK);
    assert_int_equal(deltafs_append(NULL, 1, "x", 1), DELTAFS_ERR_INVALID);
    assert_int_equal(deltafs_epoch_end(NULL, 1), DELTAFS_ERR_INVALID);
    assert_int_equal(deltafs_get(NULL, 1, NULL, &records), DELTAFS_ERR_INVALID);
    assert_int_equal(deltafs_stat(NULL, &stat), DELTAFS_ERR_INVALID);
    assert_int_equal(deltafs_io_stat(NULL, &io), DELTAFS_ERR_INVALID);
    assert_int_equal(deltafs_close(NULL), DELTAFS_OK);
}

static void test_opening(void **state)
{
    const char *path = unit_path("opening"), *file = unit_path("file");
    deltafs_dir *d = unit_create(path, unit_options(NULL, NULL)), *other = NULL;

    (void)state;
    unit_save(file, "hello", 5);
    assert_int_equal(deltafs_create(path, NULL, &other), DELTAFS_ERR_EXISTS);
    assert_non_null(strstr(deltafs_errmsg(NULL), path));
    assert_int_equal(deltafs_create(file, NULL, &other), DELTAFS_ERR_EXISTS);
    assert_int_equal(deltafs_create(unit_path("no/such/parent"), NULL, &other), DELTAFS_ERR_NOT_FOUND);
    assert_int_equal(deltafs_create("", NULL, &other), DELTAFS_ERR_INVALID);
    assert_int_equal(deltafs_create(NULL, NULL, &other), DELTAFS_ERR_INVALID);
    assert_int_equal(deltafs_create(path, NULL, NULL), DELTAFS_ERR_INVALID);
    assert_int_equal(deltafs_open(unit_path("nothing"), NULL, &other), DELTAFS_ERR_NOT_FOUND);
    assert_int_equal(deltafs_open(unit_folder, NULL, &other), DELTAFS_ERR_NOT_DELTAFS);
    assert_int_equal(deltafs_open("", NULL, &other), DELTAFS_ERR_INVALID);
    int status = deltafs_open(file, NULL, &other);
    assert_true(status != DELTAFS_OK);
    assert_null(other);
    assert_int_equal(deltafs_close(d), DELTAFS_OK);
    /* A path that ends in a slash, and one without a folder. */
    d = unit_create(unit_path("slash/"), unit_options("sync", "commit", NULL));
    assert_int_equal(deltafs_close(d), DELTAFS_OK);
    d = unit_open(unit_path("slash//"));
    assert_int_equal(deltafs_close(d), DELTAFS_OK);
    assert_int_equal(chdir(unit_folder), 0);
    d = unit_create("bare", unit_options("sync", "commit", NULL));
    assert_int_equal(deltafs_close(d), DELTAFS_OK);
    d = unit_open("bare");
    assert_int_equal(deltafs_close(d), DELTAFS_OK);
}

static void count_damage(int status, const char *message, void *arg)
{
    *(int *)arg += status == DELTAFS_ERR_DAMAGED && strncmp(message, "moved/", 6) == 0;
}

/* A program may change its folder while it reads: files are opened when they are first needed. Messages name them as
 * the caller did. */
static void test_moved_on(void **state)
{
    struct deltafs_verify_counts stat = {.struct_size = sizeof stat};
    char *here = getcwd(NULL, 0);
    struct model m = {0};
    uint64_t bytes;
    int damages = 0;

    (void)state;
    deltafs_dir *d = unit_create(unit_path("moved"), unit_options("partitions", "3", NULL));
    for (uint64_t key = 0; key < 100; key++)
        assert_int_equal(model_append(&m, d, key, 10), DELTAFS_OK);
    assert_int_equal(deltafs_epoch_end(d, 1), DELTAFS_OK);
    model_keep(&m, 1);
    assert_int_equal(deltafs_close(d), DELTAFS_OK);
    assert_int_equal(chdir(unit_folder), 0);
    d = unit_open("moved");
    assert_int_equal(chdir("/"), 0);
    for (uint64_t key = 0; key < 100; key += 9)
        model_check_key(&m, d, key, NULL);
    model_check_scan(&m, d, NULL);
    assert_int_equal(deltafs_refresh(d), DELTAFS_OK);
    assert_int_equal(deltafs_bytes_stored(d, &bytes), DELTAFS_OK);
    unit_poke(unit_path("moved/00/p00000000.data"), 80, 0);
    unit_poke(unit_path("moved/00/p00000000.data"), 81, 1);
    assert_int_equal(deltafs_verify(d, count_damage, &damages, &stat), DELTAFS_ERR_DAMAGED);
    assert_true(damages > 0);
    assert_non_null(strstr(deltafs_errmsg(d), "moved/"));
    assert_int_not_equal(deltafs_errmsg(d)[0], '/');
    assert_int_equal(deltafs_close(d), DELTAFS_OK);
    assert_int_equal(chdir(here), 0);
    model_fini(&m);
    free(here);
}

/* Options that do not go together leave nothing behind. */
static void test_refused_options(void **state)
{
    const char *path = unit_path("refused");
    deltafs_options *o = unit_options("memory", "8M", "partitions", "5000", NULL);
    deltafs_dir *d = NULL;

    (void)state;
    assert_int_equal(deltafs_create(path, o, &d), DELTAFS_ERR_MEMORY);
    assert_non_null(strstr(deltafs_errmsg(NULL), "memory"));
    assert_false(unit_exists(path));
    deltafs_options_destroy(o);
    o = unit_options("schema", "x:f4", "value_size", "8", NULL);
    assert_int_equal(deltafs_create(path, o, &d), DELTAFS_ERR_SCHEMA);
    assert_false(unit_exists(path));
    deltafs_options_destroy(o);
    setenv("DELTAFS_CODEC", "lzma", 1);
    assert_int_equal(deltafs_create(path, NULL, &d), DELTAFS_ERR_OPTION);
    assert_false(unit_exists(path));
    unsetenv("DELTAFS_CODEC");
    assert_null(d);
}

static ssize_t fail_without_memory(struct fake_call *c)
{
    if (c->op == FAKE_LIST)
        return -ENOMEM;
    return c->op == FAKE_OPEN && strstr(c->path, "/MANIFEST") ? -ENOSPC : fake_do(c);
}

/* A create that fails leaves nothing, though there is no memory to list folders with. (The buckets stayed.) */
static void test_create_without_memory(void **state)
{
    const char *path = unit_path("scarce"), *volume = unit_path("scarce volume");
    static struct fake_io fake;
    deltafs_dir *d;

    (void)state;
    CHECK_IS(mkdir(volume, 0777), 0);
    for (int i = 0; i < 2; i++) {
        deltafs_options *o = unit_options("partitions", "2", "volumes", i == 0 ? "" : volume, NULL);
        fake_io_begin(&fake, fail_without_memory);
        CHECK_IS(deltafs_create(path, o, &d), DELTAFS_ERR_NO_SPACE);
        CHECK_IS(fake_io_end(&fake), 0);
        CHECK(!unit_exists(path));
        CHECK_IS(rmdir(volume), 0);
        CHECK_IS(mkdir(volume, 0777), 0);
        deltafs_options_destroy(o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_without_memory),
        cmocka_unit_test(test_uncommitted),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_opening),
        cmocka_unit_test(test_moved_on),
        cmocka_unit_test(test_refused_options),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
