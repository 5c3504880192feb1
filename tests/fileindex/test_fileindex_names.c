/* Names of files that are indexed: files that are deleted, moved, or led to by links, and indexes, too. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include <deltafs/deltafs_fileindex.h>
#include "unit_kth.h"
#include "unit_rows.h"

/* Files that are gone leave the index, and may come back. */
static void test_forget(void **state)
{
    struct rng r = rng_init(41);
    struct oracle file[4];
    const char *index = unit_path("forget");
    deltafs_indexer *ix;
    uint64_t n = 9;
    char command[700];
    int has;

    (void)state;
    CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_forget(ix, NULL, &n), DELTAFS_ERR_NOT_FOUND);
    CHECK(n == 0 && !unit_exists(index));
    CHECK_IS(deltafs_indexer_forget(ix, NULL, NULL), DELTAFS_ERR_INVALID);
    CHECK_IS(mkdir(unit_path("gone"), 0777), 0);
    for (size_t i = 0; i < 4; i++) {
        file[i] = oracle_make(&r, unit_path(i < 2 ? "gone/f %zu" : "f %zu", i), i, 200, i);
        oracle_write(&file[i]);
        CHECK_IS(oracle_index(&file[i], ix), DELTAFS_OK);
    }
    CHECK_IS(deltafs_indexer_forget(ix, NULL, &n), DELTAFS_OK);
    CHECK_IS(n, 0);
    /* One that is there; it is not found, and not indexed. */
    CHECK_IS(deltafs_indexer_forget(ix, file[3].path, &n), DELTAFS_OK);
    CHECK_IS(n, 1);
    CHECK_IS(deltafs_indexer_has(ix, file[3].path, &has), DELTAFS_OK);
    CHECK_IS(has, 0);
    CHECK_IS(deltafs_indexer_forget(ix, file[3].path, &n), DELTAFS_ERR_NOT_FOUND);
    CHECK(strstr(deltafs_errmsg(NULL), "f 3: is not indexed in "));
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    check_all(index, file, 3);
    /* Two that are gone with their folder: by name, and as those that are gone. */
    snprintf(command, sizeof command, "rm -r '%s'", unit_path("gone"));
    CHECK_IS(system(command), 0);
    CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_forget(ix, unit_path("gone/other"), &n), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_indexer_forget(ix, unit_path("gone/.."), &n), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_indexer_forget(ix, file[0].path, &n), DELTAFS_OK);
    CHECK_IS(n, 1);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_forget(ix, NULL, &n), DELTAFS_OK);
    CHECK_IS(n, 1);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    check_all(index, &file[2], 1);
    /* All of them; then one again. */
    CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_forget(ix, file[2].path, &n), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    deltafs_fileindex *k;
    CHECK_IS(deltafs_fileindex_open(index, NULL, &k), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_get(k, file[2].key[0], NULL, answer_check, NULL, NULL), DELTAFS_ERR_NOT_FOUND);
    struct deltafs_verify_counts counts = {.struct_size = sizeof counts};
    CHECK_IS(deltafs_fileindex_verify(k, NULL, NULL, &counts), DELTAFS_OK);
    CHECK_IS(counts.records, 0);
    deltafs_fileindex_close(k);
    CHECK_IS(index_one(index, &file[3]), DELTAFS_OK);
    check_all(index, &file[3], 1);
    /* Where none is there the index may have gone from them; what is something else now has not gone. */
    unit_remove(file[3].path);
    CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_forget(ix, NULL, &n), DELTAFS_ERR_CHANGED);
    CHECK(n == 0 && strstr(deltafs_errmsg(NULL), "none of its 1 files is there"));
    deltafs_dir *dir;
    CHECK_IS(deltafs_create(file[3].path, NULL, &dir), DELTAFS_OK);
    CHECK_IS(deltafs_close(dir), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_forget(ix, NULL, &n), DELTAFS_OK);
    CHECK_IS(n, 0);
    unit_remove(file[3].path);
    snprintf(command, sizeof command, "%s/./", file[3].path);
    CHECK_IS(deltafs_indexer_forget(ix, command, &n), DELTAFS_OK);
    CHECK_IS(n, 1);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    oracles_free(file, 4);
}

