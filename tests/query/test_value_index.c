/* Indexes by value that are written together with their directory: what is written when, and what is there after an
 * epoch, of the directory or of an index, has failed. And those of indexes of files, of which any operation fails. */
#include <errno.h>
#include <malloc.h>
#include <time.h>
#include <unistd.h>
#include <deltafs/deltafs_query.h>
#include "query/value_index.h"
#include "unit_help.h"
#include "unit_io.h"
#include "unit_kth.h"
#include "unit_rows.h"

#define RECORDS  1000
#define PATIENCE 60 /* seconds, after which something is taken not to come */

static deltafs_dir *create(const char *name)
{
    return unit_create(unit_path("%s", name),
                       unit_options("schema", "v:f8", "threads", "2", "index_by", "size:2*v;other:v+1", NULL));
}

static void append(deltafs_dir *d)
{
    for (uint64_t key = 0; key < RECORDS; key++) {
        double value = (double)(key * 7 % RECORDS);
        CHECK_CALL(d, deltafs_append(d, key, &value, sizeof value), DELTAFS_OK);
    }
}

/* The epochs of a directory have these labels. */
static void check_labels(const char *path, const uint64_t *label, size_t n)
{
    struct deltafs_epoch_stat s = {.struct_size = sizeof s};
    deltafs_dir *d = unit_open(path);

    for (size_t i = 0; i < n; i++) {
        CHECK_CALL(d, deltafs_epoch_stat(d, i, &s), DELTAFS_OK);
        CHECK_IS(s.label, label[i]);
        CHECK_IS(s.records, RECORDS);
    }
    CHECK_CALL(d, deltafs_epoch_stat(d, n, &s), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* An epoch's records with large values are found by this index (NULL: without one). */
static void check_rows(const char *path, uint64_t label, const char *where, const char *index)
{
    const struct deltafs_range range = {label, label};
    const struct deltafs_select_options o = {.struct_size = sizeof o, .where = where, .range = &range};
    const struct deltafs_record *row;
    deltafs_dir *d = unit_open(path);
    deltafs_select *s;
    size_t n, all = 0;

    CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
    if (index)
        CHECK(deltafs_select_index(s) && strcmp(deltafs_select_index(s), index) == 0);
    else
        CHECK(!deltafs_select_index(s));
    do {
        CHECK_CALL(d, deltafs_select_next(s, &row, &n), DELTAFS_OK);
        all += n;
    } while (n > 0);
    CHECK_IS(all, 4);
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* ---- Order ---- */

/* The directory is about to commit: its index is being written, but has not committed. */
static void look_at_index(void *is_written)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    time_t end = time(NULL) + PATIENCE;

    while (unit_io_held() == 0 && time(NULL) < end)
        nanosleep(&nap, NULL);
    *(int *)is_written = unit_io_held() > 0;
    check_labels(unit_path("order/by/size"), NULL, 0);
    unit_io_release();
}

/* An index is written while its directory is; and committed behind it. */
static void test_order(void **state)
{
    static const uint64_t labels[] = {5};
    int is_written = 0;

    (void)state;
    unit_io_begin();
    deltafs_dir *d = create("order");
    append(d);
    unit_io_hold("order/by/size/00");
    unit_io_call(OP_WRITE, "order/MANIFEST", look_at_index, &is_written);
    CHECK_CALL(d, deltafs_epoch_end(d, 5), DELTAFS_OK);
    CHECK(is_written);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_io_end();
    check_labels(unit_path("order/by/size"), labels, 1);
    check_rows(unit_path("order"), 5, "2*v > 1991", "size");
}

/* ---- Failures ---- */

/* The directory cannot commit: its indexes do not either, and go on with its next epoch. */
static void test_directory_fails(void **state)
{
    static const uint64_t labels[] = {1, 2};
    static const char *const paths[] = {"fails", "fails/by/size", "fails/by/other"};

    (void)state;
    unit_io_begin();
    deltafs_dir *d = create("fails");
    append(d);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    for (int i = 0; i < 3; i++) { /* the data log, the index log, the manifest */
        static const char *const names[] = {"fails/00/p00000000.data", "fails/00/p00000000.index", "fails/MANIFEST"};
        append(d);
        unit_io_fail(OP_WRITE, names[i], 0, 1, EIO);
        CHECK_CALL(d, deltafs_epoch_end(d, 2), DELTAFS_ERR_IO);
        CHECK_IS(unit_io_failures(), 1);
        CHECK(!strstr(deltafs_errmsg(d), "which ended before"));
    }
    append(d);
    CHECK_CALL(d, deltafs_epoch_cancel(d, "not this one"), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 2), DELTAFS_ERR_CANCELLED);
    append(d);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_ERR_LABEL);
    append(d);
    CHECK_CALL(d, deltafs_epoch_end(d, 2), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_io_end();
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        check_labels(unit_path("%s", paths[i]), labels, 2);
        d = unit_open(unit_path("%s", paths[i]));
        struct deltafs_verify_counts found = {.struct_size = sizeof found};
        CHECK_CALL(d, deltafs_verify(d, NULL, NULL, &found), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
    for (uint64_t label = 1; label <= 2; label++) {
        check_rows(unit_path("fails"), label, "2*v > 1991", "size");
        check_rows(unit_path("fails"), label, "v + 1 > 996", "other");
    }
}

/* An index cannot say what was computed, or not commit: it ends, without the epoch. The directory and the other index
 * go on. */
static void test_index_fails(void **state)
{
    static const uint64_t labels[] = {1, 2, 3};

    (void)state;
    for (uint64_t skip = 0; skip <= 2; skip += 2) { /* the manifest's copy is written between the two */
        const char *path = unit_path("ends.%d", (int)skip);
        unit_io_begin();
        deltafs_dir *d = create(path + strlen(unit_folder) + 1);
        append(d);
        CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
        append(d);
        unit_io_fail(OP_WRITE, "by/size/MANIFEST", skip, 1, EIO);
        CHECK_CALL(d, deltafs_epoch_end(d, 2), DELTAFS_OK);
        CHECK_IS(unit_io_failures(), 1);
        append(d);
        CHECK_CALL(d, deltafs_epoch_end(d, 3), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_ERR_IO);
        CHECK(strstr(deltafs_errmsg(NULL), "the directory is complete, but an index by value of it is not"));
        unit_io_end();
        check_labels(path, labels, 3);
        check_labels(unit_path("ends.%d/by/size", (int)skip), labels, 1);
        check_labels(unit_path("ends.%d/by/other", (int)skip), labels, 3);
        check_rows(path, 1, "2*v > 1991", "size");
        check_rows(path, 2, "2*v > 1991", NULL);
        check_rows(path, 3, "v + 1 > 996", "other");
    }
}

/* ---- Several indexes ---- */

/* Whether an index is used of whose logs no more than so many reads succeed. */
static int is_used(const char *path, uint64_t reads)
{
    const struct deltafs_select_options o = {.struct_size = sizeof o, .where = "2*v > 1991", .fields = ""};
    deltafs_select *s;

    unit_io_begin();
    deltafs_dir *d = unit_open(path);
    unit_io_fail(OP_READ, "by/size/00", reads, UINT64_MAX, EIO);
    CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
    int is = deltafs_select_index(s) != NULL;
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_io_end();
    return is;
}

/* That an index has all that the rows need, of all epochs, is known before any epoch is looked up in it. */
static void test_several(void **state)
{
    const char *path = unit_path("several");
    uint64_t reads = 0;

    (void)state;
    deltafs_dir *d = create("several");
    append(d);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(deltafs_reopen(path, NULL, &d), DELTAFS_OK);
    append(d);
    CHECK_CALL(d, deltafs_epoch_end(d, 2), DELTAFS_OK); /* not indexed */
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(rename(unit_path("several/by/other"), unit_path("several/aside")), 0);
    while (!is_used(path, reads))
        reads++;
    CHECK_IS(rename(unit_path("several/aside"), unit_path("several/by/other")), 0);
    CHECK(reads > 0 && is_used(path, reads));
}

/* ---- The largest values ---- */

#define TOP_EPOCHS 20
#define TOP_ROWS   4000
#define TOP_NEAR   900 /* of which so many are among those that are looked at in each epoch, but only one is taken */

/* The memory of a select of the row with the largest value, in the first `epochs`; *value and *label are the row's. */
static size_t memory_of_top(deltafs_dir *d, uint64_t epochs, double *value, uint64_t *label)
{
    const struct deltafs_range range = {0, epochs - 1};
    const struct deltafs_select_options o = {
        .struct_size = sizeof o, .by = "2*v", .top = 1, .fields = "v", .range = &range};
    const struct mallinfo2 before = mallinfo2();
    const struct deltafs_record *row;
    deltafs_select *s;
    size_t n;

    CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
    CHECK(deltafs_select_index(s));
    CHECK_CALL(d, deltafs_select_next(s, &row, &n), DELTAFS_OK);
    const struct mallinfo2 now = mallinfo2();
    CHECK_IS(n, 1);
    memcpy(value, row->value, sizeof *value);
    *label = row->label;
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    return now.uordblks + now.hblkhd - before.uordblks - before.hblkhd;
}

/* What is not taken of an epoch needs no memory while the next ones are looked at. */
static void test_top_memory(void **state)
{
    double largest = 1 + (TOP_NEAR - 1) * 0x1p-20, value;
    uint64_t label;

    (void)state;
    deltafs_dir *d = unit_create(unit_path("top"), unit_options("schema", "v:f8", "index_by", "size:2*v +v", NULL));
    for (label = 0; label < TOP_EPOCHS; label++) {
        for (uint64_t key = 0; key < TOP_ROWS; key++) {
            value = key < TOP_NEAR ? 1 + (double)((key + label) % TOP_NEAR) * 0x1p-20 : -(double)key;
            CHECK_CALL(d, deltafs_append(d, key, &value, sizeof value), DELTAFS_OK);
        }
        CHECK_CALL(d, deltafs_epoch_end(d, label), DELTAFS_OK);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(unit_path("top"));
    memory_of_top(d, 1, &value, &label);
    size_t one = memory_of_top(d, 1, &value, &label);
    CHECK(value == largest && label == 0);
    size_t all = memory_of_top(d, TOP_EPOCHS, &value, &label);
    CHECK(value == largest && label == TOP_EPOCHS - 1);
    if (all > one + TOP_EPOCHS * TOP_NEAR * sizeof(double))
        fail_msg("%zu bytes are used, of one epoch %zu", all, one);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* A name can be longer than that of a file. */
static void test_long_name(void **state)
{
    const char *path = unit_path("long");
    char name[301], schema[400], by[400];
    float value[2] = {1, 2};

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(schema, sizeof schema, "x:f4,%s:f4", name);
    snprintf(by, sizeof by, "e:x +%s", name);
    deltafs_dir *d = unit_create(path, unit_options("schema", schema, "index_by", by, NULL));
    CHECK_CALL(d, deltafs_append(d, 1, value, sizeof value), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(unit_path("long/by/e"));
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    CHECK_CALL(d, deltafs_stat(d, &stat), DELTAFS_OK);
    CHECK(strstr(stat.schema, name) && strlen(stat.schema) == strlen(VALUE_INDEX_KEY ":u8,:f4") + strlen(name));
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* ---- Indexes of files ---- */

#define FILES     2
#define FILE_ROWS 500

static int open_index(void *ctx, int is_made, const char *path, const deltafs_options *options, deltafs_dir **out)
{
    (void)ctx;
    return is_made ? deltafs_reopen(path, options, out) : deltafs_create(path, options, out);
}

/* Index the files by the key, which is the value that is known. */
static int index_files(const char *path, uint64_t *tables)
{
    static const struct collective alone = COLLECTIVE_ALONE;
    static const struct value_index_ranks ranks = {.group = &alone, .open = open_index};
    struct value_index_maker m = {.ranks = &ranks};
    struct error e = {.status = DELTAFS_OK};
    int status = deltafs_private_value_index_make(&m, path, "half:key/2 +n", &e);

    *tables = m.epochs;
    return status;
}

/* The sum of the keys of rows that a select finds; `fields` "y": they are read from the files. *is_used: whether the
 * index is. */
static int sum_rows(const char *path, const char *fields, uint64_t *sum, int *is_used)
{
    const struct deltafs_select_options o = {.struct_size = sizeof o, .where = "key/2 < 2**61", .fields = fields};
    const struct deltafs_record *row;
    deltafs_fileindex *k = NULL;
    deltafs_select *s = NULL;
    size_t n = 1;
    int status = deltafs_fileindex_open(path, NULL, &k);

    *sum = 0;
    if (status == DELTAFS_OK)
        status = deltafs_select_open_fileindex(k, &o, &s);
    *is_used = status == DELTAFS_OK && deltafs_select_index(s) != NULL;
    while (status == DELTAFS_OK && n > 0) {
        status = deltafs_select_next(s, &row, &n);
        for (size_t i = 0; status == DELTAFS_OK && i < n; i++)
            *sum += row[i].key;
    }
    deltafs_select_close(s);
    deltafs_fileindex_close(k);
    return status;
}

static void check_sums(const char *path, uint64_t wanted, int must_use)
{
    static const char *const fields[] = {"n", "y"};
    uint64_t sum;
    int is_used;

    for (size_t i = 0; i < 2; i++) {
        CHECK_IS(sum_rows(path, fields[i], &sum, &is_used), DELTAFS_OK);
        CHECK(sum == wanted && (is_used || !must_use));
    }
}

/* A new index of new files. Returns the sum. */
static uint64_t make_files(const char *path, struct rng *r)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < FILES; i++) {
        struct oracle file = oracle_make(r, unit_path("rows.%d", (int)i), i, FILE_ROWS, 0);
        for (size_t k = 0; k < FILE_ROWS; k++)
            sum += (file.key[k] = rng_below(r, UINT64_C(1) << 63)) < UINT64_C(1) << 62 ? file.key[k] : 0;
        write_and_index(path, &file);
        oracles_free(&file, 1);
    }
    return sum;
}

/* Each operation of the command fails: all rows are found then, and the command completes the index. */
static void test_files_made(void **state)
{
    struct rng r = rng_init(2619);
    const char *path = unit_path("files"), *by = unit_path("files/by/half");
    const uint64_t wanted = make_files(path, &r);
    uint64_t tables;
    int failed = 1;

    (void)state;
    for (uint64_t i = 0; failed; i++) {
        unit_kth_begin_default(i, EIO);
        unit_kth_count(1);
        int status = index_files(path, &tables);
        unit_kth_count(0);
        failed = unit_kth_end();
        CHECK(failed || status == DELTAFS_OK);
        check_sums(path, wanted, status == DELTAFS_OK);
        CHECK_IS(index_files(path, &tables), DELTAFS_OK);
        check_sums(path, wanted, 1);
        if (failed)
            CHECK_IS(deltafs_remove(by), DELTAFS_OK);
    }
    CHECK_IS(index_files(path, &tables), DELTAFS_OK);
    CHECK_IS(tables, 0);
}

/* Each operation of a select fails: all rows, or an error. */
static void test_files_read(void **state)
{
    struct rng r = rng_init(2620);
    const char *path = unit_path("read");
    const uint64_t wanted = make_files(path, &r);
    uint64_t sum, tables, used = 0;
    int failed = 1, is_used;

    (void)state;
    CHECK_IS(index_files(path, &tables), DELTAFS_OK);
    CHECK_IS(tables, FILES);
    for (uint64_t i = 0; failed; i++) {
        unit_kth_begin_default(i, EIO);
        unit_kth_count(1);
        int status = sum_rows(path, "y", &sum, &is_used);
        unit_kth_count(0);
        failed = unit_kth_end();
        CHECK(status != DELTAFS_OK || sum == wanted);
        CHECK(failed || (status == DELTAFS_OK && is_used));
        used += is_used == 0 && status == DELTAFS_OK;
    }
    CHECK(used > 0); /* times that the index could not be read, and the rows were found nevertheless */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),      cmocka_unit_test(test_directory_fails), cmocka_unit_test(test_index_fails),
        cmocka_unit_test(test_several),    cmocka_unit_test(test_top_memory),      cmocka_unit_test(test_long_name),
        cmocka_unit_test(test_files_made), cmocka_unit_test(test_files_read),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
