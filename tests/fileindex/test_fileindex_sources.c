/* The SOURCES file of an index: of older versions, damaged, or hostile. */
#include <fcntl.h>
#include <deltafs/deltafs_fileindex.h>
#include "base/error.h"
#include "fileindex/fileindex_format.h"
#include "fileindex/sources.h"
#include "unit_help.h"
#include "unit_rows.h"

/* ---- Of older versions ---- */

/* How many rows a group of the index's last table has, as SOURCES says; 0: it does not. */
static unsigned sources_group(const char *path)
{
    size_t n;
    uint8_t *bytes = unit_load(path, &n);
    unsigned group = 0;

    bytes[n] = '\0';
    for (const char *at = (char *)bytes; (at = strstr(at, " group=")); at++)
        group = (unsigned)strtoul(at + 7, NULL, 10);
    free(bytes);
    return group;
}

/* An index as an older version began it, without files. */
static const char *make_old(int version)
{
    const char *index = unit_path("version%d", version);
    deltafs_options *o;
    deltafs_dir *dir;
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct io io = io_default();
    struct io_file out;
    struct error e;
    uint64_t size = 0;

    CHECK_IS(deltafs_options_create(&o), DELTAFS_OK);
    CHECK_IS(deltafs_options_set(o, "schema", FILEINDEX_SCHEMA), DELTAFS_OK);
    CHECK_IS(deltafs_create(index, o, &dir), DELTAFS_OK);
    CHECK_IS(deltafs_close(dir), DELTAFS_OK);
    CHECK_IS(deltafs_open(index, NULL, &dir), DELTAFS_OK);
    CHECK_IS(deltafs_stat(dir, &stat), DELTAFS_OK);
    CHECK_IS(io_file_open(&io, unit_path("version%d/SOURCES", version), O_RDWR | O_CREAT, &out, &e), DELTAFS_OK);
    CHECK_IS(textlog_append(&out, &size, 0, &e, "Sources version=%d uuid=%s", version, stat.uuid), DELTAFS_OK);
    CHECK_IS(io_file_close(&out, &e), DELTAFS_OK);
    CHECK_IS(deltafs_close(dir), DELTAFS_OK);
    deltafs_options_destroy(o);
    return index;
}

/* An index of the first version has smaller groups, of which its tables do not say; what is added to it, too. Lines of
 * the second are not chained. */
static void test_old_versions(void **state)
{
    struct rng r = rng_init(42);
    struct oracle file[2] = {oracle_make(&r, unit_path("v.1"), 1, 3000, 0),
                             oracle_make(&r, unit_path("v.2"), 2, 3000, 5)};
    deltafs_indexer *ix;
    uint64_t freed;

    (void)state;
    oracle_write(&file[0]);
    oracle_write(&file[1]);
    for (int version = 1; version <= 3; version++) {
        const char *index = version < 3 ? make_old(version) : unit_path("version3");
        for (size_t i = 0; i < 2; i++)
            CHECK_IS(index_one(index, &file[i]), DELTAFS_OK);
        check_all(index, file, 2);
        CHECK_IS(sources_group(unit_path("version%d/SOURCES", version)), version > 1 ? 256 : 0);
        CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
        CHECK_IS(deltafs_indexer_compact(ix, &freed), DELTAFS_OK);
        CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
        check_all(index, file, 2);
        CHECK_IS(sources_group(unit_path("version%d/SOURCES", version)), version > 1 ? 256 : 64);
    }
    static const struct {
        uint64_t version, stride, rows;
        uint32_t group;
    } groups[] = {{1, 24, 3000, 64},
                  {1, 64, 9, 64},
                  {1, 65, 9, 32},
                  {1, 5000, 9, 1},
                  {2, 24, 3000, 256},
                  {2, 64, 9, 256},
                  {2, 65, 9, 128},
                  {2, 20000, 9, 1},
                  {1, 5000, UINT64_C(1) << 37, 64},
                  {2, 20000, UINT64_C(1) << 35, 16}};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        const struct deltafs_column key = {.stride = groups[i].stride};
        struct source_table t = {.table = {.rows = groups[i].rows, .column = &key}};
        source_table_choose_group(&t, groups[i].version);
        CHECK_IS(t.group > 0, groups[i].version > 1);
        CHECK_IS(source_table_group(&t), groups[i].group);
    }
    free(file[0].key);
    free(file[1].key);
}

/* ---- SOURCES that is not as it was written ---- */

