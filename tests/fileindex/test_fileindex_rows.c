/* Keys inside files: tables and labels, indexing by one process, rows against an oracle, and sources that change. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <deltafs/deltafs_fileindex.h>
#include <deltafs/deltafs_logical.h>
#include "base/coding.h"
#include "base/error.h"
#include "unit_help.h"
#include "unit_io.h"
#include "unit_kth.h"
#include "unit_rows.h"
#include "unit_team.h"

/* ---- Tables and labels ---- */

static void test_labels(void **state)
{
    static const struct {
        const char *name;
        int has;
        uint64_t label;
    } names[] = {{"dump.1200.bin", 1, 1200},
                 {"run.3/dump", 0, 7},
                 {"a/b/T0048/", 1, 48},
                 {"x.h5", 0, 7},
                 {"x.12.h5", 1, 12},
                 {"eparticle.48", 1, 48},
                 {"e.48.0", 1, 0},
                 {"step000100.dat", 1, 100},
                 {"17", 1, 17},
                 {"deltafs:d/f9.x", 1, 9},
                 {".5", 1, 5},
                 {"", 0, 7},
                 {"n99999999999999999999999", 0, 7}};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint64_t label = 7;
        if (deltafs_label_from_name(names[i].name, &label) != names[i].has || label != names[i].label)
            fail_msg("%s: %llu", names[i].name, (unsigned long long)label);
    }
}

static void test_tables(void **state)
{
    struct deltafs_table *t = NULL;

    (void)state;
    CHECK_IS(deltafs_table_from_schema("f", "x:f4,id", "id", 0, 24, 0, &t), DELTAFS_ERR_SCHEMA);
    CHECK_IS(deltafs_table_from_schema("f", SCHEMA, "z", 0, 24, 0, &t), DELTAFS_ERR_SCHEMA);
    CHECK_IS(deltafs_table_from_schema("f", SCHEMA, "x", 0, 24, 0, &t), DELTAFS_ERR_SCHEMA);
    CHECK_IS(deltafs_table_from_schema("f", "id:u8", "id", 0, 24, 0, &t), DELTAFS_ERR_SCHEMA);
    CHECK_IS(deltafs_table_from_schema("f", SCHEMA, "id", 25, 24, 0, &t), DELTAFS_ERR_SIZE);
    CHECK_IS(deltafs_table_from_schema("file", SCHEMA, "id", 3, 3 + 10 * RECORD + 7, 0, &t), DELTAFS_ERR_SIZE);
    assert_non_null(
        strstr(deltafs_errmsg(NULL), "file: the record at offset 243 is cut: the file ends after 7 of its 24"));
    assert_null(t);
    CHECK_IS(deltafs_table_from_schema("f", SCHEMA, "id", 3, 3 + 10 * RECORD, 5, &t), DELTAFS_OK);
    CHECK(t->rows == 10 && t->key == 1 && t->column_count == 4 && t->label == 5);
    CHECK(t->column[1].offset == 7 && t->column[1].stride == RECORD);
    deltafs_table_destroy(t);
    deltafs_table_destroy(NULL);
}

/* ---- Indexing and asking ---- */

