/* Scanning the rows of an index, and selecting from them, against an oracle. (tests/tools/select_files.sh compares many
 * selects with those of a directory.) */
#include <errno.h>
#include <unistd.h>
#include <deltafs/deltafs_query.h>
#include "base/coding.h"
#include "fileindex/fileindex_scan.h"
#include "query/select_files.h"
#include "unit_help.h"
#include "unit_kth.h"
#include "unit_rows.h"

/* The rows that a scan should hand out next. */
struct wanted {
    const struct oracle *file;
    size_t files, at;
    uint64_t row, rows, stop_at; /* `rows` so far; 0: does not stop */
    int has_padding;             /* rows with the key 0 are left out */
};

static void wanted_skip(struct wanted *w)
{
    while (w->at < w->files && (w->row == w->file[w->at].rows || (w->has_padding && w->file[w->at].key[w->row] == 0))) {
        w->row = w->row == w->file[w->at].rows ? 0 : w->row + 1;
        w->at += w->row == 0;
    }
}

static int wanted_check(const struct deltafs_row *row, void *arg)
{
    struct wanted *w = arg;
    uint8_t record[RECORD], value[RECORD - 8];

    wanted_skip(w);
    CHECK(w->at < w->files);
    const struct oracle *o = &w->file[w->at];
    oracle_record(o, w->row, record);
    memcpy(value, record, 4);
    memcpy(value + 4, record + 12, 12);
    CHECK(row->key == o->key[w->row] && row->label == o->label && row->row == w->row);
    CHECK(row->size == sizeof value && memcmp(row->value, value, sizeof value) == 0);
    CHECK(strcmp(row->path, o->path) == 0 && strcmp(row->schema, "x:f4,n:u4,y:f8") == 0);
    w->row++;
    w->rows++;
    return w->rows == w->stop_at ? 7 : 0;
}

/* The status of a scan, which must hand out all rows of these files. */
static int scan(deltafs_fileindex *k, const struct deltafs_range *range, const struct oracle *file, size_t files,
                int has_padding)
{
    struct wanted w = {.file = file, .files = files, .has_padding = has_padding};
    int stopped = 1, status = deltafs_fileindex_scan(k, range, wanted_check, &w, &stopped);

    wanted_skip(&w);
    CHECK_IS(stopped, 0);
    CHECK_IS(w.at, files);
    return status;
}

/* Plain and logical files, one of them without rows, one of several blocks; indexed in another order. */
static void test_scan(void **state)
{
    static const uint64_t rows[] = {300, 0, 60000, 1};
    struct rng r = rng_init(2611);
    struct oracle file[4];
    const char *index = unit_path("scan");
    struct wanted w = {.file = file, .files = 4, .stop_at = 301};
    deltafs_fileindex *k;
    int stopped;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        file[i] = oracle_make(&r, unit_path("scan.%zu", i), i < 2 ? i : 2, rows[i], rng_below(&r, 30));
        (i % 2 ? oracle_write_logical : oracle_write)(&file[i]);
    }
    for (size_t i = 0; i < 4; i++)
        CHECK_IS(index_one(index, &file[i < 2 ? 1 - i : i]), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_open(index, NULL, &k), DELTAFS_OK);
    CHECK_IS(scan(k, NULL, file, 4, 0), DELTAFS_OK);
    CHECK_IS(scan(k, &(struct deltafs_range){1, 2}, file + 1, 3, 0), DELTAFS_OK);
    CHECK_IS(scan(k, &(struct deltafs_range){0, 0}, file, 1, 0), DELTAFS_OK);
    CHECK_IS(scan(k, &(struct deltafs_range){3, 9}, file, 0, 0), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_scan(k, NULL, wanted_check, &w, &stopped), DELTAFS_OK);
    CHECK_IS(stopped, 7);
    CHECK_IS(deltafs_fileindex_scan(k, NULL, NULL, &w, &stopped), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_fileindex_scan(NULL, NULL, wanted_check, &w, &stopped), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_fileindex_close(k), DELTAFS_OK);
    oracles_free(file, 4);
}