/* Each byte of the file changed, and the file cut at each: never a wrong row. */
static void test_damaged(void **state)
{
    struct rng r = rng_init(6);
    struct oracle file = oracle_make(&r, unit_path("d.1"), 1, 50, 0);
    const char *index = unit_path("damaged"), *sources = unit_path("damaged/SOURCES");
    unsigned refused = 0;
    size_t n;

    (void)state;
    write_and_index(index, &file);
    uint8_t *bytes = unit_load(sources, &n), *changed = malloc(n);
    for (size_t i = 0; i < 2 * n; i++) {
        deltafs_fileindex *k;
        memcpy(changed, bytes, n);
        changed[i % n] ^= (uint8_t)(1 + rng_below(&r, 255));
        unit_save(sources, changed, i < n ? n : i - n);
        if (deltafs_fileindex_open(index, NULL, &k) != DELTAFS_OK) {
            refused++;
            continue;
        }
        struct answer a = {&file, 1, 0, 0, file.key[7]};
        int status = deltafs_fileindex_get(k, file.key[7], NULL, answer_check, &a, NULL);
        CHECK(status != DELTAFS_OK); /* what is truncated is not indexed */
        deltafs_fileindex_close(k);
    }
    CHECK(refused > n);
    unit_save(sources, bytes, n);
    check_all(index, &file, 1);
    free(bytes);
    free(changed);
    free(file.key);
}

/* A key is never said to be missing, and all of its rows are never said to be there. */
static void check_incomplete(const char *index, const struct oracle *file, uint64_t key)
{
    deltafs_fileindex *k;
    struct answer a = {file, 2, 0, 0, key};

    if (deltafs_fileindex_open(index, NULL, &k) != DELTAFS_OK)
        return;
    int status = deltafs_fileindex_get(k, key, NULL, answer_check, &a, NULL);
    CHECK(status == DELTAFS_ERR_DAMAGED || status == DELTAFS_ERR_CHANGED);
    CHECK(deltafs_fileindex_verify(k, NULL, NULL, NULL) != DELTAFS_OK);
    deltafs_fileindex_close(k);
}

/* Whole lines of SOURCES are removed, repeated or moved, one after the other, or all from one on are: never an answer
 * that lacks rows without saying so, or has others. (A file's rows came under another's timestep.) */
static void test_lines(void **state)
{
    struct rng r = rng_init(61);
    struct oracle file[2] = {oracle_make(&r, unit_path("l.1"), 1, 50, 0), oracle_make(&r, unit_path("l.2"), 2, 50, 0)};
    const char *index = unit_path("lines"), *sources = unit_path("lines/SOURCES");
    size_t n;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        memcpy(file[i].key, file[0].key, 50 * sizeof *file[i].key);
        write_and_index(index, &file[i]);
    }
    uint8_t *bytes = unit_load(sources, &n), *changed = malloc(3 * n);
    for (size_t from = 0, end; from < n; from = end) {
        end = (size_t)((uint8_t *)memchr(bytes + from, '\n', n - from) - bytes) + 1;
        memcpy(changed, bytes, from);
        unit_save(sources, changed, from);
        check_incomplete(index, file, file[0].key[3]);
        memcpy(changed + from, bytes + end, n - end);
        unit_save(sources, changed, n - (end - from));
        check_incomplete(index, file, file[0].key[3]);
        memcpy(changed + n - (end - from), bytes + from, end - from);
        unit_save(sources, changed, n);
        if (end < n)
            check_incomplete(index, file, file[0].key[3]);
        memcpy(changed, bytes, end);
        memcpy(changed + end, bytes + from, n - from);
        unit_save(sources, changed, n + (end - from));
        check_incomplete(index, file, file[0].key[3]);
    }
    unit_save(sources, bytes, n);
    check_all(index, file, 2);
    free(bytes);
    free(changed);
    free(file[0].key);
    free(file[1].key);
}

/* An index without SOURCES is damaged, and no directory of records. */
static void test_no_sources(void **state)
{
    struct rng r = rng_init(62);
    struct oracle file = oracle_make(&r, unit_path("s.1"), 1, 50, 0);
    const char *index = unit_path("s.1.keys");
    deltafs_fileindex *k;
    deltafs_indexer *ix;
    deltafs_dir *dir;

    (void)state;
    write_and_index(NULL, &file);
    unit_remove(unit_path("s.1.keys/SOURCES"));
    CHECK_IS(deltafs_fileindex_open(index, NULL, &k), DELTAFS_ERR_DAMAGED);
    CHECK(strstr(deltafs_errmsg(NULL), "s.1.keys/SOURCES: damaged at offset 0: the file is missing"));
    CHECK_IS(deltafs_fileindex_open(file.path, NULL, &k), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_open(index, NULL, &dir), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_indexer_open(NULL, file.path, NULL, &ix), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_repair(index, NULL, NULL, NULL), DELTAFS_ERR_DAMAGED);
    unit_remove(index);
    CHECK_IS(index_one(NULL, &file), DELTAFS_OK);
    check_all(index, &file, 1);
    free(file.key);
}

/* Write SOURCES from `text`, in which a field or word `from` becomes `to`, with right checksums. Returns whether there
 * was one. */
