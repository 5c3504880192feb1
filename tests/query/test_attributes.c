/* Attributes: what is set is read, by a writer and in a closed directory; it is all or nothing; it outlives damage. */
#include <errno.h>
#include <math.h>
#include <deltafs/deltafs_query.h>
#include "base/crc32c.h"
#include "io/io_format.h"
#include "unit_help.h"
#include "unit_io.h"

#define FOR_ALL UINT64_MAX

static deltafs_dir *create(const char *name, const char *option, const char *value)
{
    deltafs_options *o =
        unit_options("schema", "ux:f4,uy:f4", "memory", "8M", "partitions", "2", "sync", "commit", NULL);

    if (option)
        CHECK_IS(deltafs_options_set(o, option, value), DELTAFS_OK);
    return unit_create(unit_path("%s", name), o);
}

static void put_epoch(deltafs_dir *d, uint64_t label)
{
    for (uint64_t key = 0; key < 100; key++)
        CHECK_CALL(d, deltafs_append(d, key, "12345678", 8), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, label), DELTAFS_OK);
}

static struct deltafs_attribute number(const char *name, uint64_t from, const double *value)
{
    return (struct deltafs_attribute){.struct_size = sizeof(struct deltafs_attribute),
                                      .name = name,
                                      .from = from,
                                      .type = DELTAFS_ATTRIBUTE_F8,
                                      .count = 1,
                                      .value = value};
}

static void set(deltafs_dir *d, const char *name, uint64_t from, double value)
{
    struct deltafs_attribute a = number(name, from, &value);

    CHECK_CALL(d, deltafs_attribute_set(d, &a), DELTAFS_OK);
}

static void set_text(deltafs_dir *d, const char *name, int type, const char *text)
{
    struct deltafs_attribute a = {.struct_size = sizeof a, .name = name, .type = type, .value = text};

    CHECK_CALL(d, deltafs_attribute_set(d, &a), DELTAFS_OK);
}

static struct deltafs_attribute get(deltafs_dir *d, const char *name, uint64_t label)
{
    struct deltafs_attribute a = {.struct_size = sizeof a};

    CHECK_CALL(d, deltafs_attribute_get(d, name, label, &a), DELTAFS_OK);
    CHECK(strcmp(a.name, name) == 0);
    return a;
}

static void check_number(deltafs_dir *d, const char *name, uint64_t label, double want)
{
    struct deltafs_attribute a = get(d, name, label);

    CHECK(a.type == DELTAFS_ATTRIBUTE_F8 && a.count == 1 && *(const double *)a.value == want);
}

static size_t count(deltafs_dir *d)
{
    struct deltafs_attribute a = {.struct_size = sizeof a};
    size_t n = 0;

    while (deltafs_attribute_at(d, n, &a) == DELTAFS_OK)
        n++;
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    CHECK_CALL(d, deltafs_stat(d, &stat), DELTAFS_OK);
    CHECK_IS(stat.attributes, n);
    return n;
}

static const double doubles[] = {0.1, -0.0, 1e300, 5e-324, -1.0 / 3, INFINITY, NAN, 123456789.123456789};
static const int64_t integers[] = {INT64_MIN, -1, 0, INT64_MAX};
static const uint64_t naturals[] = {0, UINT64_MAX};
static const char text[] = "two words, 100% ~deadbeef\n\t=\x7f gr\xc3\xbc\xc3\x9f"
                           "e";