/* A row that the index leaves out is left out by a scan, too. */
static void test_padding(void **state)
{
    struct rng r = rng_init(2612);
    struct oracle file = oracle_make(&r, unit_path("padding.1"), 1, 500, 0);
    deltafs_options *o = unit_options("padding", "0", NULL);
    deltafs_indexer *ix;
    deltafs_fileindex *k;

    (void)state;
    for (size_t i = 0; i < 500; i += 3)
        file.key[i] = 0;
    oracle_write(&file);
    CHECK_IS(deltafs_indexer_open(NULL, file.path, o, &ix), DELTAFS_OK);
    CHECK_IS(oracle_index(&file, ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_open(file.path, NULL, &k), DELTAFS_OK);
    CHECK_IS(scan(k, NULL, &file, 1, 1), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_close(k), DELTAFS_OK);
    deltafs_options_destroy(o);
    free(file.key);
}

static int take_row(const struct deltafs_row *row, void *arg)
{
    (void)row;
    ++*(uint64_t *)arg;
    return 0;
}

/* Look up the keys of some rows while they are scanned. */
static int look_up(const struct deltafs_row *row, void *index)
{
    const struct deltafs_range range = {row->label, row->label};
    uint64_t n = 0;

    if (row->row % 100 == 0)
        CHECK_IS(deltafs_fileindex_get(index, row->key, &range, take_row, &n, NULL), DELTAFS_OK);
    CHECK(row->row % 100 != 0 || n > 0);
    return 0;
}

/* What was written to, or has gone, is missing; the others are handed out. (Looking a key up meanwhile lost what was
 * missing.) */
static void test_changed(void **state)
{
    struct rng r = rng_init(2613);
    struct oracle file[3];
    const char *index = unit_path("changed");
    const uint64_t *missing;
    deltafs_fileindex *k;
    size_t n;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        file[i] = oracle_make(&r, unit_path("changed.%zu", i), i, 300, 0);
        write_and_index(index, &file[i]);
    }
    oracle_write(&file[1]);
    CHECK_IS(deltafs_fileindex_open(index, NULL, &k), DELTAFS_OK);
    struct oracle others[] = {file[0], file[2]};
    CHECK_IS(scan(k, NULL, others, 2, 0), DELTAFS_ERR_CHANGED);
    CHECK(strstr(deltafs_errmsg(NULL), "changed.1: was written to since its keys were indexed"));
    CHECK_IS(deltafs_fileindex_missing(k, &missing, &n), DELTAFS_OK);
    CHECK(n == 1 && missing[0] == 1);
    CHECK_IS(deltafs_fileindex_scan(k, NULL, look_up, k, NULL), DELTAFS_ERR_CHANGED);
    CHECK_IS(deltafs_fileindex_missing(k, &missing, &n), DELTAFS_OK);
    CHECK(n == 1 && missing[0] == 1);
    CHECK_IS(scan(k, &(struct deltafs_range){2, 2}, file + 2, 1, 0), DELTAFS_OK);
    unit_remove(file[2].path);
    CHECK_IS(deltafs_fileindex_close(k), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_open(index, NULL, &k), DELTAFS_OK);
    CHECK_IS(scan(k, NULL, file, 1, 0), DELTAFS_ERR_CHANGED);
    CHECK(strstr(deltafs_errmsg(NULL), "there are more faults"));
    CHECK_IS(deltafs_fileindex_close(k), DELTAFS_OK);
    oracles_free(file, 3);
}

/* ---- Selecting ---- */

/* The number of rows that a select returns, and its status at the end. */
static uint64_t count_rows(deltafs_fileindex *k, const struct deltafs_select_options *o, int *status)
{
    const struct deltafs_record *row;
    deltafs_select *s = NULL;
    uint64_t rows = 0;
    size_t n = 1;

    *status = deltafs_select_open_fileindex(k, o, &s);
    while (*status == DELTAFS_OK && n > 0) {
        *status = deltafs_select_next(s, &row, &n);
        rows += *status == DELTAFS_OK ? n : 0;
    }
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    return rows;
}

/* If the rows of an epoch are too many, they are those of the files, in their order. */
static void test_many(void **state)
{
    struct rng r = rng_init(2617);
    struct oracle file[2];
    const char *index = unit_path("many");
    deltafs_options *options = unit_options("memory", "8M", NULL);
    const struct deltafs_select_options o = {.struct_size = sizeof o, .fields = "n"};
    const struct deltafs_record *row;
    deltafs_fileindex *k;
    deltafs_select *s;
    uint64_t rows = 0;
    size_t n;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        file[i] = oracle_make(&r, unit_path("many.%zu", i), 3, 50000, 0);
        write_and_index(index, &file[i]);
    }
    CHECK_IS(deltafs_fileindex_open(index, options, &k), DELTAFS_OK);
    CHECK_IS(deltafs_select_open_fileindex(k, &o, &s), DELTAFS_OK);
    do {
        CHECK_IS(deltafs_select_next(s, &row, &n), DELTAFS_OK);
        for (size_t i = 0; i < n; i++, rows++) {
            uint8_t record[RECORD];
            oracle_record(&file[rows / 50000], rows % 50000, record);
            CHECK(row[i].key == get_u64(record + 4) && row[i].label == 3 && row[i].size == 4);
            CHECK(memcmp(row[i].value, record + 12, 4) == 0);
        }
    } while (n > 0);
    CHECK_IS(rows, 100000);
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_close(k), DELTAFS_OK);
    deltafs_options_destroy(options);
    oracles_free(file, 2);
}

