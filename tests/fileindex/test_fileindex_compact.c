/* Compaction of an index: the same answers in less space, whatever fails, and whenever it is killed. */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <deltafs/deltafs_fileindex.h>
#include "fake_io.h"
#include "unit_kth.h"
#include "unit_rows.h"

static int compact(const char *index, uint64_t *freed)
{
    deltafs_indexer *ix;
    int status = deltafs_indexer_open(index, NULL, NULL, &ix);

    if (status == DELTAFS_OK) {
        status = deltafs_indexer_compact(ix, freed);
        int closed = deltafs_indexer_close(ix);
        status = status == DELTAFS_OK ? closed : status;
    }
    return status;
}

static void check_refused(const char *index, int expected, const char *text)
{
    uint64_t freed = 1;

    CHECK_IS(compact(index, &freed), expected);
    if (!strstr(deltafs_errmsg(NULL), text))
        fail_msg("%s", deltafs_errmsg(NULL));
    CHECK_IS(freed, 0);
}

static struct deltafs_stat stat_of(const char *index)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    deltafs_dir *dir;

    CHECK_IS(deltafs_open(index, NULL, &dir), DELTAFS_OK);
    CHECK_IS(deltafs_stat(dir, &stat), DELTAFS_OK);
    stat.uuid = stat.schema = "";
    CHECK_IS(deltafs_close(dir), DELTAFS_OK);
    return stat;
}

