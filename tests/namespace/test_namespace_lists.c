/* Files that are opened as a list returns them: they come in the order of their bytes, in batches, and the list knows
 * their names without looking them up. */
#include <fcntl.h>
#include <glob.h>
#include "io/io.h"
#include "unit_namespace.h"

static const char *file_path(unsigned number)
{
    static char path[32];

    snprintf(path, sizeof path, "/dir/%u", number);
    return path;
}

static void put_number(deltafs_namespace *ns, unsigned number, unsigned version)
{
    char text[64];

    snprintf(text, sizeof text, "%*s file %u version %u", (int)(number % 20), "", number, version);
    put_file(ns, file_path(number), text);
}

/* Check the bytes of a file; returns its version. */
static unsigned read_number(deltafs_namespace *ns, unsigned number)
{
    char text[64] = "";
    deltafs_namespace_file *f;
    unsigned found, version;
    size_t got;

    CHECK_IS(deltafs_namespace_file_open(ns, file_path(number), O_RDONLY, 0, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_read(f, 0, text, sizeof text - 1, &got), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    CHECK_IS(sscanf(text, " file %u version %u", &found, &version), 2);
    CHECK_IS(found, number);
    return version;
}

static deltafs_namespace_list *open_list(deltafs_namespace *ns)
{
    deltafs_namespace_list *l = NULL;

    CHECK_IS(deltafs_namespace_list_open(ns, "/dir", &l), DELTAFS_OK);
    return l;
}

/* The number of the next file; -1 at the end. */
static int next_number(deltafs_namespace_list *l, int64_t *changed)
{
    const struct deltafs_namespace_entry *entry = NULL;

    CHECK_IS(deltafs_namespace_list_next(l, &entry), DELTAFS_OK);
    if (!entry)
        return -1;
    *changed = entry->stat.ctime;
    return atoi(entry->name);
}

static void check_batches(const char *path, const char *memory, unsigned files, unsigned least, unsigned most)
{
    unsigned batches = 0, n = 0;
    deltafs_namespace *ns = NULL;
    uint8_t *seen = calloc(files, 1);
    int64_t last = 0, changed = 0;

    assert_non_null(seen);
    CHECK_IS(try_open(path, O_RDONLY, memory, &ns), DELTAFS_OK);
    deltafs_namespace_list *l = open_list(ns);
    for (int i; (i = next_number(l, &changed)) >= 0; n++) {
        CHECK((unsigned)i < files && !seen[i]);
        seen[i] = 1;
        CHECK_IS(read_number(ns, (unsigned)i), 1);
        if (n > 16)
            batches += n == 17 || changed < last;
        last = changed;
    }
    CHECK_IS(deltafs_namespace_list_close(l), DELTAFS_OK);
    close_ns(ns);
    free(seen);
    CHECK_IS(n, files);
    CHECK(batches >= least && batches <= most);
}

/* All files once, in one batch, or in several if there is little memory. */
static void batches(void **state)
{
    enum { FILES = 20000 };
    deltafs_namespace *ns = new_ns("batches");

    (void)state;
    CHECK_IS(deltafs_namespace_mkdir(ns, "/dir", 0755), DELTAFS_OK);
    for (unsigned i = 0; i < FILES; i++)
        put_number(ns, i, 1);
    close_ns(ns);
    make_epochs(unit_path("batches"));
    check_batches(unit_path("batches"), "32M", FILES, 1, 1);
    check_batches(unit_path("batches"), "8M", FILES, 2, 3);
}

/* A list of which files are opened, while the files that it has not returned yet are changed. */
static void changes(void **state)
{
    enum { FILES = 400 };
    deltafs_namespace *ns = new_ns("changes");
    uint8_t seen[FILES] = {0};
    unsigned version[FILES], n = 0;
    int64_t changed;

    (void)state;
    CHECK_IS(deltafs_namespace_mkdir(ns, "/dir", 0755), DELTAFS_OK);
    for (unsigned i = 0; i < FILES; i++)
        put_number(ns, i, version[i] = 1);
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    for (unsigned i = 0; i < FILES; i += 3)
        put_number(ns, i, version[i] = 2);
    close_ns(ns);
    make_epochs(unit_path("changes"));
    ns = open_ns(unit_path("changes"), O_RDWR);
    deltafs_namespace *other = open_ns(unit_path("changes"), O_RDWR); /* with a table of its own */
    for (unsigned i = 0; i < FILES; i += 5)
        put_number(other, i, version[i] = 3);
    close_ns(other);
    close_ns(ns);

    ns = open_ns(unit_path("changes"), O_RDWR);
    deltafs_namespace_list *l = open_list(ns);
    for (int i; (i = next_number(l, &changed)) >= 0; n++) {
        CHECK(i < FILES && !seen[i] && version[i] > 0);
        seen[i] = 1;
        CHECK_IS(read_number(ns, (unsigned)i), version[i]);
        unsigned other_one = (unsigned)(i * 7 + 1) % FILES;
        if (n % 4 != 0 || seen[other_one] || version[other_one] == 0)
            continue;
        switch (n / 4 % 4) {
        case 0:
            CHECK_IS(deltafs_namespace_unlink(ns, file_path(other_one)), DELTAFS_OK);
            version[other_one] = 0;
            break;
        case 1:
            put_number(ns, other_one, version[other_one] = 4);
            break;
        case 2:
            CHECK_IS(deltafs_namespace_unlink(ns, file_path(other_one)), DELTAFS_OK);
            put_number(ns, other_one, version[other_one] = 5);
            break;
        default:
            CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
        }
    }
    CHECK_IS(deltafs_namespace_list_close(l), DELTAFS_OK);
    for (unsigned i = 0; i < FILES; i++)
        CHECK(seen[i] || version[i] == 0 || version[i] == 5);
    for (unsigned i = 0; i < FILES; i++)
        CHECK_IS(has(ns, file_path(i)), version[i] > 0);
    close_ns(ns);
}

/* A name that was listed, and another of the same text in another folder. */
static void other_folder(void **state)
{
    deltafs_namespace *ns = new_ns("folders");
    int64_t changed;

    (void)state;
    CHECK_IS(deltafs_namespace_mkdir(ns, "/dir", 0755), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(ns, "/other", 0755), DELTAFS_OK);
    put_number(ns, 1, 1);
    put_file(ns, "/other/1", "other");
    close_ns(ns);
    ns = open_ns(unit_path("folders"), O_RDONLY);
    deltafs_namespace_list *l = open_list(ns);
    CHECK_IS(next_number(l, &changed), 1);
    check_file(ns, "/other/1", "other");
    CHECK(!has(ns, "/other/2"));
    CHECK_IS(read_number(ns, 1), 1);
    CHECK_IS(next_number(l, &changed), -1);
    CHECK_IS(deltafs_namespace_list_close(l), DELTAFS_OK);
    CHECK_IS(read_number(ns, 1), 1);
    close_ns(ns);
}

/* What is known of a name that was just listed is what was done to it since. */
static void changed_names(void **state)
{
    enum { FILES = 40 };
    const struct deltafs_namespace_attributes mode = {
        .struct_size = sizeof mode, .set = DELTAFS_NAMESPACE_MODE, .mode = 0600};
    deltafs_namespace *ns = new_ns("names");
    int64_t changed;

    (void)state;
    CHECK_IS(deltafs_namespace_mkdir(ns, "/dir", 0755), DELTAFS_OK);
    for (unsigned i = 0; i < FILES; i++)
        put_number(ns, i, 1);
    close_ns(ns);
    ns = open_ns(unit_path("names"), O_RDWR);
    deltafs_namespace_list *l = open_list(ns);
    for (int i; (i = next_number(l, &changed)) >= 0;) {
        const char *path = file_path((unsigned)i);
        CHECK_IS(stat_of(ns, path).ctime, changed);
        CHECK_IS(read_number(ns, (unsigned)i), 1);
        switch (i % 5) {
        case 0:
            CHECK_IS(deltafs_namespace_set_attributes(ns, path, 0, &mode), DELTAFS_OK);
            CHECK_IS(stat_of(ns, path).mode & 0777, 0600);
            break;
        case 1:
            CHECK_IS(deltafs_namespace_unlink(ns, path), DELTAFS_OK);
            CHECK(!has(ns, path));
            break;
        case 2:
            CHECK_IS(deltafs_namespace_rename(ns, path, "/moved"), DELTAFS_OK);
            CHECK(!has(ns, path) && has(ns, "/moved"));
            break;
        case 3:
            put_number(ns, (unsigned)i, 2);
            CHECK_IS(read_number(ns, (unsigned)i), 2);
            break;
        default:
            CHECK_IS(deltafs_namespace_truncate(ns, path, 3), DELTAFS_OK);
            CHECK_IS(stat_of(ns, path).size, 3);
        }
    }
    CHECK_IS(deltafs_namespace_list_close(l), DELTAFS_OK);
    close_ns(ns);
}

/* List the folder and read its files, which all have version 2 by now. Returns how much could not be read, with
 * `expected`. */
static unsigned read_failing(deltafs_namespace *ns, int expected)
{
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace_list *l = NULL;
    unsigned failures = 0;
    int status = deltafs_namespace_list_open(ns, "/dir", &l);

    while (status == DELTAFS_OK && (status = deltafs_namespace_list_next(l, &entry)) == DELTAFS_OK && entry) {
        unsigned number = (unsigned)atoi(entry->name), found = 0, version = 0;
        char text[64] = "";
        deltafs_namespace_file *f;
        size_t got;
        status = deltafs_namespace_file_open(ns, file_path(number), O_RDONLY, 0, &f);
        if (status == DELTAFS_OK) {
            status = deltafs_namespace_file_read(f, 0, text, sizeof text - 1, &got);
            CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
        }
        CHECK(status == DELTAFS_OK || status == expected);
        failures += status != DELTAFS_OK;
        CHECK(status != DELTAFS_OK || sscanf(text, " file %u version %u", &found, &version) == 2);
        CHECK(status != DELTAFS_OK || (found == number && version == 2));
    }
    CHECK(status == DELTAFS_OK || status == expected);
    failures += status != DELTAFS_OK;
    deltafs_namespace_list_close(l);
    return failures;
}

static unsigned read_damaged(const char *path)
{
    deltafs_namespace *ns = open_ns(path, O_RDONLY);
    unsigned failures = read_failing(ns, DELTAFS_ERR_DAMAGED);

    close_ns(ns);
    return failures;
}

/* Wrong bytes in what is committed of a folder's newer versions: no file has its older one. */
static void damages(void **state)
{
    enum { FILES = 500, PLACES = 12 };
    const char *path = unit_path("damages");
    deltafs_namespace *ns = new_ns("damages");
    struct rng r = rng_of(5);
    unsigned failures = 0;
    char name[32];
    size_t n;

    (void)state;
    CHECK_IS(deltafs_namespace_mkdir(ns, "/dir", 0755), DELTAFS_OK);
    for (unsigned version = 1; version <= 2; version++) {
        for (unsigned i = 0; i < FILES; i++)
            put_number(ns, i, version);
        close_ns(ns);
        make_epochs(path);
        ns = open_ns(path, O_RDWR);
    }
    close_ns(ns);
    CHECK_IS(read_damaged(path), 0);
    CHECK_IS(count_tables(path, name), 1);
    for (int i = 0; i < 2 * PLACES; i++) {
        const char *log = unit_path("damages/%s%s/00/p00000000.data", name, i % 2 == 0 ? "" : ".data");
        uint8_t *was = unit_load(log, &n);
        size_t at = n - 1 - rng_below(&r, n / 2);
        unit_poke(log, at, (uint8_t)(was[at] ^ 1));
        failures += read_damaged(path) > 0;
        unit_poke(log, at, was[at]);
        free(was);
    }
    CHECK(failures > PLACES);
}

/* Two tables, both with all files in their epochs; the paths of the tables. The second one has version 2. */
static const char *make_two_tables(const char *name, unsigned files, char table[2][PATH_ROOM])
{
    const char *path = unit_path("%s", name);
    deltafs_namespace *ns = new_ns(name), *newer;
    char first[32];
    glob_t tables;

    CHECK_IS(deltafs_namespace_mkdir(ns, "/dir", 0755), DELTAFS_OK);
    for (unsigned i = 0; i < files; i++)
        put_number(ns, i, 1);
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    CHECK_IS(count_tables(path, first), 1);
    newer = open_ns(path, O_RDWR);
    for (unsigned i = 0; i < files; i++)
        put_number(newer, i, 2);
    close_ns(newer);
    close_ns(ns);
    make_epochs(path);
    CHECK_IS(glob(unit_path("%s/t%s", name, "????????????????"), 0, NULL, &tables), 0);
    CHECK_IS(tables.gl_pathc, 2);
    for (int i = 0; i < 2; i++)
        strcpy(table[strcmp(strrchr(tables.gl_pathv[i], '/') + 1, first) != 0], tables.gl_pathv[i]);
    globfree(&tables);
    return path;
}

/* List all files and open each, if `opens`. Returns how often the list had an error. */
static unsigned list_behind_errors(const char *path, unsigned files, int opens)
{
    deltafs_namespace *ns = open_ns(path, O_RDONLY);
    const struct deltafs_namespace_entry *entry = NULL;
    deltafs_namespace_list *l = open_list(ns);
    unsigned failures = 0, n = 0;
    uint8_t *seen = calloc(files, 1);
    int status;

    assert_non_null(seen);
    while ((status = deltafs_namespace_list_next(l, &entry)) != DELTAFS_OK || entry) {
        if (status != DELTAFS_OK) {
            CHECK_IS(status, DELTAFS_ERR_DAMAGED);
            failures++;
            continue;
        }
        unsigned i = (unsigned)atoi(entry->name);
        CHECK(i < files && !seen[i]++);
        n++;
        deltafs_namespace_file *f = NULL;
        if (opens && deltafs_namespace_file_open(ns, file_path(i), O_RDONLY, 0, &f) == DELTAFS_OK)
            CHECK_IS(read_number(ns, i), 2);
        CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    }
    CHECK_IS(n, files);
    CHECK_IS(deltafs_namespace_list_close(l), DELTAFS_OK);
    close_ns(ns);
    free(seen);
    return failures;
}

/* One of two tables is damaged: a list reports that once, and returns each file once. (The file with the last record of
 * the damaged table came twice.) */
static void damaged_table(void **state)
{
    enum { FILES = 300 };
    char table[2][PATH_ROOM];
    const char *path = make_two_tables("table", FILES, table);
    size_t n;

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *log = unit_path("%s/00/p00000000.data", strstr(table[i], "table/"));
        uint8_t *was = unit_load(log, &n);
        unit_poke(log, n / 2, was[n / 2] ^ 1);
        for (int opens = 0; opens < 2; opens++)
            CHECK_IS(list_behind_errors(path, FILES, opens), 1);
        unit_poke(log, n / 2, was[n / 2]);
        free(was);
    }
}

/* A record that is none of a namespace ends what a list has of a table: the files behind it are looked up when they are
 * opened. (They had their older versions.) */
static void malformed_record(void **state)
{
    enum { FILES = 300 };
    char table[2][PATH_ROOM];
    const char *path = make_two_tables("malformed", FILES, table);
    const struct deltafs_record *record;
    uint64_t key = 0, label;
    deltafs_dir *dir;
    deltafs_iter *iter;

    (void)state;
    CHECK_IS(deltafs_open(table[1], NULL, &dir), DELTAFS_OK);
    CHECK_IS(deltafs_last_label(dir, &label), DELTAFS_OK);
    CHECK_IS(deltafs_iter_open(dir, 0, UINT64_MAX, NULL, &iter), DELTAFS_OK);
    for (int i = 0; i < FILES / 2; i++) {
        CHECK_IS(deltafs_iter_next(iter, &record), DELTAFS_OK);
        key = record->key + 1;
    }
    CHECK_IS(deltafs_iter_close(iter), DELTAFS_OK);
    CHECK_IS(deltafs_close(dir), DELTAFS_OK);
    CHECK_IS(deltafs_reopen(table[1], NULL, &dir), DELTAFS_OK);
    CHECK_IS(deltafs_append(dir, key, "x", 1), DELTAFS_OK);
    CHECK_IS(deltafs_epoch_end(dir, label + 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(dir), DELTAFS_OK);
    CHECK_IS(list_behind_errors(path, FILES, 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(batches),       cmocka_unit_test(changes),
                                       cmocka_unit_test(other_folder),  cmocka_unit_test(damages),
                                       cmocka_unit_test(damaged_table), cmocka_unit_test(malformed_record),
                                       cmocka_unit_test(changed_names)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