/* Few keys are looked up: their rows, in the order of keys, tables and rows. */
static void test_few_keys(void **state)
{
    static const uint64_t keys[] = {3, 7, 99, 4711, UINT64_MAX};
    struct rng r = rng_init(2618);
    struct oracle file[3];
    const char *index = unit_path("few");
    const struct deltafs_key_list few = {.count = 5, .number = keys};
    const struct deltafs_range range = {3, 3};
    struct deltafs_select_options o = {
        .struct_size = sizeof o, .where = "key != 7", .fields = "n", .range = &range, .keys = &few};
    const struct deltafs_record *row = NULL;
    uint8_t record[RECORD];
    deltafs_fileindex *k;
    deltafs_select *s;
    size_t n = 0, at = 0;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        file[i] = oracle_make(&r, unit_path("few.%zu", i), i < 2 ? 3 : 4, 20000, i);
        for (size_t row_at = i; row_at < 20000; row_at += 4999)
            file[i].key[row_at] = keys[row_at % 4];
        write_and_index(index, &file[i]);
    }
    CHECK_IS(deltafs_fileindex_open(index, NULL, &k), DELTAFS_OK);
    CHECK_IS(deltafs_select_open_fileindex(k, &o, &s), DELTAFS_OK);
    CHECK_IS(deltafs_select_next(s, &row, &n), DELTAFS_OK);
    for (size_t i = 0; i < 5; i++)
        for (size_t f = 0; f < 2; f++)
            for (uint64_t j = 0; j < 20000; j++) {
                if (file[f].key[j] != keys[i] || keys[i] == 7)
                    continue;
                oracle_record(&file[f], j, record);
                CHECK(at < n && row[at].key == keys[i] && row[at].label == 3 && row[at].size == 4);
                CHECK(memcmp(row[at++].value, record + 12, 4) == 0);
            }
    CHECK(at == n && n > 6);
    CHECK_IS(deltafs_select_next(s, &row, &n), DELTAFS_OK);
    CHECK_IS(n, 0);
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    /* What is wrong with a file is said, and the rows of the other are there. */
    oracle_write(&file[1]);
    int status;
    uint64_t rows = count_rows(k, &o, &status);
    CHECK_IS(status, DELTAFS_ERR_CHANGED);
    CHECK(rows > 0 && rows < at);
    CHECK_IS(deltafs_fileindex_close(k), DELTAFS_OK);
    oracles_free(file, 3);
}

/* All shares of tables together are all rows, in order. */
static void test_shares(void **state)
{
    struct rng r = rng_init(2614);
    struct oracle file[3];
    const char *index = unit_path("shares");
    struct select_files *f;
    struct table_part part;
    struct error e;
    deltafs_fileindex *k;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        file[i] = oracle_make(&r, unit_path("shares.%zu", i), 4, i == 1 ? 0 : 200 + i, 0);
        write_and_index(index, &file[i]);
    }
    CHECK_IS(deltafs_fileindex_open(index, NULL, &k), DELTAFS_OK);
    CHECK_IS(select_files_create(k, NULL, 1, &f, &e), DELTAFS_OK);
    CHECK_IS(f->manifest.partitions, 3);
    for (f->unit_rows = 1; f->unit_rows < 300; f->unit_rows = f->unit_rows * 3 + 1) {
        struct wanted w = {.file = file, .files = 3};
        int stop = 0;
        for (uint32_t i = 0; select_files_part(f, 0, i, &part); i++)
            CHECK_IS(fileindex_scan_part(k, &part, wanted_check, &w, &stop, &e), DELTAFS_OK);
        CHECK_IS(w.rows, 402);
    }
    select_files_destroy(f);
    CHECK_IS(deltafs_fileindex_close(k), DELTAFS_OK);
    oracles_free(file, 3);
}

/* Rows that should be handed out next. */
struct some_rows {
    const struct oracle *file;
    const uint64_t *row;
    size_t at;
};

static int some_check(const struct deltafs_row *row, void *arg)
{
    struct some_rows *w = arg;
    uint8_t record[RECORD], value[RECORD - 8];

    CHECK(row->row == w->row[w->at] && row->key == w->file->key[row->row]);
    oracle_record(w->file, row->row, record);
    memcpy(value, record, 4);
    memset(value + 4, 0, 4); /* n is not wanted */
    memcpy(value + 8, record + 16, 8);
    CHECK(row->size == sizeof value && memcmp(row->value, value, sizeof value) == 0);
    w->at++;
    return 0;
}