/* Each operation of forgetting fails in turn: what is said to have gone is not found any longer, and the rest is. */
static void test_forget_fault(void **state)
{
    struct rng r = rng_init(43);
    struct oracle file[4];
    const char *index = unit_path("forget faults");
    deltafs_indexer *ix;
    deltafs_fileindex *keys;
    struct deltafs_table_stat stat = {.struct_size = sizeof stat};
    int failed = 1;

    (void)state;
    for (size_t i = 0; i < 4; i++)
        file[i] = oracle_make(&r, unit_path("forget fault %zu", i), i, 40, 0);
    for (uint64_t k = 0; failed; k++) {
        uint64_t n = 0, left = 0;
        unit_remove(index);
        for (size_t i = 0; i < 4; i++) {
            write_and_index(index, &file[i]);
        }
        unit_remove(file[2].path);
        unit_remove(file[3].path);
        unit_kth_begin_default(k, EIO);
        unit_kth_count(1);
        int status = deltafs_indexer_open(index, NULL, NULL, &ix);
        if (status == DELTAFS_OK) {
            status = deltafs_indexer_forget(ix, NULL, &n);
            CHECK(n <= 2 && (n == 2 || status != DELTAFS_OK));
            deltafs_indexer_close(ix);
        }
        unit_kth_count(0);
        failed = unit_kth_end();
        CHECK(failed || n == 2);
        CHECK_IS(deltafs_fileindex_open(index, NULL, &keys), DELTAFS_OK);
        while (deltafs_fileindex_table(keys, left, &stat) == DELTAFS_OK)
            left++;
        deltafs_fileindex_close(keys);
        CHECK_IS(left, 4 - n);
        CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
        CHECK_IS(deltafs_indexer_forget(ix, NULL, &n), DELTAFS_OK);
        CHECK_IS(n, left - 2);
        CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
        check_all(index, file, 2);
    }
    oracles_free(file, 4);
}

/* Files and indexes that links lead to. (All rows were found twice where a folder had been moved, a link left in
 * its place, and the files indexed again; and the old ones could not be forgotten.) */