static void test_round(void **state)
{
    struct rng r = rng_init(1);
    struct oracle file[6];
    const char *index = unit_path("all");
    deltafs_indexer *ix;
    deltafs_dir *d;
    int has;

    (void)state;
    CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
    for (size_t i = 0; i < 6; i++) {
        /* Labels are not in the order of indexing; two are the same. */
        size_t place = (i * 5 + 1) % 6;
        file[place] = oracle_make(&r, unit_path("dump %% %zu", place), place < 5 ? 10 * place : 40,
                                  i == 2 ? 0 : 1 + rng_below(&r, 3000), rng_below(&r, 30));
    }
    for (size_t i = 0; i < 6; i++) {
        size_t place = i < 4 ? 3 - i : i;
        if (place % 2)
            oracle_write_logical(&file[place]);
        else
            oracle_write(&file[place]);
        CHECK_IS(deltafs_indexer_has(ix, file[place].path, &has), DELTAFS_OK);
        CHECK_IS(has, 0);
        if (oracle_index(&file[place], ix) != DELTAFS_OK)
            fail_msg("%s", deltafs_errmsg(NULL));
        CHECK_IS(deltafs_indexer_has(ix, file[place].path, &has), DELTAFS_OK);
        CHECK_IS(has, 1);
    }
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    /* Records that a program appends would be rows of no file. */
    CHECK_IS(deltafs_reopen(index, NULL, &d), DELTAFS_ERR_NOT_DELTAFS);
    check_all(index, file, 6);
    oracles_free(file, 6);
}

/* A file is written to after it was looked at, and before it is added: what is added may be places in the file as it
 * was. (It was indexed by these, and counted as unchanged.) */
static void test_written_between(void **state)
{
    struct rng r = rng_init(31);
    deltafs_indexer *ix;
    int has;

    (void)state;
    for (int is_logical = 0; is_logical < 2; is_logical++) {
        struct oracle file = oracle_make(&r, unit_path("between%d", is_logical), 1, 300, 0);
        void (*write)(const struct oracle *o) = is_logical ? oracle_write_logical : oracle_write;
        write(&file);
        CHECK_IS(deltafs_indexer_open(NULL, file.path, NULL, &ix), DELTAFS_OK);
        CHECK_IS(deltafs_indexer_has(ix, file.path, &has), DELTAFS_OK);
        file.key[7]++;
        write(&file);
        CHECK_IS(oracle_index(&file, ix), DELTAFS_ERR_CHANGED);
        CHECK(strstr(deltafs_errmsg(NULL), "was written to while it was looked for what to index"));
        CHECK_IS(deltafs_indexer_has(ix, file.path, &has), DELTAFS_OK);
        CHECK_IS(has, 0);
        CHECK_IS(oracle_index(&file, ix), DELTAFS_OK);
        /* Who has not asked says that these are its tables now. */
        file.key[8]++;
        write(&file);
        CHECK_IS(oracle_index(&file, ix), DELTAFS_OK);
        CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
        check_all(file.path, &file, 1);
        free(file.key);
    }
}

/* Each file with its own: in a logical file, beside a plain one; and moved with it. */
static void test_beside(void **state)
{
    struct rng r = rng_init(2);
    struct oracle plain = oracle_make(&r, unit_path("p/f.3"), 3, 500, 0),
                  logical = oracle_make(&r, unit_path("p/g.4"), 4, 500, 8);
    char command[1200];

    (void)state;
    snprintf(command, sizeof command, "mkdir %s", unit_path("p"));
    CHECK_IS(system(command), 0);
    oracle_write(&plain);
    oracle_write_logical(&logical);
    CHECK_IS(index_one(NULL, &plain), DELTAFS_OK);
    CHECK_IS(index_one(NULL, &logical), DELTAFS_OK);
    CHECK(unit_exists(unit_path("p/f.3.keys/SOURCES")) && unit_exists(unit_path("p/g.4/keys/SOURCES")));
    snprintf(command, sizeof command, "mv %s %s", unit_path("p"), unit_path("q"));
    CHECK_IS(system(command), 0);
    check_all(unit_path("q/f.3"), &plain, 1);
    check_all(unit_path("q/f.3.keys"), &plain, 1);
    check_all(unit_path("q/g.4/"), &logical, 1);
    /* A logical file goes with its keys, but not with what somebody else has put there. */
    unit_save(unit_path("q/g.4/keys/notes"), "x", 1);
    CHECK_IS(deltafs_logical_remove(unit_path("q/g.4")), DELTAFS_ERR_NOT_DELTAFS);
    check_all(unit_path("q/g.4"), &logical, 1);
    unit_remove(unit_path("q/g.4/keys/notes"));
    CHECK_IS(deltafs_logical_remove(unit_path("q/g.4")), DELTAFS_OK);
    CHECK(!unit_exists(unit_path("q/g.4")));
    free(plain.key);
    free(logical.key);
}

