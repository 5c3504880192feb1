/* What calls say that cannot be done as they were made: the message names the call, the directory, and the way out; and
 * a NULL for an answer is an error, no crash. */
#include <unistd.h>
#include "io/io_format.h"
#include "unit_help.h"

/* The call on `d` (or NULL) fails with `want`, and its message has the text. */
#define REFUSED(d, call, want, text)                                                                                   \
    do {                                                                                                               \
        CHECK_CALL(d, call, want);                                                                                     \
        if (!strstr(deltafs_errmsg(d), text))                                                                          \
            fail_msg("%s: no '%s' in '%s'", #call, text, deltafs_errmsg(d));                                           \
    } while (0)

static int take_record(const struct deltafs_record *record, void *arg)
{
    (void)record;
    (void)arg;
    return 0;
}

/* They crashed once. */
static void test_no_place_for_the_answer(void **state)
{
    const char *path = unit_path("answer");
    deltafs_dir *d = unit_create(path, unit_options(NULL, NULL));

    (void)state;
    REFUSED(d, deltafs_memory_stat(d, NULL), DELTAFS_ERR_INVALID, "deltafs_memory_stat: out must be given");
    REFUSED(NULL, deltafs_io_stat(d, NULL), DELTAFS_ERR_INVALID, "deltafs_io_stat");
    CHECK_CALL(d, deltafs_append(d, 1, "v", 1), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 7), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    REFUSED(d, deltafs_stat(d, NULL), DELTAFS_ERR_INVALID, "deltafs_stat: out must be given");
    REFUSED(d, deltafs_balance(d, NULL), DELTAFS_ERR_INVALID, "deltafs_balance: balance must be given");
    REFUSED(d, deltafs_bytes_stored(d, NULL), DELTAFS_ERR_INVALID, "deltafs_bytes_stored: out must be given");
    REFUSED(d, deltafs_epoch_stat(d, 0, NULL), DELTAFS_ERR_INVALID, "deltafs_epoch_stat: out must be given");
    CHECK_CALL(d, deltafs_verify(d, NULL, NULL, NULL), DELTAFS_OK);
    REFUSED(d, deltafs_stat(d, &(struct deltafs_stat){0}), DELTAFS_ERR_INVALID, "deltafs_stat: struct_size is not set");
    REFUSED(d, deltafs_verify(d, NULL, NULL, &(struct deltafs_verify_counts){0}), DELTAFS_ERR_INVALID,
            "deltafs_verify: struct_size is not set");
    REFUSED(d, deltafs_get(d, 1, NULL, NULL), DELTAFS_ERR_INVALID, "deltafs_get");
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* A caller that was compiled with an older or a newer header: the library touches only what the caller has. */
static void test_struct_sizes(void **state)
{
    const char *path = unit_path("sizes");
    struct {
        struct deltafs_epoch_stat stat;
        uint64_t more[2];
    } s;
    deltafs_dir *d = unit_create(path, unit_options(NULL, NULL));

    (void)state;
    CHECK_CALL(d, deltafs_append(d, 1, "v", 1), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 7), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    memset(&s, 0xff, sizeof s);
    s.stat.struct_size = offsetof(struct deltafs_epoch_stat, records);
    CHECK_CALL(d, deltafs_epoch_stat(d, 0, &s.stat), DELTAFS_OK);
    CHECK(s.stat.label == 7 && s.stat.records == UINT64_MAX && s.more[0] == UINT64_MAX);
    s.stat.struct_size = sizeof s;
    CHECK_CALL(d, deltafs_epoch_stat(d, 0, &s.stat), DELTAFS_OK);
    CHECK(s.stat.label == 7 && s.stat.records == 1 && s.more[0] == 0 && s.more[1] == 0);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    const struct deltafs_repair_options unset = {.dry_run = 1};
    CHECK_IS(deltafs_repair(path, &unset, NULL, NULL), DELTAFS_ERR_INVALID);
    CHECK(strstr(deltafs_errmsg(NULL), "struct_size is not set") != NULL);
}

static void test_scans(void **state)
{
    const char *path = unit_path("scans");
    deltafs_dir *d = unit_create(path, unit_options("partitions", "5", NULL));

    (void)state;
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    REFUSED(d, deltafs_scan_partition(d, 5, NULL, take_record, NULL, NULL), DELTAFS_ERR_INVALID, "no partition 5; ");
    REFUSED(d, deltafs_scan_partition(d, 5, NULL, take_record, NULL, NULL), DELTAFS_ERR_INVALID, "has 0 to 4");
    REFUSED(d, deltafs_scan_partition(d, 4, NULL, NULL, NULL, NULL), DELTAFS_ERR_INVALID, "fn must be given");
    REFUSED(d, deltafs_scan(d, NULL, NULL, NULL, NULL), DELTAFS_ERR_INVALID, "deltafs_scan: fn must be given");
    CHECK_CALL(d, deltafs_scan_partition(d, 4, NULL, take_record, NULL, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void test_scans_into_arrays(void **state)
{
    struct deltafs_arrays to = {.struct_size = sizeof to};
    const uint32_t partition = 1;
    size_t count;
    deltafs_dir *d = unit_create(unit_path("names"), unit_options("keys", "bytes", "value_size", "4", NULL));

    (void)state;
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(unit_path("names"));
    REFUSED(d, deltafs_scan_many(d, NULL, NULL, &to, &count), DELTAFS_ERR_MODE, "its keys are bytes; use deltafs_scan");
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_create(unit_path("sizes_differ"), unit_options(NULL, NULL));
    REFUSED(d, deltafs_scan_many(d, NULL, NULL, &to, &count), DELTAFS_ERR_MODE, "is open for writing");
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(unit_path("sizes_differ"));
    REFUSED(d, deltafs_scan_many(d, NULL, NULL, &to, &count), DELTAFS_ERR_MODE, "its values have different sizes");
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_create(unit_path("one_size"), unit_options("value_size", "4", NULL));
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(unit_path("one_size"));
    REFUSED(d, deltafs_scan_many(d, NULL, NULL, NULL, &count), DELTAFS_ERR_INVALID, "to and count must be given");
    REFUSED(d, deltafs_scan_many(d, NULL, NULL, &to, NULL), DELTAFS_ERR_INVALID, "to and count must be given");
    REFUSED(d, deltafs_scan_many(d, &partition, NULL, &to, &count), DELTAFS_ERR_INVALID, "no partition 1; ");
    CHECK_CALL(d, deltafs_scan_many(d, NULL, NULL, &to, &count), DELTAFS_OK);
    CHECK_IS(count, 0);
    to.struct_size = 0;
    REFUSED(d, deltafs_scan_many(d, NULL, NULL, &to, &count), DELTAFS_ERR_INVALID, "struct_size is not set");
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void test_wrong_way(void **state)
{
    const char *path = unit_path("wrong_way");
    deltafs_dir *d = unit_create(path, unit_options(NULL, NULL));
    struct deltafs_stat stat = {.struct_size = sizeof stat};

    (void)state;
    REFUSED(d, deltafs_stat(d, &stat), DELTAFS_ERR_MODE, path);
    REFUSED(d, deltafs_stat(d, &stat), DELTAFS_ERR_MODE,
            "is open for writing; open it with deltafs_open, too, to read");
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    REFUSED(d, deltafs_append(d, 1, "v", 1), DELTAFS_ERR_MODE, path);
    REFUSED(d, deltafs_epoch_end(d, 1), DELTAFS_ERR_MODE, "is open for reading; open it with deltafs_reopen");
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void test_appends(void **state)
{
    uint64_t key = 1;
    deltafs_dir *d = unit_create(unit_path("numbers"), unit_options("value_size", "4", NULL));

    (void)state;
    REFUSED(d, deltafs_append_bytes(d, "1", 1, "four", 4), DELTAFS_ERR_MODE, "deltafs_append_bytes: the keys of ");
    REFUSED(d, deltafs_append_bytes(d, "1", 1, "four", 4), DELTAFS_ERR_MODE, "append to it by deltafs_append or");
    REFUSED(d, deltafs_append_many(d, 1, &key, 8, "five5", 5, 5), DELTAFS_ERR_SIZE,
            "deltafs_append_many: a value of 5");
    REFUSED(d, deltafs_append_many(d, 1, NULL, 8, "four", 4, 4), DELTAFS_ERR_INVALID, "deltafs_append_many: no keys");
    REFUSED(d, deltafs_append(d, 1, NULL, 4), DELTAFS_ERR_INVALID, "deltafs_append: no values");
    REFUSED(d, deltafs_append(d, 1, "five5", 5), DELTAFS_ERR_SIZE, "deltafs_append: a value of 5");
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_create(unit_path("texts"), unit_options("keys", "bytes", "value_size", "4", NULL));
    REFUSED(d, deltafs_append_many(d, 1, &key, 8, "four", 4, 4), DELTAFS_ERR_MODE, "deltafs_append_many: the keys of ");
    REFUSED(d, deltafs_append_bytes(d, "1", 1, "five5", 5), DELTAFS_ERR_SIZE, "deltafs_append_bytes: a value of 5");
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void test_left_over(void **state)
{
    deltafs_dir *d = unit_create(unit_path("one"), unit_options(NULL, NULL));

    (void)state;
    CHECK_CALL(d, deltafs_append(d, 1, "v", 1), DELTAFS_OK);
    REFUSED(NULL, deltafs_close(d), DELTAFS_ERR_UNCOMMITTED, "1 record was appended after the last epoch end; it is");
    d = unit_create(unit_path("two"), unit_options(NULL, NULL));
    CHECK_CALL(d, deltafs_append(d, 1, "v", 1), DELTAFS_OK);
    CHECK_CALL(d, deltafs_append(d, 2, "v", 1), DELTAFS_OK);
    REFUSED(NULL, deltafs_close(d), DELTAFS_ERR_UNCOMMITTED, "2 records were appended after the last epoch end; they");
}

/* A job that is started again must not be told to remove what it committed. */
static void test_there_already(void **state)
{
    const char *path = unit_path("there"), *file = unit_path("file");
    deltafs_dir *d = unit_create(path, unit_options(NULL, NULL)), *other = NULL;

    (void)state;
    CHECK_CALL(d, deltafs_epoch_end(d, 7), DELTAFS_OK);
    REFUSED(NULL, deltafs_create(path, NULL, &other), DELTAFS_ERR_EXISTS, "holds 1 committed epoch; ");
    CHECK_CALL(d, deltafs_epoch_end(d, 8), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    REFUSED(NULL, deltafs_create(path, NULL, &other), DELTAFS_ERR_EXISTS, "holds 2 committed epochs; ");
    REFUSED(NULL, deltafs_create(path, NULL, &other), DELTAFS_ERR_EXISTS,
            "epochs; reopen it to append to it (deltafs-mpi import --append), or choose");
    CHECK(!strstr(deltafs_errmsg(NULL), "remove"));
    unit_save(file, "hello", 5);
    REFUSED(NULL, deltafs_create(file, NULL, &other), DELTAFS_ERR_EXISTS, "exists already; choose another name");
    CHECK(other == NULL);
}

/* Epochs of one record each, of key 1, and a data log cut after those labelled 0 to 10 * (`whole` - 1). */
static deltafs_dir *open_cut(const char *path, uint64_t epochs, uint64_t whole)
{
    char log[512];
    size_t n;
    deltafs_dir *d = unit_create(path, unit_options("codec", "none", NULL));

    for (uint64_t i = 0; i < epochs; i++) {
        CHECK_CALL(d, deltafs_append(d, 1, &i, sizeof i), DELTAFS_OK);
        CHECK_CALL(d, deltafs_epoch_end(d, 10 * i), DELTAFS_OK);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    snprintf(log, sizeof log, "%s/00/p00000000.data", path);
    free(unit_load(log, &n));
    /* Epochs are alike. */
    n = LOG_HEADER_SIZE + (n - LOG_HEADER_SIZE) / epochs * whole + 1;
    CHECK_IS(truncate(log, (off_t)n), 0);
    return unit_open(path);
}

/* The call fails, and `got`, which is freed, has `count` records and lacks these epochs. */
static void check_missing(deltafs_records *got, size_t count, size_t missing, const uint64_t *label)
{
    CHECK(got != NULL);
    CHECK_IS(got->count, count);
    CHECK_IS(got->missing_count, missing);
    CHECK(memcmp(got->missing, label, missing * sizeof *label) == 0);
    deltafs_records_destroy(got);
}

/* An answer lists all epochs that it lacks; its message is about the first damage. */
static void test_what_is_missing(void **state)
{
    const struct deltafs_range two = {30, 40}, one = {40, 40};
    const uint64_t *labels = (const uint64_t[]){20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130};
    deltafs_records *got = NULL, *many[2];
    deltafs_dir *d = open_cut(unit_path("few"), 5, 2);

    (void)state;
    REFUSED(d, deltafs_get(d, 1, NULL, &got), DELTAFS_ERR_DAMAGED, "damaged at offset");
    CHECK(got && got->count == 2 && got->record[1].label == 10);
    check_missing(got, 2, 3, labels);
    REFUSED(d, deltafs_get(d, 1, &two, &got), DELTAFS_ERR_DAMAGED, "damaged at offset");
    check_missing(got, 0, 2, labels + 1);
    REFUSED(d, deltafs_get_many(d, 2, (uint64_t[]){1, 2}, &one, many), DELTAFS_ERR_DAMAGED, "damaged at offset");
    check_missing(many[0], 0, 1, labels + 2);
    CHECK(many[1] == NULL); /* the index, which is whole, does not have this key */
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = open_cut(unit_path("many"), 14, 3);
    REFUSED(d, deltafs_get(d, 1, NULL, &got), DELTAFS_ERR_DAMAGED, "damaged at offset");
    check_missing(got, 3, 11, labels + 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    /* Without the partition's files nothing of it is there. */
    CHECK_IS(unlink(unit_path("few/00/p00000000.data")), 0);
    d = unit_open(unit_path("few"));
    REFUSED(d, deltafs_get(d, 1, &two, &got), DELTAFS_ERR_DAMAGED, "");
    check_missing(got, 0, 2, labels + 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

struct damages {
    unsigned count, cut;
};

static void count_damage(int status, const char *message, void *arg)
{
    struct damages *n = arg;

    CHECK_IS(status, DELTAFS_ERR_DAMAGED);
    n->count++;
    n->cut += strstr(message, "truncated at offset") != NULL;
}

static void test_cut_short(void **state)
{
    struct damages n = {0};
    struct deltafs_verify_counts stat = {.struct_size = sizeof stat};
    deltafs_dir *d = open_cut(unit_path("cut"), 5, 2);

    (void)state;
    CHECK_CALL(d, deltafs_verify(d, count_damage, &n, &stat), DELTAFS_ERR_DAMAGED);
    CHECK_IS(n.cut, 1);
    CHECK_IS(n.count, 1 + 3);
    CHECK_IS(stat.damages, n.count);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_place_for_the_answer),
        cmocka_unit_test(test_scans),
        cmocka_unit_test(test_scans_into_arrays),
        cmocka_unit_test(test_wrong_way),
        cmocka_unit_test(test_appends),
        cmocka_unit_test(test_left_over),
        cmocka_unit_test(test_there_already),
        cmocka_unit_test(test_struct_sizes),
        cmocka_unit_test(test_what_is_missing),
        cmocka_unit_test(test_cut_short),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