static void test_links(void **state)
{
    struct rng r = rng_init(44);
    struct oracle file[3];
    const char *index = unit_path("links/all");
    char command[1500];
    deltafs_indexer *ix;
    deltafs_fileindex *k;
    uint64_t n;
    int has;

    (void)state;
    CHECK_IS(mkdir(unit_path("links"), 0777), 0);
    CHECK_IS(mkdir(unit_path("links/d"), 0777), 0);
    for (size_t i = 0; i < 3; i++) {
        file[i] = oracle_make(&r, unit_path(i < 2 ? "links/d/%zu" : "links/%zu", i), i, 200, 0);
        write_and_index(index, &file[i]);
    }
    snprintf(command, sizeof command,
             "cd %s && mkdir arch other && mv d arch && ln -s arch/d d && ln -s ../all other/all", unit_path("links"));
    CHECK_IS(system(command), 0);
    CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
    /* Both names of a file are those of what was indexed. */
    CHECK_IS(deltafs_indexer_has(ix, file[0].path, &has), DELTAFS_OK);
    CHECK_IS(has, 1);
    CHECK_IS(deltafs_indexer_has(ix, unit_path("links/arch/d/0"), &has), DELTAFS_OK);
    CHECK_IS(has, 1);
    /* By another name it is indexed once, and by the first one, too. */
    snprintf(file[0].path, sizeof file[0].path, "%s", unit_path("links/arch/d/0"));
    CHECK_IS(oracle_index(&file[0], ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    check_all(index, file, 3);
    snprintf(file[0].path, sizeof file[0].path, "%s", unit_path("links/d/0"));
    file[0].key[7]++;
    oracle_write(&file[0]);
    CHECK_IS(index_one(index, &file[0]), DELTAFS_OK);
    check_all(index, file, 3);
    /* Through a link to the index its files are where they are. */
    check_all(unit_path("links/other/all"), file, 3);
    CHECK_IS(deltafs_indexer_open(unit_path("links/other/all"), NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_forget(ix, NULL, &n), DELTAFS_OK);
    CHECK_IS(n, 0);
    CHECK_IS(deltafs_indexer_has(ix, file[1].path, &has), DELTAFS_OK);
    CHECK_IS(has, 1);
    /* By any name that leads to it. */
    CHECK_IS(deltafs_indexer_forget(ix, unit_path("links/arch/d/1"), &n), DELTAFS_OK);
    CHECK_IS(n, 1);
    CHECK_IS(deltafs_indexer_forget(ix, file[1].path, &n), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_indexer_forget(ix, "", &n), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    free(file[1].key);
    file[1] = file[2];
    check_all(index, file, 2);
    /* An index that was moved has its files where it really is, also if a link was left in its place. */
    snprintf(command, sizeof command, "cd %s && mv all other/fast && ln -s other/fast all", unit_path("links"));
    CHECK_IS(system(command), 0);
    CHECK_IS(deltafs_fileindex_open(index, NULL, &k), DELTAFS_OK);
    CHECK_IS(deltafs_fileindex_get(k, file[1].key[0], NULL, answer_check, NULL, NULL), DELTAFS_ERR_CHANGED);
    CHECK(strstr(deltafs_errmsg(NULL), "or the index was moved away from it"));
    CHECK_IS(deltafs_fileindex_close(k), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_has(ix, file[1].path, &has), DELTAFS_OK);
    CHECK_IS(has, 0);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    /* Where both folders have files of these names, those count that the index is with. */
    snprintf(command, sizeof command,
             "cd %s && rm all && mv other/fast all && ln -s ../all arch/all && "
             "echo another >arch/2 && mkdir arch/arch && cp -rp d arch/arch/d",
             unit_path("links"));
    CHECK_IS(system(command), 0);
    check_all(unit_path("links/arch/all"), file, 2);
    free(file[0].key);
    free(file[1].key);
}

/* A file that is moved, and a link left, while the index is open; and one that came to be there by two names. */
static void test_two_names(void **state)
{
    struct rng r = rng_init(47);
    struct oracle file = oracle_make(&r, unit_path("names/d"), 1, 50, 0),
                  other = oracle_make(&r, unit_path("names/e"), 1, 50, 0);
    const char *index = unit_path("names/all");
    char command[1500];
    deltafs_indexer *ix;
    uint64_t n;
    int has;

    (void)state;
    CHECK_IS(mkdir(unit_path("names"), 0777), 0);
    oracle_write(&file);
    oracle_write(&other);
    CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(oracle_index(&file, ix), DELTAFS_OK);
    snprintf(command, sizeof command, "cd %s && mkdir arch && mv d arch && ln -s arch/d d", unit_path("names"));
    CHECK_IS(system(command), 0);
    CHECK_IS(deltafs_indexer_has(ix, unit_path("names/arch/d"), &has), DELTAFS_OK);
    CHECK_IS(has, 1);
    CHECK_IS(deltafs_indexer_forget(ix, other.path, &n), DELTAFS_ERR_NOT_FOUND);
    /* The link leads elsewhere now: what it led to is another file, which is not indexed. */
    snprintf(command, sizeof command,
             "cd %s && rm d && mv arch arch2 && ln -s arch2/d d && mkdir arch && cp -p e arch/d", unit_path("names"));
    CHECK_IS(system(command), 0);
    CHECK_IS(deltafs_indexer_forget(ix, unit_path("names/arch/d"), &n), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(n, 0);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    check_all(index, &file, 1);
    /* Indexed by its other name while no link led there; then by both. */
    snprintf(command, sizeof command, "cd %s && rm d", unit_path("names"));
    CHECK_IS(system(command), 0);
    snprintf(file.path, sizeof file.path, "%s", unit_path("names/arch2/d"));
    CHECK_IS(index_one(index, &file), DELTAFS_OK);
    snprintf(command, sizeof command, "cd %s && ln -s arch2/d d", unit_path("names"));
    CHECK_IS(system(command), 0);
    CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_has(ix, file.path, &has), DELTAFS_OK);
    CHECK_IS(has, 0);
    for (int i = 0; i < 2; i++) {
        CHECK_IS(deltafs_indexer_forget(ix, file.path, &n), DELTAFS_OK);
        CHECK_IS(n, 1);
    }
    CHECK_IS(deltafs_indexer_forget(ix, file.path, &n), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    free(file.key);
    free(other.key);
}

/* An index has the full paths of files that are not below its folder; it may come to be above them later. */
static void test_below_later(void **state)
{
    struct rng r = rng_init(45);
    struct oracle file = oracle_make(&r, unit_path("later/run/d.1"), 1, 200, 0);
    const char *index = unit_path("later/run/all");
    char command[1500];
    deltafs_indexer *ix;
    uint64_t n;
    int has;

    (void)state;
    snprintf(command, sizeof command, "mkdir -p %s %s", unit_path("later/run"), unit_path("later/index"));
    CHECK_IS(system(command), 0);
    oracle_write(&file);
    CHECK_IS(index_one(unit_path("later/index/all"), &file), DELTAFS_OK);
    snprintf(command, sizeof command, "mv %s %s", unit_path("later/index/all"), index);
    CHECK_IS(system(command), 0);
    CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_has(ix, file.path, &has), DELTAFS_OK);
    CHECK_IS(has, 1);
    file.key[7]++;
    oracle_write(&file);
    CHECK_IS(deltafs_indexer_has(ix, file.path, &has), DELTAFS_OK);
    CHECK_IS(has, 0);
    CHECK_IS(oracle_index(&file, ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    check_all(index, &file, 1);
    CHECK_IS(deltafs_indexer_open(index, NULL, NULL, &ix), DELTAFS_OK);
    CHECK_IS(deltafs_indexer_forget(ix, file.path, &n), DELTAFS_OK);
    CHECK_IS(n, 1);
    CHECK_IS(deltafs_indexer_close(ix), DELTAFS_OK);
    free(file.key);
}

/* Files of the same size and time, as archives give them back, are files of their own. */
static void test_same_time(void **state)
{
    struct rng r = rng_init(46);
    struct oracle file[3];
    const char *index = unit_path("same time");
    char command[1500];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        file[i] = oracle_make(&r, unit_path("same %zu", i), i, 100, 0);
        oracle_write(&file[i]);
        snprintf(command, sizeof command, "touch -d 2020-01-01 '%s'", file[i].path);
        CHECK_IS(system(command), 0);
        CHECK_IS(index_one(index, &file[i]), DELTAFS_OK);
    }
    check_all(index, file, 3);
    oracles_free(file, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forget),      cmocka_unit_test(test_forget_fault),
                                       cmocka_unit_test(test_links),       cmocka_unit_test(test_two_names),
                                       cmocka_unit_test(test_below_later), cmocka_unit_test(test_same_time)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) != 0;
}
