/* Files that are opened as a list returns them: they come in the order of their bytes, in batches, and the list knows
 * their names without looking them up. */
#include <fcntl.h>
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

/* List the folder and read its files, which all have version 2 by now. Returns how much could not be read. */
static unsigned read_damaged(const char *path)
{
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace *ns = open_ns(path, O_RDONLY);
    deltafs_namespace_list *l = open_list(ns);
    unsigned failures = 0;
    int status;

    while ((status = deltafs_namespace_list_next(l, &entry)) == DELTAFS_OK && entry) {
        unsigned number = (unsigned)atoi(entry->name), found = 0, version = 0;
        char text[64] = "";
        deltafs_namespace_file *f;
        size_t got;
        status = deltafs_namespace_file_open(ns, file_path(number), O_RDONLY, 0, &f);
        if (status == DELTAFS_OK) {
            status = deltafs_namespace_file_read(f, 0, text, sizeof text - 1, &got);
            CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
        }
        CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_DAMAGED);
        failures += status != DELTAFS_OK;
        CHECK(status != DELTAFS_OK || sscanf(text, " file %u version %u", &found, &version) == 2);
        CHECK(status != DELTAFS_OK || (found == number && version == 2));
    }
    CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_DAMAGED);
    failures += status != DELTAFS_OK;
    deltafs_namespace_list_close(l);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(batches), cmocka_unit_test(changes),
                                       cmocka_unit_test(other_folder), cmocka_unit_test(damages)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