static int sources_lie(const char *path, const uint8_t *text, const char *from, const char *to)
{
    struct io io = io_default();
    struct io_file out;
    struct error e;
    uint64_t size = 0;
    uint32_t chain = 0;
    int lied = 0;
    char *copy = strdup((const char *)text), *line = copy, *next;

    unit_remove(path);
    CHECK_IS(io_file_open(&io, path, O_RDWR | O_CREAT, &out, &e), DELTAFS_OK);
    for (; (next = strchr(line, '\n')); line = next + 1) {
        char told[600];
        *next = '\0';
        *strstr(line, " ~") = '\0';
        char *at = strstr(line, from);
        if (at && (at == line || at[-1] == ' ')) {
            snprintf(told, sizeof told, "%.*s%s%s", (int)(at - line), line, to, at + strlen(from));
            lied = 1;
        } else {
            snprintf(told, sizeof told, "%s", line);
        }
        CHECK_IS(textlog_append_chained(&out, &size, &chain, 0, &e, "%s", told), DELTAFS_OK);
    }
    CHECK_IS(io_file_close(&out, &e), DELTAFS_OK);
    free(copy);
    return lied;
}

/* Groups of more rows than a writer takes: their keys would take much memory at once. */
static void test_wide_groups(void **state)
{
    const char *path = unit_path("wide"), *sources = unit_path("wide.keys/SOURCES");
    uint64_t size = 8 * 20000;
    struct deltafs_table *t;
    deltafs_indexer *ix;
    deltafs_fileindex *k;
    size_t n;
    uint8_t *bytes = calloc(1, size);

    (void)state;
    unit_save(path, bytes, size);
    free(bytes);
    CHECK_IS(deltafs_table_from_schema(path, "id:u8,rest:S19992", "id", 0, size, 0, &t), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_open(NULL, path, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_add(ix, path, 1, (const struct deltafs_table *const[]){t}), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    deltafs_table_destroy(t);
    CHECK_IS(deltafs_fileindex_open(path, NULL, &k), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_close(k), DELTAFS_OK);
    bytes = unit_load(sources, &n);
    bytes[n] = '\0';
    CHECK(sources_lie(sources, bytes, "group=1", "group=2"));
    CHECK_IS(deltafs_fileindex_open(path, NULL, &k), DELTAFS_ERR_DAMAGED);
    free(bytes);
}

/* Lines with right checksums that say what is not so. */
static void test_hostile(void **state)
{
    static const struct {
        const char *name, *from, *to;
    } lies[] = {{"more rows", "rows=50", "rows=51"},
                {"many rows", "rows=50", "rows=18446744073709551615"},
                {"another key", "key=1", "key=2"},
                {"no such key", "key=1", "key=9"},
                {"another epoch", "sequence=1", "sequence=2"},
                {"overlapping", "stride=24", "stride=1"},
                {"far apart", "stride=24", "stride=9223372036854775807"},
                {"beyond the end", "offset=12", "offset=2000"},
                {"a type", "type=u8", "type=f8"},
                {"large", "size=1200", "size=4000000000000000000"},
                {"other tables", "tables=1", "tables=2"},
                {"no tables", "tables=1", "tables=0"},
                {"forgotten", "Source tables=1", "Forget tables=1"},
                {"no rows in a group", "group=256", "group=0"},
                {"large groups", "group=256", "group=257"},
                {"groups of no number", "group=256", "group=x"},
                {"no power of two", "group=256", "group=200"},
                {"no groups", "group=256", "grope=256"},
                {"another file", "path=h.1", "path=../h.1"},
                {"a device", "path=h.1", "path=/dev/zero"},
                {"a folder", "path=h.1", "path=/tmp"},
                {"no file", "path=h.1", "path=x"},
                {"half a code", "path=h.1", "path=h%0"}};
    struct rng r = rng_init(7);
    struct oracle file = oracle_make(&r, unit_path("h.1"), 1, 50, 0);
    const char *index = unit_path("hostile");
    size_t n;

    (void)state;
    write_and_index(index, &file);
    uint8_t *bytes = unit_load(unit_path("hostile/SOURCES"), &n);
    bytes[n] = '\0';
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        if (!sources_lie(unit_path("hostile/SOURCES"), bytes, lies[i].from, lies[i].to))
            fail_msg("%s: nothing to lie about", lies[i].name);
        deltafs_fileindex *k;
        if (deltafs_fileindex_open(index, NULL, &k) != DELTAFS_OK)
            continue;
        struct deltafs_table_stat stat = {.struct_size = sizeof stat};
        CHECK_IS(deltafs_fileindex_table(k, 0, &stat) == DELTAFS_OK, strcmp(lies[i].name, "forgotten") != 0);
        for (uint64_t row = 0; row < file.rows; row++) {
            struct answer a = {&file, 1, 0, 0, file.key[row]};
            if (deltafs_fileindex_get(k, file.key[row], NULL, answer_check, &a, NULL) == DELTAFS_OK)
                fail_msg("%s: believed", lies[i].name);
        }
        CHECK(deltafs_fileindex_verify(k, NULL, NULL, NULL) != DELTAFS_OK);
        deltafs_fileindex_close(k);
    }
    free(bytes);
    free(file.key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damaged),      cmocka_unit_test(test_hostile),
                                       cmocka_unit_test(test_old_versions), cmocka_unit_test(test_wide_groups),
                                       cmocka_unit_test(test_lines),        cmocka_unit_test(test_no_sources)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) != 0;
}