/* Some rows alone: side by side, near to each other, far apart; more than are read at once. */
static void test_some(void **state)
{
    static const uint64_t steps[] = {1, 2, 9, 500, 4000, 150000};
    static const uint8_t wanted[] = {1, 0, 1};
    struct rng r = rng_init(2618);
    struct oracle file = oracle_make(&r, unit_path("some.1"), 1, 150000, 0);
    uint64_t *row = malloc(file.rows * sizeof *row);
    struct error e;
    deltafs_fileindex *k;

    (void)state;
    assert_non_null(row);
    write_and_index(NULL, &file);
    CHECK_IS(deltafs_fileindex_open(file.path, NULL, &k), DELTAFS_OK);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const struct table_part part = {.end = file.rows, .count = 3, .wanted = wanted};
        struct some_rows w = {.file = &file, .row = row};
        size_t n = 0;
        int stop = 0;
        for (uint64_t at = rng_below(&r, steps[i]); at < file.rows; at += 1 + rng_below(&r, 2 * steps[i] - 1))
            row[n++] = at;
        CHECK_IS(fileindex_scan_rows(k, &part, row, n, some_check, &w, &stop, &e), DELTAFS_OK);
        CHECK(w.at == n && n > 0);
    }
    CHECK_IS(deltafs_fileindex_close(k), DELTAFS_OK);
    free(row);
    oracles_free(&file, 1);
}

/* Each operation of a scan and of a select fails in turn: either all rows, or an error; then it works again. */
static void test_fault(void **state)
{
    struct rng r = rng_init(2615);
    struct oracle file = oracle_make(&r, unit_path("fault.1"), 1, 400, 0);
    const struct deltafs_select_options o = {.struct_size = sizeof o, .where = "key >= 0", .fields = "y"};
    deltafs_fileindex *k;
    int failed = 1, status;

    (void)state;
    write_and_index(NULL, &file);
    for (uint64_t i = 0; failed; i++) {
        struct wanted w = {.file = &file, .files = 1};
        unit_kth_begin_default(i, EIO);
        unit_kth_count(1);
        status = deltafs_fileindex_open(file.path, NULL, &k);
        if (status == DELTAFS_OK) {
            status = deltafs_fileindex_scan(k, NULL, wanted_check, &w, NULL);
            CHECK(status != DELTAFS_OK || w.rows == 400);
            if (status == DELTAFS_OK) {
                uint64_t rows = count_rows(k, &o, &status);
                CHECK(status != DELTAFS_OK || rows == 400);
            }
            deltafs_fileindex_close(k);
        }
        unit_kth_count(0);
        failed = unit_kth_end();
        CHECK(failed || status == DELTAFS_OK);
    }
    free(file.key);
}

/* An index that was written to between two openings has other tables for threads. */
static void test_indexed_meanwhile(void **state)
{
    struct rng r = rng_init(2616);
    struct oracle file[2];
    const char *index = unit_path("meanwhile");
    const struct deltafs_select_options o = {.struct_size = sizeof o};
    deltafs_fileindex *k;
    int status;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        file[i] = oracle_make(&r, unit_path("meanwhile.%zu", i), i, 100, 0);
        oracle_write(&file[i]);
    }
    CHECK_IS(index_one(index, &file[0]), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_open(index, NULL, &k), DELTAFS_OK);
    CHECK_IS(count_rows(k, &o, &status), 100);
    CHECK_IS(status, DELTAFS_OK);
    CHECK_IS(index_one(index, &file[1]), DELTAFS_OK);
    CHECK_IS(count_rows(k, &o, &status), 0);
    CHECK_IS(status, DELTAFS_ERR_CHANGED);
    CHECK(strstr(deltafs_errmsg(NULL), "meanwhile: files were indexed since it was opened; open it again"));
    CHECK_IS(deltafs_fileindex_close(k), DELTAFS_OK);
    CHECK_IS(deltafs_select_open_fileindex(NULL, &o, &(deltafs_select *){NULL}), DELTAFS_ERR_INVALID);
    oracles_free(file, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scan),   cmocka_unit_test(test_padding), cmocka_unit_test(test_changed),
        cmocka_unit_test(test_shares), cmocka_unit_test(test_many),    cmocka_unit_test(test_few_keys),
        cmocka_unit_test(test_some),   cmocka_unit_test(test_fault),   cmocka_unit_test(test_indexed_meanwhile)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) != 0;
}