/* Index two parts of a file as two tables, without rows of the key 0. */
static void index_parts(const char *index, const struct oracle *o, uint64_t half)
{
    deltafs_options *options = unit_options("padding", "0", "partitions", "5", NULL);
    struct deltafs_table *t[2];
    deltafs_indexer *ix;

    CHECK_IS(deltafs_table_from_schema(o->path, SCHEMA, "id", 0, half * RECORD, 1, &t[0]), DELTAFS_OK);
    CHECK_IS(deltafs_table_from_schema(o->path, SCHEMA, "id", half * RECORD, o->rows * RECORD, 2, &t[1]), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_open(index, NULL, options, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_add(ix, o->path, 2, (const struct deltafs_table *const *)t), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    deltafs_table_destroy(t[0]);
    deltafs_table_destroy(t[1]);
    deltafs_options_destroy(options);
}

static int add_row(const struct deltafs_row *row, void *arg)
{
    uint64_t *sum = arg;

    *sum = *sum * 31 + row->label * 7 + row->row;
    return 0;
}

/* A number for all answers. */
static uint64_t answers(const char *index, const struct oracle *o)
{
    deltafs_fileindex *k;
    uint64_t sum = 0;

    CHECK_IS(deltafs_fileindex_open(index, NULL, &k), DELTAFS_OK);
    for (uint64_t i = 0; i < o->rows; i++)
        if (o->key[i] != 0)
            CHECK_IS(deltafs_fileindex_get(k, o->key[i], NULL, add_row, &sum, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_get(k, 0, NULL, add_row, &sum, NULL), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_fileindex_verify(k, NULL, NULL, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_close(k), DELTAFS_OK);
    return sum;
}

/* Tables, padding and partitions stay, and so does the index's place, to which a link leads. */
static void test_tables(void **state)
{
    struct rng r = rng_init(1);
    struct oracle file = oracle_make(&r, unit_path("parts"), 1, 3000, 0);
    const char *index = unit_path("parts.index"), *to = unit_path("parts.link");
    uint64_t freed, again;
    struct stat link;

    (void)state;
    for (size_t i = 0; i < file.rows; i += 3)
        file.key[i] = 0;
    oracle_write(&file);
    for (int i = 0; i < 3; i++)
        index_parts(index, &file, 1000);
    uint64_t before = answers(index, &file);
    CHECK_IS(symlink(index, to), 0);
    CHECK_IS(compact(to, &freed), DELTAFS_OK);
    CHECK(freed > 2000 && lstat(to, &link) == 0 && S_ISLNK(link.st_mode));
    CHECK(answers(index, &file) == before && answers(to, &file) == before);
    CHECK(!unit_exists(unit_path("parts.index.compact")) && !unit_exists(unit_path("parts.link.compact")));
    CHECK_IS(stat_of(index).partitions, 5);
    CHECK_IS(stat_of(index).epochs, 2);
    CHECK_IS(compact(index, &again), DELTAFS_OK);
    CHECK(again < freed / 10 && answers(index, &file) == before);
    free(file.key);
}

/* Files that were replaced, forgotten, or that have kept an epoch because their keys are the same. */
static void test_files(void **state)
{
    struct rng r = rng_init(2);
    struct oracle file[5];
    const char *index = unit_path("files.index");
    deltafs_indexer *ix;
    uint64_t freed;
    int has;

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        void (*write)(const struct oracle *o) = i % 2 ? oracle_write_logical : oracle_write;
        file[i] = oracle_make(&r, unit_path("file %zu", i), i, 500, 3 * i);
        write(&file[i]);
        CHECK_IS(index_one(index, &file[i]), DELTAFS_OK);
    }
    file[0].key[3]++;
    for (int i = 0; i < 2; i++) {
        file[0].seed++;
        oracle_write(&file[0]);
        CHECK_IS(index_one(index, &file[0]), DELTAFS_OK);
    }
    CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_forget(ix, file[4].path, &freed), DELTAFS_OK);
    CHECK_IS(stat_of(index).epochs, 6);
    /* A handle that has written, and writes again. */
    CHECK_IS(deltafs_indexer_compact(ix, NULL), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_indexer_compact(ix, &freed), DELTAFS_OK);
    CHECK_IS(stat_of(index).epochs, 4);
    check_all(index, file, 4);
    for (size_t i = 0; i < 5; i++) {
        CHECK_IS(deltafs_indexer_has(ix, file[i].path, &has), DELTAFS_OK);
        CHECK_IS(has, i < 4);
    }
    CHECK_IS(oracle_index(&file[4], ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    check_all(index, file, 5);
    /* Files that are gone are not needed. */
    CHECK_IS(rename(file[2].path, unit_path("file away")), 0);
    CHECK_IS(compact(index, &freed), DELTAFS_OK);
    CHECK_IS(rename(unit_path("file away"), file[2].path), 0);
    check_all(index, file, 5);
    for (size_t i = 0; i < 5; i++)
        free(file[i].key);
}

static void test_refused(void **state)
{
    struct rng r = rng_init(3);
    struct oracle file = oracle_make(&r, unit_path("refused"), 1, 300, 0);
    const char *index = unit_path("refused.index"), *beside = unit_path("refused.index.compact"),
               *sources = unit_path("refused.index/SOURCES");
    deltafs_indexer *ix;
    uint64_t n;

    (void)state;
    oracle_write(&file);
    check_refused(index, DELTAFS_ERR_NOT_FOUND, "refused.index: there is no index of keys");
    CHECK_IS(index_one(index, &file), DELTAFS_OK);
    CHECK_IS(mkdir(beside, 0777), 0);
    check_refused(index, DELTAFS_ERR_EXISTS, "refused.index.compact: exists already");
    CHECK_IS(rmdir(beside), 0);
    CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(oracle_index(&file, ix), DELTAFS_OK);
    check_refused(index, DELTAFS_ERR_BUSY, "is writing the directory");
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    check_all(index, &file, 1);
    /* A file whose indexing did not end. */
    struct oracle other = oracle_make(&r, unit_path("refused 2"), 2, 300, 0);
    oracle_write(&other);
    CHECK_IS(index_one(index, &other), DELTAFS_OK);
    size_t size;
    uint8_t *bytes = unit_load(sources, &size);
    unit_save(sources, bytes, size - 1);
    free(bytes);
    check_refused(index, DELTAFS_ERR_CHANGED, "the indexing of");
    CHECK(!unit_exists(beside) && !unit_exists(unit_path("refused.index/LEASE")));
    CHECK_IS(index_one(index, &file), DELTAFS_OK);
    CHECK_IS(index_one(index, &other), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_forget(ix, file.path, &n), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_forget(ix, other.path, &n), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    check_refused(index, DELTAFS_ERR_NOT_FOUND, "no file is indexed here; to free its space, remove it");
    free(file.key);
    free(other.key);
}

/* Handles that are open meanwhile: one has read, and goes on by the old index. One has not, and must not mix the two.
 */
static void test_readers(void **state)
{
    struct rng r = rng_init(4);
    struct oracle file[2];
    const char *index = unit_path("readers.index");
    deltafs_fileindex *has_read, *has_not;
    uint64_t freed;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        file[i] = oracle_make(&r, unit_path("readers %zu", i), i, 200, 0);
        oracle_write(&file[i]);
    }
    CHECK_IS(index_one(index, &file[0]), DELTAFS_OK);
    CHECK_IS(index_one(index, &file[1]), DELTAFS_OK);
    CHECK_IS(index_one(index, &file[0]), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_open(index, NULL, &has_read), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_open(index, NULL, &has_not), DELTAFS_OK);
    check_key(has_read, file, 2, file[0].key[0]);
    CHECK_IS(compact(index, &freed), DELTAFS_OK);
    for (size_t i = 0; i < file[0].rows; i++) {
        check_key(has_read, file, 2, file[0].key[i]);
        CHECK_IS(deltafs_fileindex_get(has_not, file[0].key[i], NULL, answer_check, NULL, NULL), DELTAFS_ERR_CHANGED);
        CHECK(strstr(deltafs_errmsg(NULL), "readers.index: was replaced since it was opened"));
    }
    CHECK_IS(deltafs_fileindex_close(has_read), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_close(has_not), DELTAFS_OK);
    check_all(index, file, 2);
    free(file[0].key);
    free(file[1].key);
}

static ssize_t cannot_exchange(struct fake_call *c)
{
    return c->op == FAKE_EXCHANGE ? -EINVAL : fake_do(c);
}

/* Where folders cannot be exchanged both indexes stay. */
static void test_no_exchange(void **state)
{
    static struct fake_io fake;
    struct rng r = rng_init(5);
    struct oracle file = oracle_make(&r, unit_path("both"), 1, 300, 0);
    const char *index = unit_path("both.index");

    (void)state;
    oracle_write(&file);
    CHECK_IS(index_one(index, &file), DELTAFS_OK);
    fake_io_begin(&fake, cannot_exchange);
    check_refused(index, DELTAFS_ERR_IO, "the index is as it was, and the compacted one is complete in");
    CHECK_IS(fake_io_end(&fake), 0);
    check_all(index, &file, 1);
    check_all(unit_path("both.index.compact"), &file, 1);
    free(file.key);
}

/* Two files in an index, one of them twice. */
static void index_two(const char *index, const struct oracle file[2])
{
    unit_remove(index);
    CHECK_IS(index_one(index, &file[0]), DELTAFS_OK);
    CHECK_IS(index_one(index, &file[0]), DELTAFS_OK);
    CHECK_IS(index_one(index, &file[1]), DELTAFS_OK);
}

/* The index has all, and can be compacted when what is beside it has been removed. */
static void check_two(const char *index, const struct oracle file[2])
{
    char beside[300];
    uint64_t freed;

    snprintf(beside, sizeof beside, "%s.compact", index);
    check_all(index, file, 2);
    if (unit_exists(beside))
        unit_remove(beside);
    CHECK_IS(compact(index, &freed), DELTAFS_OK);
    CHECK_IS(stat_of(index).epochs, 2);
    check_all(index, file, 2);
}

static struct oracle file_of_two(int i)
{
    struct rng r = rng_init(6 + (uint64_t)i);
    struct oracle file = oracle_make(&r, unit_path("two %d", i), (uint64_t)i, 20, 0);

    oracle_write(&file);
    return file;
}

static void test_fault(void **state)
{
    const struct oracle file[2] = {file_of_two(0), file_of_two(1)};
    const char *index = unit_path("fault.index");
    uint64_t freed;
    int failed = 1;

    (void)state;
    for (uint64_t k = 0; failed; k++) {
        index_two(index, file);
        unit_kth_begin_default(k, EIO);
        unit_kth_count(1);
        int status = compact(index, &freed);
        unit_kth_count(0);
        failed = unit_kth_end();
        CHECK(failed || status == DELTAFS_OK);
        check_two(index, file);
    }
    free(file[0].key);
    free(file[1].key);
}

static uint64_t operations_left;

static ssize_t die_later(struct fake_call *c)
{
    if (operations_left-- == 0)
        raise(SIGKILL);
    return c->op == FAKE_SYNC || c->op == FAKE_SYNC_FOLDER ? 0 : fake_do(c);
}

/* Killed before each of its operations. */
static void test_killed(void **state)
{
    static struct fake_io fake;
    const struct oracle file[2] = {file_of_two(2), file_of_two(3)};
    const char *index = unit_path("killed.index");
    int ended = 1;

    (void)state;
    for (uint64_t k = 0; ended != 0; k++) {
        index_two(index, file);
        pid_t child = fork();
        if (child == 0) {
            uint64_t freed;
            operations_left = k;
            fake_io_begin(&fake, die_later);
            _exit(compact(index, &freed) == DELTAFS_OK ? 0 : 1);
        }
        CHECK_IS(waitpid(child, &ended, 0), child);
        CHECK(ended == 0 || (WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL));
        check_two(index, file);
    }
    free(file[0].key);
    free(file[1].key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tables),      cmocka_unit_test(test_files),
                                       cmocka_unit_test(test_refused),     cmocka_unit_test(test_readers),
                                       cmocka_unit_test(test_no_exchange), cmocka_unit_test(test_fault),
                                       cmocka_unit_test(test_killed)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) != 0;
}