/* One of two ranks that open the file for writing and write nothing. */
/* A program may change its folder while it indexes and asks. (The index came to stand in another folder, and what was
 * opened by name was not found.) */
static void test_moved_on(void **state)
{
    struct rng r = rng_init(309);
    char *here = getcwd(NULL, 0), *folder = strdup(unit_path("%s", ""));
    struct deltafs_table_stat stat = {.struct_size = sizeof stat};
    struct oracle file[2];
    deltafs_indexer *ix;
    deltafs_fileindex *k;
    int has;

    (void)state;
    CHECK_IS(mkdir(unit_path("moved"), 0777), 0);
    file[0] = oracle_make(&r, unit_path("moved/1.bin"), 1, 300, 8);
    file[1] = oracle_make(&r, unit_path("moved/2.logical"), 2, 500, 0);
    oracle_write(&file[0]);
    oracle_write_logical(&file[1]);
    CHECK_IS(chdir(folder), 0);
    CHECK_IS(deltafs_indexer_open("moved/index", NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(chdir("/"), 0);
    for (size_t i = 0; i < 2; i++)
        CHECK_IS(oracle_index(&file[i], ix), DELTAFS_OK);
    /* What is asked for is where the process is. */
    CHECK_IS(chdir(unit_path("moved")), 0);
    CHECK_IS(deltafs_indexer_has(ix, "1.bin", &has), DELTAFS_OK);
    CHECK(has);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    CHECK(unit_exists(unit_path("moved/index/SOURCES")));
    CHECK_IS(chdir(folder), 0);
    CHECK_IS(deltafs_fileindex_open("moved/index", NULL, &k), DELTAFS_OK);
    CHECK_IS(chdir("/"), 0);
    for (uint64_t i = 0; i < file[0].rows; i++)
        check_key(k, file, 2, file[0].key[i]);
    CHECK_IS(deltafs_fileindex_verify(k, NULL, NULL, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_table(k, 0, &stat), DELTAFS_OK);
    CHECK(strcmp(stat.path, "moved/1.bin") == 0);
    deltafs_fileindex_close(k);
    CHECK_IS(chdir(here), 0);
    free(file[0].key);
    free(file[1].key);
    free(folder);
    free(here);
}

struct visitor {
    struct unit_member member;
    const char *path;
    int status;
};

static void *visit(void *arg)
{
    struct visitor *v = arg;
    struct collective group = unit_team_group(&v->member);
    deltafs_options *o = NULL;
    deltafs_logical *f = NULL;
    struct error e = {.status = DELTAFS_OK};

    v->status = deltafs_options_create(&o);
    v->status = deltafs_private_logical_open_group(v->path, O_RDWR, o, &group, &f, &e);
    if (v->status == DELTAFS_OK)
        v->status = deltafs_logical_close(f);
    deltafs_options_destroy(o);
    return NULL;
}

/* Who opens a file and writes nothing leaves a session, and the file is what it was. (Its rows were refused then.) */
static void test_visited(void **state)
{
    struct rng r = rng_init(12);
    struct oracle o = oracle_make(&r, unit_path("visited.1"), 1, 300, 0);
    struct visitor visitor[2];
    struct unit_team team;
    pthread_t thread[2];

    (void)state;
    oracle_write_logical(&o);
    CHECK_IS(index_one(NULL, &o), DELTAFS_OK);
    unit_team_init(&team, 2);
    for (uint32_t i = 0; i < 2; i++) {
        visitor[i] = (struct visitor){.member = {&team, i}, .path = o.path};
        CHECK(pthread_create(&thread[i], NULL, visit, &visitor[i]) == 0);
    }
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    unit_team_fini(&team);
    CHECK_IS(visitor[0].status, DELTAFS_OK);
    CHECK_IS(visitor[1].status, DELTAFS_OK);
    check_all(o.path, &o, 1);
    free(o.key);
}

/* An index whose name is a directory's with ".keys" behind it is not that directory's. (It was answered from.) */
static void test_namesake(void **state)
{
    struct rng r = rng_init(13);
    struct oracle o = oracle_make(&r, unit_path("run.1"), 1, 100, 0);
    deltafs_fileindex *k = NULL;

    (void)state;
    CHECK_IS(deltafs_close(unit_create(unit_path("run"), unit_options("memory", "8M", NULL))), DELTAFS_OK);
    oracle_write(&o);
    CHECK_IS(index_one(unit_path("run.keys"), &o), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_open(unit_path("run"), NULL, &k), DELTAFS_ERR_NOT_FOUND);
    check_all(unit_path("run.keys"), &o, 1);
    free(o.key);
}

static int count_row(const struct deltafs_row *row, void *arg)
{
    (void)row;
    ++*(int *)arg;
    return 0;
}

/* The key's rows, and what the look-up says. */
static int ask(const char *path, uint64_t key, int *rows)
{
    deltafs_fileindex *k;

    *rows = 0;
    CHECK_IS(deltafs_fileindex_open(path, NULL, &k), DELTAFS_OK);
    int status = deltafs_fileindex_get(k, key, NULL, count_row, rows, NULL);
    deltafs_fileindex_close(k);
    return status;
}

/* A source that is written to after it was indexed is refused, also where the key was not in it; the other one's rows
 * come nevertheless. Indexed again it is right, and takes the old one's place. */
static void test_changed(void **state)
{
    struct rng r = rng_init(3);
    struct oracle file[2] = {oracle_make(&r, unit_path("c.1"), 1, 300, 0),
                             oracle_make(&r, unit_path("c.2"), 2, 300, 0)};
    const char *index = unit_path("changed");
    int rows;

    (void)state;
    for (int logical = 0; logical < 2; logical++) {
        void (*write)(const struct oracle *) = logical ? oracle_write_logical : oracle_write;
        for (int i = 0; i < 2; i++) {
            file[i].key[0] = 123456;
            write(&file[i]);
            CHECK_IS(index_one(index, &file[i]), DELTAFS_OK);
        }
        check_all(index, file, 2);
        file[1].key[0] = 99999999;
        write(&file[1]);
        CHECK_IS(ask(index, 123456, &rows), DELTAFS_ERR_CHANGED);
        CHECK_IS(rows, 1);
        CHECK_IS(ask(index, 99999999, &rows), DELTAFS_ERR_CHANGED);
        CHECK_IS(rows, 0);
        CHECK_IS(index_one(index, &file[1]), DELTAFS_OK);
        check_all(index, file, 2);
        unit_remove(file[0].path);
        CHECK_IS(ask(index, 123456, &rows), DELTAFS_ERR_CHANGED);
        CHECK_IS(ask(index, 99999999, &rows), DELTAFS_ERR_CHANGED);
        CHECK_IS(rows, 1);
        unit_remove(file[1].path);
        unit_remove(index);
    }
    free(file[0].key);
    free(file[1].key);
}

/* Where a part of the index is damaged, the other tables' rows come, and the label of that one is missing. */
static void test_missing(void **state)
{
    struct rng r = rng_init(6);
    struct oracle file[2] = {oracle_make(&r, unit_path("m.1"), 1, 300, 0),
                             oracle_make(&r, unit_path("m.2"), 2, 300, 0)};
    const char *index = unit_path("missing"), *log = unit_path("missing/00/p00000000.data");
    const uint64_t *label;
    deltafs_fileindex *k;
    size_t n;
    int rows = 0;

    (void)state;
    setenv("DELTAFS_PARTITIONS", "1", 1);
    for (int i = 0; i < 2; i++) {
        file[i].key[0] = 123456;
        oracle_write(&file[i]);
        CHECK_IS(index_one(index, &file[i]), DELTAFS_OK);
    }
    unsetenv("DELTAFS_PARTITIONS");
    uint8_t *bytes = unit_load(log, &n);
    bytes[n - 1] ^= 1;
    unit_save(log, bytes, n);
    free(bytes);
    CHECK_IS(deltafs_fileindex_open(index, NULL, &k), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_get(k, 123456, NULL, count_row, &rows, NULL), DELTAFS_ERR_DAMAGED);
    CHECK_IS(rows, 1);
    CHECK_IS(deltafs_fileindex_missing(k, &label, &n), DELTAFS_OK);
    CHECK(n == 1 && label[0] == 2);
    deltafs_fileindex_close(k);
    free(file[0].key);
    free(file[1].key);
}

/* Whoever gives a changed file its old size and time again still gets no wrong row. */
static void test_forged(void **state)
{
    struct rng r = rng_init(4);
    struct oracle file = oracle_make(&r, unit_path("forged.1"), 1, 300, 0);
    char command[1200];
    int rows;

    (void)state;
    file.key[7] = 4711;
    write_and_index(NULL, &file);
    file.key[7] = 4712;
    snprintf(command, sizeof command, "touch -r %s %s", file.path, unit_path("time"));
    CHECK_IS(system(command), 0);
    oracle_write(&file);
    snprintf(command, sizeof command, "touch -r %s %s", unit_path("time"), file.path);
    CHECK_IS(system(command), 0);
    CHECK_IS(ask(file.path, 4711, &rows), DELTAFS_ERR_DAMAGED);
    CHECK_IS(rows, 0);
    free(file.key);
}

static void test_refused(void **state)
{
    struct rng r = rng_init(5);
    struct oracle file = oracle_make(&r, unit_path("r.1"), 1, 10, 0);
    deltafs_indexer *ix;
    struct deltafs_table *t, bad;
    struct deltafs_column column[4];
    int rows;

    (void)state;
    oracle_write(&file);
    /* A directory of records is no index, and no source. */
    deltafs_dir *d = unit_create(unit_path("records"), unit_options(NULL));
    CHECK_CALL(d, deltafs_append(d, 1, "x", 1), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_open(unit_path("records"), NULL, NULL, &ix), DELTAFS_ERR_NOT_DELTAFS);
    CHECK_IS(deltafs_indexer_open(NULL, unit_path("records"), NULL, &ix), DELTAFS_ERR_NOT_DELTAFS);
    CHECK_IS(deltafs_indexer_open(NULL, unit_path("nothing"), NULL, &ix), DELTAFS_ERR_NOT_FOUND);

    CHECK_IS(deltafs_indexer_open(unit_path("refused"), NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_table_from_schema(file.path, SCHEMA, "id", 0, 10 * RECORD, 1, &t), DELTAFS_OK);
    bad = *t;
    memcpy(column, t->column, sizeof column);
    bad.column = column;
    const struct deltafs_table *one = &bad;
    CHECK_IS(deltafs_indexer_add(ix, unit_path("nothing"), 1, &one), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_indexer_add(ix, unit_folder, 1, &one), DELTAFS_ERR_NOT_DELTAFS);
    CHECK_IS(deltafs_indexer_add(ix, file.path, 0, &one), DELTAFS_ERR_INVALID);
    bad.key = 4;
    CHECK(deltafs_indexer_add(ix, file.path, 1, &one) != DELTAFS_OK);
    bad.key = 0; /* a float */
    CHECK(deltafs_indexer_add(ix, file.path, 1, &one) != DELTAFS_OK);
    bad.key = 1;
    bad.rows = 11; /* beyond the end */
    CHECK(deltafs_indexer_add(ix, file.path, 1, &one) != DELTAFS_OK);
    bad.rows = UINT64_MAX;
    CHECK(deltafs_indexer_add(ix, file.path, 1, &one) != DELTAFS_OK);
    bad.rows = 10;
    column[2].name = "no name";
    CHECK(deltafs_indexer_add(ix, file.path, 1, &one) != DELTAFS_OK);
    column[2].name = "x";
    CHECK(deltafs_indexer_add(ix, file.path, 1, &one) != DELTAFS_OK);
    column[2] = t->column[2];
    /* A key without '/', and no schema that has it. */
    static const char hdf5[80] = "\211HDF\r\n\032\n";
    deltafs_options *o = unit_options("key", "q", NULL);
    CHECK_IS(deltafs_indexer_add_file(ix, file.path, o, NULL), DELTAFS_ERR_OPTION);
    assert_non_null(strstr(deltafs_errmsg(NULL), "option key: 'q' is given, and no option schema that has it"));
    unit_save(unit_path("r.h5"), hdf5, sizeof hdf5);
    CHECK_IS(deltafs_indexer_add_file(ix, unit_path("r.h5"), o, NULL), DELTAFS_ERR_OPTION);
    assert_non_null(
        strstr(deltafs_errmsg(NULL), "r.h5: is an HDF5 file, and the key 'q' has no '/': give the path of"));
    deltafs_options_destroy(o);
    CHECK(!unit_exists(unit_path("refused"))); /* nothing was made for that */

    /* A negative key: its place is named, and the file's other rows are not found. */
    column[1].kind = 'i';
    file.key[6] = UINT64_C(1) << 63;
    oracle_write(&file);
    CHECK_IS(deltafs_indexer_add(ix, file.path, 1, &one), DELTAFS_ERR_SCHEMA);
    assert_non_null(strstr(deltafs_errmsg(NULL), "r.1: at offset 148: the key"));
    column[1].kind = 'u';
    CHECK_IS(deltafs_indexer_add(ix, file.path, 1, &one), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    CHECK_IS(ask(unit_path("refused"), file.key[6], &rows), DELTAFS_OK);
    check_all(unit_path("refused"), &file, 1);
    deltafs_table_destroy(t);
    free(file.key);
}

/* Columns that stand elsewhere: each for itself, in pieces, big-endian, and a second table of the same file. */
static void test_columns(void **state)
{
    uint8_t bytes[4096];
    const char *path = unit_path("columns");
    uint64_t rows = 100, key_at = 1000, n_at = 2500, n_rest = 16;
    const struct deltafs_piece pieces[] = {{0, 37, n_at}, {37, 63, n_rest}};
    const struct deltafs_column column[] = {
        {.name = "id", .kind = 'i', .size = 4, .is_big_endian = 1, .stride = 4, .offset = key_at},
        {.name = "n", .kind = 'u', .size = 8, .stride = 8, .piece_count = 2, .piece = pieces},
        {.name = "c", .kind = 'S', .size = 1, .is_big_endian = 1, .stride = 2, .offset = 3800}};
    const struct deltafs_table one = {.label = 5, .name = "/g one", .rows = rows, .column_count = 3, .column = column};
    const struct deltafs_table two = {.label = 4, .name = "/two", .rows = 10, .column_count = 2, .column = column};
    const struct deltafs_table *both[] = {&one, &two};
    struct deltafs_table_stat stat = {.struct_size = sizeof stat};
    deltafs_indexer *ix;
    deltafs_fileindex *k;
    struct deltafs_verify_counts counts = {.struct_size = sizeof counts};
    int rows_found = 0;

    (void)state;
    memset(bytes, 0, sizeof bytes);
    for (uint64_t i = 0; i < rows; i++) {
        bytes[key_at + 4 * i + 3] = (uint8_t)(99 - i);
        put_u64(bytes + (i < 37 ? n_at + 8 * i : n_rest + 8 * (i - 37)), i * i);
        bytes[3800 + 2 * i] = (uint8_t)('a' + i % 26);
    }
    unit_save(path, bytes, sizeof bytes);
    struct deltafs_table short_two = two;
    struct deltafs_column two_column[2] = {column[0], column[2]};
    short_two.column = two_column;
    both[1] = &short_two;
    CHECK_IS(deltafs_indexer_open(NULL, path, NULL, &ix), DELTAFS_OK);
    if (deltafs_indexer_add(ix, path, 2, both) != DELTAFS_OK)
        fail_msg("%s", deltafs_errmsg(NULL));
    /* Pieces that leave a row out. */
    both[1] = &two;
    CHECK(deltafs_indexer_add(ix, path, 2, both) != DELTAFS_OK);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_open(path, NULL, &k), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_table(k, 0, &stat), DELTAFS_OK);
    CHECK(stat.label == 4 && strcmp(stat.table, "/two") == 0 && strcmp(stat.schema, "c:S1") == 0);
    CHECK_IS(deltafs_fileindex_table(k, 1, &stat), DELTAFS_OK);
    CHECK(stat.label == 5 && strcmp(stat.table, "/g one") == 0 && strcmp(stat.key, "id") == 0);
    CHECK_IS(deltafs_fileindex_table(k, 2, &stat), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_fileindex_get(k, 99, NULL, count_row, &rows_found, NULL), DELTAFS_OK);
    CHECK_IS(rows_found, 2);
    CHECK_IS(deltafs_fileindex_get(k, 40, &(struct deltafs_range){5, 5}, count_row, &rows_found, NULL), DELTAFS_OK);
    CHECK_IS(rows_found, 3);
    CHECK_IS(deltafs_fileindex_get(k, 40, &(struct deltafs_range){0, 4}, count_row, &rows_found, NULL),
             DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_fileindex_verify(k, NULL, NULL, &counts), DELTAFS_OK);
    CHECK_IS(counts.records, 110);
    deltafs_fileindex_close(k);
}

/* Keys in pieces that begin in the middle of a group of rows, as shares of ranks do. */
static void test_pieces(void **state)
{
    static const struct deltafs_piece piece[] = {{0, 37, 4}, {37, 263, 4 + 37 * RECORD}, {300, 700, 4 + 300 * RECORD}};
    struct rng r = rng_init(64);
    struct oracle file = oracle_make(&r, unit_path("pieces.1"), 1, 1000, 0);
    struct deltafs_column column[4];
    struct deltafs_table *t;
    deltafs_indexer *ix;

    (void)state;
    oracle_write(&file);
    CHECK_IS(deltafs_table_from_schema(file.path, SCHEMA, "id", 0, 1000 * RECORD, 1, &t), DELTAFS_OK);
    memcpy(column, t->column, sizeof column);
    column[1].piece = piece;
    column[1].piece_count = 3;
    struct deltafs_table in_pieces = *t;
    in_pieces.column = column;
    CHECK_IS(deltafs_indexer_open(NULL, file.path, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_add(ix, file.path, 1, (const struct deltafs_table *const[]){&in_pieces}), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    check_all(file.path, &file, 1);
    deltafs_table_destroy(t);
    free(file.key);
}

static uint64_t count_epochs(const char *index)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    deltafs_dir *dir;

    CHECK_IS(deltafs_open(index, NULL, &dir), DELTAFS_OK);
    CHECK_IS(deltafs_stat(dir, &stat), DELTAFS_OK);
    CHECK_IS(deltafs_close(dir), DELTAFS_OK);
    return stat.epochs;
}

/* A file that was written to, but not to its keys, gets no epoch again (it took its space twice). If a key has changed,
 * or moved, it does; and if it is indexed again without a change, since that is wanted then. */
static void test_same_keys(void **state)
{
    struct rng r = rng_init(63);

    (void)state;
    for (int is_logical = 0; is_logical < 2; is_logical++) {
        struct oracle file = oracle_make(&r, unit_path("same%d", is_logical), 1, 5000, 0);
        void (*write)(const struct oracle *o) = is_logical ? oracle_write_logical : oracle_write;
        const char *index = unit_path("same.index%d", is_logical);
        write(&file);
        CHECK_IS(index_one(index, &file), DELTAFS_OK);
        CHECK_IS(count_epochs(index), 1);
        for (int i = 0; i < 2; i++) {
            file.seed++;
            file.label++;
            write(&file);
            CHECK_IS(index_one(index, &file), DELTAFS_OK);
            CHECK_IS(count_epochs(index), 1);
            check_all(index, &file, 1);
        }
        file.key[0]++;
        file.key[1]--;
        write(&file);
        CHECK_IS(index_one(index, &file), DELTAFS_OK);
        CHECK_IS(count_epochs(index), 2);
        uint64_t key = file.key[0];
        file.key[0] = file.key[4000];
        file.key[4000] = key;
        write(&file);
        CHECK_IS(index_one(index, &file), DELTAFS_OK);
        CHECK_IS(count_epochs(index), 3);
        check_all(index, &file, 1);
        CHECK_IS(index_one(index, &file), DELTAFS_OK);
        CHECK_IS(count_epochs(index), 4);
        check_all(index, &file, 1);
        free(file.key);
    }
}

/* Each operation of an indexing fails in turn: the status says so, what was indexed before is found, and indexing again
 * mends it. */
static void test_fault(void **state)
{
    struct rng r = rng_init(8);
    struct oracle file[2] = {oracle_make(&r, unit_path("k.1"), 1, 60, 0), oracle_make(&r, unit_path("k.2"), 2, 60, 0)};
    const char *index = unit_path("faults");
    int failed = 1;

    (void)state;
    oracle_write(&file[0]);
    oracle_write(&file[1]);
    for (uint64_t k = 0; failed; k++) {
        unit_remove(index);
        CHECK_IS(index_one(index, &file[0]), DELTAFS_OK);
        unit_kth_begin_default(k, EIO);
        unit_kth_count(1);
        int is_added = 0, status = index_and_tell(index, &file[1], &is_added);
        unit_kth_count(0);
        failed = unit_kth_end();
        CHECK(failed || status == DELTAFS_OK);
        check_some(index, file, is_added ? 2 : 1, is_added);
        CHECK_IS(index_one(index, &file[1]), DELTAFS_OK);
        check_all(index, file, 2);
    }
    free(file[0].key);
    free(file[1].key);
}

/* Making an index fails at the first line of SOURCES: indexing again makes it. (It found a damaged index.) */
static void test_fault_at_first(void **state)
{
    struct rng r = rng_init(9);
    struct oracle file = oracle_make(&r, unit_path("f.1"), 1, 60, 0);
    const char *index = unit_path("first");

    (void)state;
    oracle_write(&file);
    unit_io_begin();
    unit_io_fail(OP_WRITE, "SOURCES", 0, 1, ENOSPC);
    CHECK(index_one(index, &file) != DELTAFS_OK);
    CHECK_IS(unit_io_failures(), 1);
    unit_io_end();
    CHECK_IS(index_one(index, &file), DELTAFS_OK);
    check_all(index, &file, 1);
    free(file.key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),    cmocka_unit_test(test_tables),         cmocka_unit_test(test_round),
        cmocka_unit_test(test_beside),    cmocka_unit_test(test_moved_on),       cmocka_unit_test(test_visited),
        cmocka_unit_test(test_namesake),  cmocka_unit_test(test_changed),        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_forged),    cmocka_unit_test(test_refused),        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_fault),     cmocka_unit_test(test_fault_at_first), cmocka_unit_test(test_written_between),
        cmocka_unit_test(test_same_keys), cmocka_unit_test(test_pieces)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) != 0;
}
