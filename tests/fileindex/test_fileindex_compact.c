/* Compaction of an index: the same answers in less space, whatever fails, and whenever it is killed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <deltafs/deltafs_fileindex.h>
#include <deltafs/deltafs_logical.h>
#include "fake_io.h"
#include "fileindex/indexer.h"
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

/* The index, if there is one, is not written to. */
static void check_refused(const char *index, int expected, const char *text)
{
    char manifest[300];
    uint64_t freed = 1;
    size_t before = 0, after = 0;

    snprintf(manifest, sizeof manifest, "%s/MANIFEST", index);
    if (unit_exists(manifest))
        free(unit_load(manifest, &before));
    CHECK_IS(compact(index, &freed), expected);
    if (!strstr(deltafs_errmsg(NULL), text))
        fail_msg("%s", deltafs_errmsg(NULL));
    CHECK_IS(freed, 0);
    if (unit_exists(manifest))
        free(unit_load(manifest, &after));
    CHECK_IS(after, before);
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
static void index_parts(const char *index, const struct oracle *o, uint64_t half, const char *partitions)
{
    deltafs_options *options = unit_options("padding", "0", "partitions", partitions, NULL);
    struct deltafs_table *t[2];
    deltafs_indexer *ix;
    double share = 2;

    CHECK_IS(deltafs_table_from_schema(o->path, SCHEMA, "id", 0, half * RECORD, 1, &t[0]), DELTAFS_OK);
    CHECK_IS(deltafs_table_from_schema(o->path, SCHEMA, "id", half * RECORD, o->rows * RECORD, 2, &t[1]), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_open(index, NULL, options, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_progress(ix, &share), DELTAFS_OK);
    CHECK(share == 0);
    CHECK_IS(deltafs_indexer_add(ix, o->path, 2, (const struct deltafs_table *const *)t), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_progress(ix, &share), DELTAFS_OK);
    CHECK(share == 0); /* of the next file */
    CHECK_IS(deltafs_indexer_progress(ix, NULL), DELTAFS_ERR_INVALID);
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
        index_parts(index, &file, 1000, "5");
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

static _Atomic uint64_t index_reads;

static ssize_t count_index_reads(struct fake_call *c)
{
    if (c->op == FAKE_READ && strstr(c->path, "/many/") && strstr(c->path, ".index"))
        index_reads++;
    return fake_do(c);
}

/* Of more partitions than a reader usually keeps open, no index log's tail is read once more for each epoch. */
static void test_many_partitions(void **state)
{
    static struct fake_io fake;
    struct rng r = rng_init(8);
    struct oracle file[6];
    const char *index = unit_path("many");
    uint64_t freed;

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        file[i] = oracle_make(&r, unit_path("many %zu", i), i, 400, 0);
        oracle_write(&file[i]);
        if (i == 0)
            index_parts(index, &file[0], 100, "40");
        CHECK_IS(index_one(index, &file[i]), DELTAFS_OK);
    }
    CHECK_IS(stat_of(index).partitions, 40);
    fake_io_begin(&fake, count_index_reads);
    CHECK_IS(compact(index, &freed), DELTAFS_OK);
    CHECK_IS(fake_io_end(&fake), 0);
    CHECK(index_reads <= 40 * (1 + 6));
    CHECK_IS(stat_of(index).epochs, 6);
    check_all(index, file, 6);
    oracles_free(file, 6);
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
    oracles_free(file, 5);
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
    write_and_index(index, &other);
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

/* What a job that died has left open is closed. */
static void test_not_closed(void **state)
{
    struct rng r = rng_init(9);
    struct oracle file = oracle_make(&r, unit_path("open"), 1, 300, 0);
    const char *index = unit_path("open.index");
    uint64_t freed;
    size_t n;

    (void)state;
    write_and_index(index, &file);
    uint8_t *bytes = unit_load(unit_path("open.index/MANIFEST"), &n);
    while (n > 1 && bytes[n - 2] != '\n')
        n--;
    free(bytes);
    unit_cut_manifest(index, n - 1);
    CHECK(!stat_of(index).is_closed);
    CHECK_IS(compact(index, &freed), DELTAFS_OK);
    CHECK(stat_of(index).is_closed);
    check_all(index, &file, 1);
    free(file.key);
}

/* A group of two ranks, of which the other sees one file less. */
static int other_agree(struct rank_group *group, struct error *e)
{
    (void)group;
    return e->status;
}

static int other_max(struct rank_group *group, uint64_t *values, int n, struct error *e)
{
    (void)group;
    CHECK_IS(n, 4);
    values[1]++; /* the complement of a number that is less by one */
    return e->status;
}

static int other_broadcast(struct rank_group *group, struct bytes *bytes, struct error *e)
{
    (void)group;
    (void)bytes;
    return e->status;
}

static void test_ranks(void **state)
{
    static const struct collective_calls calls = {other_agree, other_max, other_broadcast, NULL};
    const struct collective group = {.calls = &calls, .ranks = 2};
    struct rng r = rng_init(10);
    struct oracle file = oracle_make(&r, unit_path("ranks"), 1, 300, 0);
    const char *index = unit_path("ranks.index");
    struct error e = {0};
    deltafs_indexer *ix;
    uint64_t freed;

    (void)state;
    write_and_index(index, &file);
    CHECK_IS(deltafs_private_indexer_open_group(index, NULL, NULL, &group, &indexer_alone, &ix, &e), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_compact(ix, &freed), DELTAFS_ERR_BUSY);
    CHECK(strstr(deltafs_errmsg(NULL), "ranks.index: was written just now, and not all ranks see that yet"));
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    CHECK(!unit_exists(unit_path("ranks.index.compact")) && !unit_exists(unit_path("ranks.index/LEASE")));
    check_all(index, &file, 1);
    free(file.key);
}

/* Another user may not compact it, who could not give its owner what replaces it. */
static void refuse_access(const char *index)
{
    uint64_t freed;
    int ended;

    CHECK(chmod(unit_folder, 0777) == 0 && chmod(index, 0777) == 0);
    pid_t child = fork();
    if (child == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(1);
        if (access(unit_folder, W_OK | X_OK) != 0) /* TMPDIR is in a folder of root's own */
            _exit(0);
        _exit(compact(index, &freed) != DELTAFS_ERR_IO ||
              !strstr(deltafs_errmsg(NULL), "access.index.compact: cannot get the owner 0 and the group "));
    }
    CHECK_IS(waitpid(child, &ended, 0), child);
    CHECK_IS(ended, 0);
    CHECK(!unit_exists(unit_path("access.index.compact")) && !unit_exists(unit_path("access.index/LEASE")));
    CHECK_IS(chmod(unit_folder, 0700), 0);
}

/* Owner, groups and modes stay. */
static void test_access(void **state)
{
    static const struct {
        const char *name;
        mode_t mode;
        gid_t group; /* 0: the same */
    } entry[] = {{"", 0750, 8},
                 {"/SOURCES", 0640, 9},
                 {"/MANIFEST", 0600, 0},
                 {"/01", 0710, 0},
                 {"/01/p00000001.data", 0604, 0}};
    const size_t n = sizeof entry / sizeof entry[0];
    struct rng r = rng_init(11);
    struct oracle file = oracle_make(&r, unit_path("access"), 1, 300, 0);
    const char *index = unit_path("access.index");
    struct stat was[5], is;
    uint64_t freed;

    (void)state;
    oracle_write(&file);
    index_parts(index, &file, 100, "3");
    uint64_t before = answers(index, &file);
    if (geteuid() == 0)
        refuse_access(index);
    for (size_t i = 0; i < n; i++) {
        const char *path = unit_path("access.index%s", entry[i].name);
        if (geteuid() == 0 && entry[i].group != 0)
            CHECK_IS(chown(path, 7, entry[i].group), 0);
        CHECK(chmod(path, entry[i].mode) == 0 && stat(path, &was[i]) == 0);
    }
    CHECK_IS(compact(index, &freed), DELTAFS_OK);
    for (size_t i = 0; i < n; i++) {
        CHECK_IS(stat(unit_path("access.index%s", entry[i].name), &is), 0);
        CHECK(is.st_ino != was[i].st_ino && is.st_mode == was[i].st_mode);
        CHECK(is.st_uid == was[0].st_uid && is.st_gid == was[i].st_gid);
    }
    CHECK(answers(index, &file) == before);
    free(file.key);
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

static _Atomic uint64_t replace_after;
static const char *replaced, *replaces;

static void replace_now(void)
{
    CHECK_IS(renameat2(AT_FDCWD, replaced, AT_FDCWD, replaces, RENAME_EXCHANGE), 0);
    unit_remove(replaces);
}

static ssize_t replace_later(struct fake_call *c)
{
    if (replace_after-- == 0)
        replace_now();
    return fake_do(c);
}

static void check_damage(int status, const char *message, void *arg)
{
    (void)arg;
    if (status != DELTAFS_ERR_CHANGED || !strstr(message, "was replaced since it was opened"))
        fail_msg("%s", message);
}

/* Each answer is right, or says to open the index again. */
static void check_replaced(const struct oracle *o, uint64_t right)
{
    deltafs_fileindex *k;
    deltafs_indexer *ix;
    uint64_t sum = 0;
    int has, changed = 0;

    CHECK_IS(deltafs_fileindex_open(replaced, NULL, &k), DELTAFS_OK);
    for (uint64_t i = 0; i < o->rows; i++) {
        int status = o->key[i] == 0 ? DELTAFS_OK : deltafs_fileindex_get(k, o->key[i], NULL, add_row, &sum, NULL);
        if (status != DELTAFS_OK)
            check_damage(status, deltafs_errmsg(NULL), NULL);
        changed |= status != DELTAFS_OK;
    }
    CHECK(changed || sum == right);
    deltafs_fileindex_verify(k, check_damage, NULL, NULL);
    CHECK_IS(deltafs_fileindex_close(k), DELTAFS_OK);
    /* Another handle that only verifies. */
    CHECK_IS(deltafs_fileindex_open(replaced, NULL, &k), DELTAFS_OK);
    deltafs_fileindex_verify(k, check_damage, NULL, NULL);
    CHECK_IS(deltafs_fileindex_close(k), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_open(replaced, NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_has(ix, o->path, &has), DELTAFS_OK);
    CHECK(has);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
}

/* A compaction replaces the index before each operation of a reader. */
static void test_replaced(void **state)
{
    static struct fake_io fake;
    struct rng r = rng_init(12);
    struct oracle file = oracle_make(&r, unit_path("replaced"), 1, 40, 0);
    const char *old = unit_path("replaced.old"), *new = unit_path("replaced.new");
    deltafs_fileindex *k;
    uint64_t freed, sum = 0;
    int has_ended = 0;

    (void)state;
    replaced = unit_path("replaced.index");
    replaces = unit_path("replaced.index.compact");
    oracle_write(&file);
    for (int i = 0; i < 2; i++)
        index_parts(replaced, &file, 20, "3");
    unit_copy(replaced, old);
    CHECK_IS(compact(replaced, &freed), DELTAFS_OK);
    unit_copy(replaced, new);
    CHECK_IS(deltafs_fileindex_open(replaced, NULL, &k), DELTAFS_OK);
    for (uint64_t i = 0; i < file.rows; i++)
        if (file.key[i] != 0)
            CHECK_IS(deltafs_fileindex_get(k, file.key[i], NULL, add_row, &sum, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_close(k), DELTAFS_OK);
    for (uint64_t n = 0; !has_ended; n++) {
        unit_remove(replaced);
        unit_copy(old, replaced);
        unit_copy(new, replaces);
        replace_after = n;
        fake_io_begin(&fake, replace_later);
        check_replaced(&file, sum);
        CHECK_IS(fake_io_end(&fake), 0);
        has_ended = unit_exists(replaces);
        if (has_ended)
            unit_remove(replaces);
    }
    free(file.key);
}

/* Where folders cannot be exchanged both indexes stay. */
static void test_no_exchange(void **state)
{
    static struct fake_io fake;
    struct rng r = rng_init(5);
    struct oracle file = oracle_make(&r, unit_path("both"), 1, 300, 0);
    const char *index = unit_path("both.index");

    (void)state;
    write_and_index(index, &file);
    fake_io_begin(&fake, cannot_exchange);
    check_refused(index, DELTAFS_ERR_IO, "the index is as it was, and the compacted one is complete in");
    CHECK_IS(fake_io_end(&fake), 0);
    check_all(index, &file, 1);
    check_all(unit_path("both.index.compact"), &file, 1);
    free(file.key);
}

/* What is left beside the index in a logical file goes with the file. */
static void test_logical(void **state)
{
    static struct fake_io fake;
    struct rng r = rng_init(13);
    struct oracle file = oracle_make(&r, unit_path("logical"), 1, 300, 0);
    const char *index = unit_path("logical/keys");

    (void)state;
    oracle_write_logical(&file);
    CHECK_IS(index_one(index, &file), DELTAFS_OK);
    fake_io_begin(&fake, cannot_exchange);
    check_refused(index, DELTAFS_ERR_IO, "the index is as it was, and the compacted one is complete in");
    CHECK_IS(fake_io_end(&fake), 0);
    CHECK(unit_exists(unit_path("logical/keys.compact/SOURCES")));
    check_all(index, &file, 1);
    CHECK_IS(deltafs_logical_remove(file.path), DELTAFS_OK);
    CHECK(!unit_exists(file.path));
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
            fake_io_begin_killed(&fake, k);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),      cmocka_unit_test(test_many_partitions), cmocka_unit_test(test_files),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_not_closed),      cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_access),      cmocka_unit_test(test_readers),         cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_no_exchange), cmocka_unit_test(test_logical),         cmocka_unit_test(test_fault),
        cmocka_unit_test(test_killed)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) != 0;
}