static void set_all_types(deltafs_dir *d)
{
    struct deltafs_attribute a = {.struct_size = sizeof a, .name = "doubles", .type = DELTAFS_ATTRIBUTE_F8};

    a.count = sizeof doubles / sizeof doubles[0];
    a.value = doubles;
    a.unit_si = 1e-6;
    a.unit_dimension[0] = 1;
    a.unit_dimension[2] = -0.5;
    CHECK_CALL(d, deltafs_attribute_set(d, &a), DELTAFS_OK);
    a = (struct deltafs_attribute){.struct_size = sizeof a, .name = "integers", .type = DELTAFS_ATTRIBUTE_I8};
    a.count = 4;
    a.value = integers;
    CHECK_CALL(d, deltafs_attribute_set(d, &a), DELTAFS_OK);
    a = (struct deltafs_attribute){.struct_size = sizeof a, .name = "naturals", .type = DELTAFS_ATTRIBUTE_U8};
    a.count = 2;
    a.value = naturals;
    CHECK_CALL(d, deltafs_attribute_set(d, &a), DELTAFS_OK);
    set_text(d, "note", DELTAFS_ATTRIBUTE_TEXT, text);
    set_text(d, "empty", DELTAFS_ATTRIBUTE_TEXT, "");
    set_text(d, "energy", DELTAFS_ATTRIBUTE_EXPRESSION, "sqrt(1 + ux**2 + uy**2) - 1");
    a = (struct deltafs_attribute){.struct_size = sizeof a, .name = "ux", .type = DELTAFS_ATTRIBUTE_COLUMN};
    a.unit_si = 299792458;
    CHECK_CALL(d, deltafs_attribute_set(d, &a), DELTAFS_OK);
}

static void check_all_types(deltafs_dir *d)
{
    struct deltafs_attribute a = get(d, "doubles", 0);

    CHECK_IS(count(d), 7);
    CHECK(a.count == sizeof doubles / sizeof doubles[0] && a.unit_si == 1e-6);
    CHECK(a.unit_dimension[0] == 1 && a.unit_dimension[1] == 0 && a.unit_dimension[2] == -0.5);
    for (size_t i = 0; i < a.count; i++) {
        double v = ((const double *)a.value)[i];
        CHECK(doubles[i] != doubles[i] ? v != v : memcmp(&v, &doubles[i], sizeof v) == 0);
    }
    a = get(d, "integers", FOR_ALL);
    CHECK(a.type == DELTAFS_ATTRIBUTE_I8 && a.count == 4 && memcmp(a.value, integers, sizeof integers) == 0);
    a = get(d, "naturals", 7);
    CHECK(a.type == DELTAFS_ATTRIBUTE_U8 && a.count == 2 && memcmp(a.value, naturals, sizeof naturals) == 0);
    a = get(d, "note", 0);
    CHECK(a.type == DELTAFS_ATTRIBUTE_TEXT && a.count == strlen(text) && strcmp(a.value, text) == 0);
    a = get(d, "empty", 0);
    CHECK(a.count == 0 && *(const char *)a.value == '\0');
    a = get(d, "energy", 0);
    CHECK(a.type == DELTAFS_ATTRIBUTE_EXPRESSION && strcmp(a.value, "sqrt(1 + ux**2 + uy**2) - 1") == 0);
    a = get(d, "ux", 0);
    CHECK(a.type == DELTAFS_ATTRIBUTE_COLUMN && a.count == 0 && !a.value && a.unit_si == 299792458);
}

static void test_types(void **state)
{
    deltafs_dir *d = create("types", NULL, NULL);

    (void)state;
    set_all_types(d);
    put_epoch(d, 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(unit_path("types"));
    check_all_types(d);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(deltafs_repair(unit_path("types"), NULL, NULL, NULL), DELTAFS_OK);
    d = unit_open(unit_path("types"));
    CHECK_CALL(d, deltafs_verify(d, NULL, NULL, NULL), DELTAFS_OK);
    check_all_types(d);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* Before, within and behind epochs, by a second writer, and after the close: the last that was set counts. */
static void test_labels(void **state)
{
    deltafs_dir *r, *d = create("labels", "commit", "async");
    struct deltafs_attribute a = {.struct_size = sizeof a};
    double v = 8;

    (void)state;
    set(d, "nx", 0, 1);
    put_epoch(d, 10);
    set(d, "nx", 20, 2);
    CHECK_CALL(d, deltafs_append(d, 1, "12345678", 8), DELTAFS_OK);
    set(d, "time", 20, 0.5);
    CHECK_CALL(d, deltafs_epoch_end(d, 20), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_wait(d), DELTAFS_OK);
    r = unit_open(unit_path("labels"));
    check_number(r, "nx", 0, 1);
    check_number(r, "nx", 19, 1);
    check_number(r, "nx", 20, 2);
    check_number(r, "nx", FOR_ALL, 2);
    CHECK_IS(deltafs_attribute_get(r, "time", 19, &a), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_attribute_get(r, "ny", 19, &a), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_attribute_get(r, NULL, 19, &a), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_attribute_set(r, &a), DELTAFS_ERR_MODE);
    CHECK_IS(deltafs_attribute_get(d, "nx", 0, &a), DELTAFS_ERR_MODE);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(deltafs_reopen(unit_path("labels"), NULL, &d), DELTAFS_OK);
    set(d, "nx", 15, 3);
    put_epoch(d, 30);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(count(r), 3);
    CHECK_CALL(r, deltafs_refresh(r), DELTAFS_OK);
    CHECK_IS(count(r), 3);
    check_number(r, "nx", 14, 1);
    check_number(r, "nx", 20, 3);
    a = number("nx", 0, &v);
    CHECK_IS(deltafs_attribute_set_closed(unit_path("labels"), &a), DELTAFS_OK);
    CHECK_CALL(r, deltafs_refresh(r), DELTAFS_OK);
    CHECK_IS(count(r), 2);
    check_number(r, "nx", 30, 8);
    CHECK_CALL(r, deltafs_verify(r, NULL, NULL, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_close(r), DELTAFS_OK);
}

/* Values are removed from a label on, by a writer and in a closed directory; and may be set again. */
static void test_removed(void **state)
{
    struct deltafs_attribute none = {.struct_size = sizeof none, .name = "nx", .type = DELTAFS_ATTRIBUTE_NONE},
                             a = none;
    const char *path = unit_path("removed");
    deltafs_dir *d = create("removed", NULL, NULL);

    (void)state;
    set(d, "nx", 0, 1);
    set(d, "nx", 10, 2);
    set(d, "nx", 20, 3);
    set(d, "ny", 15, 4);
    set_text(d, "energy", DELTAFS_ATTRIBUTE_EXPRESSION, "nx * ux");
    none.from = 5;
    CHECK_CALL(d, deltafs_attribute_set(d, &none), DELTAFS_OK);
    put_epoch(d, 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    CHECK_IS(count(d), 3);
    check_number(d, "nx", 100, 1);
    check_number(d, "ny", 15, 4);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);

    CHECK_IS(deltafs_attribute_set_closed(path, &none), DELTAFS_ERR_NOT_FOUND);
    none.from = 0;
    CHECK_IS(deltafs_attribute_set_closed(path, &none), DELTAFS_ERR_INVALID); /* a computed column needs it */
    none.name = "energy";
    CHECK_IS(deltafs_attribute_set_closed(path, &none), DELTAFS_OK);
    none.name = "nx";
    CHECK_IS(deltafs_attribute_set_closed(path, &none), DELTAFS_OK);
    CHECK_IS(deltafs_attribute_set_closed(path, &none), DELTAFS_ERR_NOT_FOUND);
    none.name = "none";
    CHECK_IS(deltafs_attribute_set_closed(path, &none), DELTAFS_ERR_NOT_FOUND);
    /* The unit of a column. */
    struct deltafs_attribute unit = {.struct_size = sizeof unit, .name = "ux", .type = DELTAFS_ATTRIBUTE_COLUMN};
    unit.unit_si = 2;
    none.name = "ux";
    CHECK_IS(deltafs_attribute_set_closed(path, &unit), DELTAFS_OK);
    CHECK_IS(deltafs_attribute_set_closed(path, &none), DELTAFS_OK);
    d = unit_open(path);
    CHECK_IS(count(d), 1);
    CHECK_CALL(d, deltafs_attribute_get(d, "nx", 100, &a), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    a = number("nx", 7, &(double){9});
    CHECK_IS(deltafs_attribute_set_closed(path, &a), DELTAFS_OK);
    d = unit_open(path);
    check_number(d, "nx", 7, 9);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void check_refused(deltafs_dir *d, const struct deltafs_attribute *a, const char *says)
{
    CHECK_IS(deltafs_attribute_set(d, a), DELTAFS_ERR_INVALID);
    if (!strstr(deltafs_errmsg(d), says))
        fail_msg("%s: '%s' is not said", deltafs_errmsg(d), says);
}

static void test_refused(void **state)
{
    static const char *const names[] = {"", "3d", "a b", "a-b", "\xc3\xbc", NULL};
    static const char *const taken[] = {"ux", "uy", "key", "epoch", "and", "or", "not"};
    deltafs_dir *d = create("refused", NULL, NULL);
    double v = 1;
    struct deltafs_attribute a = number(NULL, 0, &v);
    char name[400];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        a.name = names[i];
        check_refused(d, &a, "is no name");
    }
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        a.name = taken[i];
        check_refused(d, &a, "another name");
    }
    memset(name, 'a', 256);
    name[256] = '\0';
    a.name = name;
    check_refused(d, &a, "is no name");
    name[255] = '\0';
    CHECK_CALL(d, deltafs_attribute_set(d, &a), DELTAFS_OK);
    a.name = "nz";
    a.type = DELTAFS_ATTRIBUTE_COLUMN;
    check_refused(d, &a, "no column 'nz'");
    a.type = 8;
    check_refused(d, &a, "no type");
    a = number("nz", 0, NULL);
    check_refused(d, &a, "no value");
    a.type = DELTAFS_ATTRIBUTE_EXPRESSION;
    check_refused(d, &a, "no value");
    a.value = "ux + (uy";
    check_refused(d, &a, "deltafs_attribute_set: 'nz': offset 8: ");
    a.value = "";
    check_refused(d, &a, "'nz': offset 0: ");
    a = number("nz", 0, &v);
    a.count = 0;
    check_refused(d, &a, "no numbers");
    a = number("nz", 0, &v);
    a.unit_si = -1;
    check_refused(d, &a, "unit");
    a.unit_si = NAN;
    check_refused(d, &a, "unit");
    a.struct_size = 0;
    check_refused(d, &a, "struct_size");
    check_refused(d, NULL, "must be given");
    put_epoch(d, 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* Long arrays are written within the budget, and have a limit. */
static void test_long(void **state)
{
    enum { FITS = 60000, TOO_MANY = 900000 };
    deltafs_dir *d = create("long", NULL, NULL);
    struct deltafs_memory_stat before = {.struct_size = sizeof before}, after = before;
    double *v = malloc(TOO_MANY * sizeof *v);
    struct deltafs_attribute a = number("x0", 0, v);
    size_t n;

    (void)state;
    CHECK(v != NULL);
    for (size_t i = 0; i < TOO_MANY; i++)
        v[i] = (double)i / 7;
    CHECK_CALL(d, deltafs_memory_stat(d, &before), DELTAFS_OK);
    a.type = DELTAFS_ATTRIBUTE_U8;
    a.count = TOO_MANY;
    check_refused(d, &a, "16777216 bytes");
    a.type = DELTAFS_ATTRIBUTE_F8;
    a.count = FITS;
    CHECK_CALL(d, deltafs_attribute_set(d, &a), DELTAFS_OK);
    CHECK_CALL(d, deltafs_memory_stat(d, &after), DELTAFS_OK);
    CHECK_IS(after.peak, before.peak);
    put_epoch(d, 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(unit_path("long"));
    a = get(d, "x0", 1);
    CHECK(a.count == FITS && memcmp(a.value, v, FITS * sizeof *v) == 0);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    free(v);

    /* The manifest loses this line, which is longer than any other: the copy shows it, and repair restores it. */
    uint8_t *copy = unit_load(unit_path("long/MANIFEST.copy"), &n);
    uint8_t *line = memmem(copy, n, "attribute ", 10);
    CHECK(line != NULL);
    unit_save(unit_path("long/MANIFEST"), copy, (size_t)(line - copy));
    CHECK_IS(deltafs_open(unit_path("long"), NULL, &d), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_repair(unit_path("long"), NULL, NULL, NULL), DELTAFS_OK);
    d = unit_open(unit_path("long"));
    CHECK_IS(get(d, "x0", 1).count, FITS);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    free(copy);
}

/* ---- Failures ---- */

static void test_closed_only(void **state)
{
    deltafs_dir *d = create("open", NULL, NULL), *other = NULL;
    double v = 1;
    struct deltafs_attribute a = number("nx", 0, &v);
    size_t n;

    (void)state;
    put_epoch(d, 1);
    CHECK_IS(deltafs_attribute_set_closed(unit_path("open"), &a), DELTAFS_ERR_BUSY);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(deltafs_attribute_set_closed(unit_path("none"), &a), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_attribute_set_closed(unit_folder, &a), DELTAFS_ERR_NOT_DELTAFS);
    CHECK(!unit_exists(unit_path("LEASE")));
    CHECK_IS(deltafs_attribute_set_closed(NULL, &a), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_attribute_set_closed(unit_path("open"), NULL), DELTAFS_ERR_INVALID);
    /* Its writer died. */
    uint8_t *manifest = unit_load(unit_path("open/MANIFEST"), &n);
    const uint8_t *close = memmem(manifest, n, "close ", 6);
    CHECK(close != NULL);
    unit_cut_manifest(unit_path("open"), (size_t)(close - manifest));
    CHECK_IS(deltafs_attribute_set_closed(unit_path("open"), &a), DELTAFS_ERR_MODE);
    CHECK(strstr(deltafs_errmsg(NULL), "deltafs repair") != NULL);
    CHECK(!unit_exists(unit_path("open/LEASE")));
    CHECK_IS(deltafs_repair(unit_path("open"), NULL, NULL, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_attribute_set_closed(unit_path("open"), &a), DELTAFS_OK);
    CHECK_IS(deltafs_open(unit_path("open"), NULL, &other), DELTAFS_OK);
    check_number(other, "nx", 0, 1);
    CHECK_IS(deltafs_close(other), DELTAFS_OK);
    free(manifest);
}

/* Each operation on the manifest fails once: the attribute is there or not, and the directory goes on. */
static void test_faults(void **state)
{
    static const enum unit_op ops[] = {OP_WRITE, OP_SYNC};
    deltafs_dir *d;

    (void)state;
    unit_io_begin();
    d = create("faults", NULL, NULL);
    set(d, "nx", 0, 1);
    put_epoch(d, 1);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        double v = 2;
        struct deltafs_attribute a = number("nx", 0, &v);
        unit_io_fail(ops[i], "MANIFEST", 0, 1, ENOSPC);
        CHECK_IS(deltafs_attribute_set(d, &a), DELTAFS_ERR_NO_SPACE);
        unit_io_fail(ops[i], "MANIFEST", 0, 0, 0);
        deltafs_dir *r = unit_open(unit_path("faults"));
        check_number(r, "nx", 0, 1);
        CHECK_IS(deltafs_close(r), DELTAFS_OK);
        put_epoch(d, 2 + i);
    }
    set(d, "ny", 0, 3);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        double v = 4;
        struct deltafs_attribute a = number("ny", 0, &v);
        unit_io_fail(ops[i], "MANIFEST", 0, 1, ENOSPC);
        CHECK_IS(deltafs_attribute_set_closed(unit_path("faults"), &a), DELTAFS_ERR_NO_SPACE);
        unit_io_fail(ops[i], "MANIFEST", 0, 0, 0);
        d = unit_open(unit_path("faults"));
        check_number(d, "ny", 0, 3);
        CHECK_CALL(d, deltafs_verify(d, NULL, NULL, NULL), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
    unit_io_end();
}

/* A line that can neither be completed nor removed: no epoch follows it, and the next writer removes it. */
static void test_not_undone(void **state)
{
    double v = 2;
    struct deltafs_attribute a = number("nx", 0, &v);
    deltafs_dir *d;

    (void)state;
    unit_io_begin();
    d = create("undone", NULL, NULL);
    put_epoch(d, 1);
    unit_io_fail(OP_SYNC, "MANIFEST", 0, 2, EIO);
    CHECK_IS(deltafs_attribute_set(d, &a), DELTAFS_ERR_IO);
    unit_io_fail(OP_SYNC, "MANIFEST", 0, 0, 0);
    CHECK_IS(deltafs_attribute_set(d, &a), DELTAFS_ERR_IO);
    CHECK_CALL(d, deltafs_append(d, 1, "12345678", 8), DELTAFS_OK);
    CHECK_IS(deltafs_epoch_end(d, 2), DELTAFS_ERR_IO);
    CHECK_IS(deltafs_close(d), DELTAFS_ERR_IO);
    CHECK_IS(deltafs_reopen(unit_path("undone"), NULL, &d), DELTAFS_OK);
    CHECK_CALL(d, deltafs_attribute_set(d, &a), DELTAFS_OK);
    put_epoch(d, 2);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_io_end();
}

/* Epochs that are discarded do not take attributes with them. */
static void test_discarded_epochs(void **state)
{
    deltafs_dir *d = create("dropped", "layout", "local");
    struct deltafs_repair_options o = {.struct_size = sizeof o, .has_drop_from = 1, .drop_from = 20};
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    double v = 2;
    struct deltafs_attribute a = number("ny", 0, &v);

    (void)state;
    put_epoch(d, 10);
    set(d, "nx", 0, 1);
    put_epoch(d, 20);
    set(d, "time", 20, 0.5);
    put_epoch(d, 30);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(deltafs_attribute_set_closed(unit_path("dropped"), &a), DELTAFS_OK);
    CHECK_IS(deltafs_repair(unit_path("dropped"), &o, NULL, NULL), DELTAFS_OK);
    d = unit_open(unit_path("dropped"));
    CHECK_CALL(d, deltafs_stat(d, &stat), DELTAFS_OK);
    CHECK_IS(stat.epochs, 1);
    CHECK_IS(count(d), 3);
    check_number(d, "ny", 0, 2);
    CHECK_CALL(d, deltafs_verify(d, NULL, NULL, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

#define LETTERS_64 "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbccccccccccccccccdddddddddddddddd"

/* Lines with a right checksum and wrong fields; types of later versions are skipped. */
static void test_malformed(void **state)
{
    static const char *const lines[] = {"attribute",
                                        "attribute name=a from=0 type=f8",
                                        "attribute name=a from=0 type=f8 value=",
                                        "attribute name=a from=0 type=f8 value=1,",
                                        "attribute name=a from=0 type=f8 value=1,,2",
                                        "attribute name=a from=0 type=i8 value=1.5",
                                        "attribute name= from=0 type=i8 value=1",
                                        "attribute name=" LETTERS_64 LETTERS_64 LETTERS_64 LETTERS_64
                                        " from=0 type=i8 value=1",
                                        "attribute name=a from=x type=i8 value=1",
                                        "attribute from=0 type=i8 value=1",
                                        "attribute name=a from=0 value=1",
                                        "attribute name=a from=0 type=text value=%0",
                                        "attribute name=a from=0 type=text value=%00",
                                        "attribute name=a from=0 type=text value=%zz",
                                        "attribute name=a from=0 type=i8 unitSI=1 value=1",
                                        "attribute name=a from=0 type=i8 unitSI=1 unitDimension=1,2 value=1"};
    deltafs_dir *d = create("malformed", NULL, NULL);
    char line[400];
    size_t n;

    (void)state;
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    uint8_t *manifest = unit_load(unit_path("malformed/MANIFEST"), &n);
    uint8_t *longer = malloc(n + sizeof line);
    CHECK(longer != NULL);
    memcpy(longer, manifest, n);
    unit_remove(unit_path("malformed/MANIFEST.copy"));
    for (size_t i = 0; i <= sizeof lines / sizeof lines[0]; i++) {
        int is_last = i == sizeof lines / sizeof lines[0];
        const char *what = is_last ? "attribute name=a from=0 type=later more" : lines[i];
        int size = snprintf(line, sizeof line, "%s ~%08x\n", what, crc32c(0, what, strlen(what)));
        memcpy(longer + n, line, (size_t)size);
        unit_save(unit_path("malformed/MANIFEST"), longer, n + (size_t)size);
        int status = deltafs_open(unit_path("malformed"), NULL, &d);
        if (status != (is_last ? DELTAFS_OK : DELTAFS_ERR_DAMAGED))
            fail_msg("'%s': status %d", what, status);
    }
    CHECK_IS(count(d), 0);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    free(longer);
    free(manifest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),     cmocka_unit_test(test_labels),     cmocka_unit_test(test_removed),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_long),       cmocka_unit_test(test_closed_only),
        cmocka_unit_test(test_faults),    cmocka_unit_test(test_not_undone), cmocka_unit_test(test_discarded_epochs),
        cmocka_unit_test(test_malformed),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
