/* Select: the same records, in the promised order, as from a plain list; also if they do not fit into memory, behind
 * damage, and when it is closed at any time. */
#include <math.h>
#include <deltafs/deltafs_query.h>
#include "directory/format/partition.h"
#include "query/value_index.h"
#include "unit_help.h"

#define EPOCHS     3
#define EACH       3000 /* records of an epoch */
#define ALL        (EPOCHS * EACH)
#define PARTITIONS 5
#define BIG        1000         /* bytes of a value that does not fit in memory with others */
#define LONG       (40u << 10)  /* records of an epoch, more than threads make before the caller takes any */
#define LONGER     (500u << 10) /* the same, in several segments, if keys are */
#define SPREAD     40           /* that far */

struct item {
    uint64_t key, label;
    size_t serial;
    float v;
    int32_t n;
};

static struct item items[ALL];

/* ---- Making directories ---- */

static float some_float(struct rng *r)
{
    static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.5f, 1.5f, -1.5f};
    uint64_t i = rng_below(r, 12);

    return i < 8 ? special[i] : (float)rng_below(r, 1000) / 8 - 60;
}

/* Fill `items`, and write them. Keys come several times, also in one epoch. */
static deltafs_dir *make(const char *name, const char *option, const char *value)
{
    struct rng r = rng_init(25);
    deltafs_dir *d = unit_create(unit_path("%s", name), unit_options("schema", "v:f4,n:i4", "memory", "8M",
                                                                     "partitions", "5", option, value, NULL));

    for (size_t i = 0; i < ALL; i++) {
        struct item *it = &items[i];
        *it = (struct item){.key = rng_below(&r, 2000) << 50 | rng_below(&r, 2), .label = 10 * (i / EACH), .serial = i};
        it->v = some_float(&r);
        it->n = (int32_t)rng_below(&r, 100) - 50;
        CHECK_CALL(d, deltafs_append(d, it->key, &it->v, 8), DELTAFS_OK);
        if ((i + 1) % EACH == 0)
            CHECK_CALL(d, deltafs_epoch_end(d, it->label), DELTAFS_OK);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    return unit_open(unit_path("%s", name));
}

/* ---- The oracle ---- */

static int by_key(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->serial < y->serial ? -1 : 1;
}

static int by_value(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int nan = (isnan(x->v) != 0) - (isnan(y->v) != 0);

    if (nan != 0)
        return nan;
    if (!isnan(x->v) && x->v != y->v)
        return x->v > y->v ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return by_key(a, b);
}

typedef int keep_fn(const struct item *it);

/* The items that are to be selected, sorted. */
static size_t wanted(keep_fn *keep, int (*compare)(const void *, const void *), struct item *out)
{
    size_t n = 0;

    for (size_t i = 0; i < ALL; i++)
        if (keep(&items[i]))
            out[n++] = items[i];
    qsort(out, n, sizeof *out, compare);
    return n;
}

/* Select, and compare with `n` items: the values of a batch lie one after the other. */
static void check(deltafs_dir *d, struct deltafs_select_options o, const struct item *want, size_t n)
{
    const struct deltafs_record *row;
    deltafs_select *s;
    size_t at = 0, count;
    double share = 0, before = 0;

    o.struct_size = sizeof o;
    CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
    CHECK(strcmp(deltafs_select_schema(s), "v:f4,n:i4") == 0);
    do {
        CHECK_CALL(d, deltafs_select_next(s, &row, &count), DELTAFS_OK);
        CHECK(at + count <= n);
        CHECK_IS(deltafs_select_progress(s, &share), DELTAFS_OK);
        CHECK(share >= before && share <= 1);
        before = share;
        for (size_t i = 0; i < count; i++, at++) {
            CHECK_IS(row[i].label, want[at].label);
            CHECK_IS(row[i].key, want[at].key);
            CHECK_IS(row[i].size, 8);
            CHECK(memcmp(row[i].value, &want[at].v, 8) == 0);
            CHECK((const char *)row[i].value == (const char *)row[0].value + 8 * i);
        }
    } while (count > 0);
    CHECK_IS(at, n);
    CHECK(share == 1);
    CHECK_IS(deltafs_select_progress(s, NULL), DELTAFS_ERR_INVALID);
    CHECK_CALL(d, deltafs_select_next(s, &row, &count), DELTAFS_OK);
    CHECK_IS(count, 0);
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
}

static int keep_all(const struct item *it)
{
    (void)it;
    return 1;
}

static int keep_some(const struct item *it)
{
    return it->v > 1 && it->n % 7 != 0 && it->label > 0;
}

static int keep_keys(const struct item *it)
{
    return it->key % 2 == 0 && it->n > 0;
}

static int keep_few(const struct item *it)
{
    return it->key % 2 == 0 && it->n == 7 && it->v > 30;
}

/* ---- Tests ---- */

/* The parts have all records once, and each those of its own partitions. */
static void check_parts(deltafs_dir *d, uint32_t parts)
{
    const struct deltafs_range range = {10, 20};
    const struct deltafs_record *row;
    deltafs_select *s;
    size_t all = 0, count;

    for (uint32_t part = 0; part < parts; part++) {
        struct deltafs_select_options o = {.struct_size = sizeof o, .range = &range, .part = part, .parts = parts};
        CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
        do {
            CHECK_CALL(d, deltafs_select_next(s, &row, &count), DELTAFS_OK);
            for (size_t i = 0; i < count; i++)
                CHECK_IS(((row[i].label / 10 - 1) * PARTITIONS + partition_by_hash(row[i].key, PARTITIONS)) % parts,
                         part);
            all += count;
        } while (count > 0);
        CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    }
    CHECK_IS(all, 2 * EACH);
}

static void test_parts(void **state)
{
    (void)state;
    deltafs_dir *d = make("parts", "layout", "partitioned");

    for (uint32_t parts = 1; parts < 12; parts++)
        check_parts(d, parts);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void check_selects(const char *option, const char *value)
{
    static struct item want[ALL];
    static uint64_t keys[ALL], odd[ALL];
    const struct deltafs_range range = {10, 20};
    size_t others = 0;
    deltafs_dir *d = make("selects", option, value);

    check(d, (struct deltafs_select_options){0}, want, wanted(keep_all, by_key, want));
    check(d, (struct deltafs_select_options){.where = "v > 1 and n % 7 != 0", .range = &range}, want,
          wanted(keep_some, by_key, want));
    check(d, (struct deltafs_select_options){.where = "v > 1 and n % 7 != 0 and epoch > 0"}, want,
          wanted(keep_some, by_key, want));
    check(d, (struct deltafs_select_options){.where = "key % 2 == 0 and n > 0"}, want, wanted(keep_keys, by_key, want));
    check(d, (struct deltafs_select_options){.where = "key % 2 == 0 and n == 7 and v > 30"}, want,
          wanted(keep_few, by_key, want));
    check(d, (struct deltafs_select_options){.where = "v < v"}, want, 0);
    for (size_t i = 0; i < ALL; i++) {
        keys[i] = items[i].key;
        if (keys[i] % 2 != 0)
            odd[others++] = keys[i];
    }
    const struct deltafs_key_list all = {.count = ALL, .number = keys}, some = {.count = others, .number = odd},
                                  none = {0};
    check(d, (struct deltafs_select_options){.where = "n > 0", .not_keys = &some}, want,
          wanted(keep_keys, by_key, want));
    check(d, (struct deltafs_select_options){.where = "n > 0", .keys = &all, .not_keys = &some}, want,
          wanted(keep_keys, by_key, want));
    check(d, (struct deltafs_select_options){.and_keys = &all}, want, wanted(keep_all, by_key, want));
    check(d, (struct deltafs_select_options){.keys = &some, .and_keys = &none}, want, 0);
    for (uint64_t top = 1; top < 2 * ALL; top *= 7) {
        size_t n = wanted(keep_all, by_value, want);
        check(d, (struct deltafs_select_options){.by = "v", .top = top}, want, n < top ? n : top);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_remove(unit_path("selects"));
}

static void test_selects(void **state)
{
    (void)state;
    check_selects("layout", "partitioned");
    check_selects("layout", "local");
    check_selects("codec", "none");
    check_selects("block", "256");
    check_selects("block", "65536");
}

/* Columns, computed columns, single numbers; what changes from an epoch to the next. */
static void test_fields(void **state)
{
    static const double factor[] = {2, 3};
    struct deltafs_select_options o = {.struct_size = sizeof o, .fields = "n,twice,factor", .where = "n > 0"};
    struct deltafs_attribute a;
    const struct deltafs_record *row;
    deltafs_select *s;
    size_t count, all = 0;

    (void)state;
    CHECK_IS(deltafs_close(make("fields", "layout", "partitioned")), DELTAFS_OK);
    for (uint64_t i = 0; i < 2; i++) {
        a = (struct deltafs_attribute){.struct_size = sizeof a, .name = "factor", .from = 10 * i, .count = 1};
        a.type = DELTAFS_ATTRIBUTE_F8;
        a.value = &factor[i];
        CHECK_IS(deltafs_attribute_set_closed(unit_path("fields"), &a), DELTAFS_OK);
    }
    a = (struct deltafs_attribute){.struct_size = sizeof a, .name = "twice", .type = DELTAFS_ATTRIBUTE_EXPRESSION};
    a.value = "factor * n + epoch";
    CHECK_IS(deltafs_attribute_set_closed(unit_path("fields"), &a), DELTAFS_OK);
    deltafs_dir *d = unit_open(unit_path("fields"));
    CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
    CHECK(strcmp(deltafs_select_schema(s), "n:i4,twice:f8,factor:f8") == 0);
    do {
        CHECK_CALL(d, deltafs_select_next(s, &row, &count), DELTAFS_OK);
        for (size_t i = 0; i < count; i++) {
            int32_t n;
            double computed[2], f = factor[row[i].label > 0];
            CHECK_IS(row[i].size, 20);
            memcpy(&n, row[i].value, 4);
            memcpy(computed, (const char *)row[i].value + 4, 16);
            CHECK(n > 0 && computed[0] == f * n + (double)row[i].label && computed[1] == f);
        }
        all += count;
    } while (count > 0);
    CHECK(all > ALL / 4);
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    /* Keys alone. */
    o.fields = "";
    CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
    CHECK(strcmp(deltafs_select_schema(s), "") == 0);
    for (size_t n = 0; n < all; n += count) {
        CHECK_CALL(d, deltafs_select_next(s, &row, &count), DELTAFS_OK);
        CHECK(count > 0 && row[0].size == 0);
    }
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    /* Without fields, computed columns come after stored ones. */
    o.fields = NULL;
    CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
    CHECK(strcmp(deltafs_select_schema(s), "v:f4,n:i4,twice:f8") == 0);
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* The first epoch takes more than half of the memory, the second does not. */
static deltafs_dir *make_big(const char *name)
{
    static const size_t records[] = {9000, 100};
    uint8_t value[BIG] = {0};
    deltafs_options *o = unit_options("memory", "8M", NULL);
    deltafs_dir *d = unit_create(unit_path("%s", name), unit_options("value_size", "1000", "memory", "8M", "partitions",
                                                                     "5", "codec", "none", NULL));

    for (size_t e = 0; e < 2; e++) {
        for (uint64_t i = 0; i < records[e]; i++) {
            memcpy(value, &i, sizeof i);
            CHECK_CALL(d, deltafs_append(d, i * 7919 % records[e], value, BIG), DELTAFS_OK);
        }
        CHECK_CALL(d, deltafs_epoch_end(d, e), DELTAFS_OK);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(deltafs_open(unit_path("%s", name), o, &d), DELTAFS_OK);
    deltafs_options_destroy(o);
    return d;
}

/* The rows of an epoch with `records` records, of which the condition leaves one of `step`. They
 * are in the order of keys, although the caller gets them before all are there. Stops after `calls` calls. */
static void check_alone(deltafs_dir *d, uint64_t label, uint32_t records, uint32_t step, size_t calls)
{
    const struct deltafs_range range = {label, label};
    const struct deltafs_select_options o = {
        .struct_size = sizeof o, .range = &range, .where = step > 1 ? "n == 0" : NULL, .fields = "v,half"};
    const struct deltafs_record *row;
    deltafs_select *s;
    uint64_t key = 0;
    size_t count = 1;

    CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
    for (; count > 0 && calls > 0; calls--) {
        CHECK_CALL(d, deltafs_select_next(s, &row, &count), DELTAFS_OK);
        for (size_t i = 0; i < count; i++, key += step) {
            const uint8_t *value = row[i].value;
            float v;
            double half;
            memcpy(&v, value, sizeof v);
            memcpy(&half, value + 4, sizeof half);
            CHECK_IS(row[i].label, label);
            CHECK_IS(row[i].key, key << SPREAD);
            CHECK_IS(row[i].size, 12);
            CHECK(value == (const uint8_t *)row[0].value + 12 * i);
            CHECK(v == (float)key && half == (double)v / 2);
        }
    }
    if (count == 0)
        CHECK_IS(key, (records + step - 1) / step * step);
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
}

/* One partition, so that the rows of an epoch come as they are made, where they are by key. */
static void test_alone(void **state)
{
    static const uint32_t records[] = {LONG, LONGER, 1, LONG};
    const struct deltafs_attribute half = {
        .struct_size = sizeof half, .name = "half", .type = DELTAFS_ATTRIBUTE_EXPRESSION, .value = "v / 2"};
    deltafs_dir *d = unit_create(unit_path("alone"),
                                 unit_options("schema", "u:f4,v:f4,n:i4", "memory", "8M", "partitions", "1", NULL));

    (void)state;
    CHECK_CALL(d, deltafs_attribute_set(d, &half), DELTAFS_OK);
    for (uint64_t e = 0; e < 4; e++) {
        for (uint64_t i = 0; i < records[e]; i++) {
            const uint64_t key = i * 7919 % records[e];
            const struct {
                float u, v;
                int32_t n;
            } value = {1, (float)key, key % 100 != 0};
            CHECK_CALL(d, deltafs_append(d, key << SPREAD, &value, sizeof value), DELTAFS_OK);
        }
        CHECK_CALL(d, deltafs_epoch_end(d, e), DELTAFS_OK);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(unit_path("alone"));
    for (uint64_t e = 0; e < 4; e++)
        for (uint32_t step = 1; step <= 100; step += 99)
            check_alone(d, e, records[e], step, SIZE_MAX);
    for (size_t calls = 0; calls < 4; calls++)
        check_alone(d, 0, LONG, 1, calls);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void test_overflow(void **state)
{
    struct deltafs_select_options o = {.struct_size = sizeof o};
    const struct deltafs_record *row;
    deltafs_select *s;
    size_t count, all = 0;
    uint64_t label = 0, key = 0;
    uint32_t partition = 0;
    deltafs_dir *d = make_big("overflow");

    (void)state;
    CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
    CHECK(deltafs_select_schema(s)[0] == '\0');
    do {
        CHECK_CALL(d, deltafs_select_next(s, &row, &count), DELTAFS_OK);
        for (size_t i = 0; i < count; i++, all++) {
            uint32_t here = partition_by_hash(row[i].key, PARTITIONS);
            int is_next = all == 0 || row[i].key > key;
            CHECK_IS(row[i].label, all >= 9000);
            if (row[i].label == 0)
                CHECK(here > partition || (here == partition && is_next));
            else
                CHECK(row[i].label > label || is_next);
            CHECK_IS(row[i].size, BIG);
            partition = here;
            label = row[i].label;
            key = row[i].key;
        }
    } while (count > 0);
    CHECK_IS(all, 9100);
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    /* It can end at any time. */
    for (int calls = 0; calls < 4; calls++) {
        CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
        for (int i = 0; i < calls; i++)
            CHECK_CALL(d, deltafs_select_next(s, &row, &count), DELTAFS_OK);
        CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* Behind damage, all else is returned, and then the error. */
static void test_damage(void **state)
{
    struct deltafs_select_options o = {.struct_size = sizeof o};
    const struct deltafs_record *row;
    deltafs_select *s;
    size_t count;
    int status;

    (void)state;
    CHECK_IS(deltafs_close(make_big("damage")), DELTAFS_OK);
    unit_poke(unit_path("damage/00/p00000000.data"), 5000, 0x5a);
    deltafs_dir *d = unit_open(unit_path("damage"));
    for (int is_top = 0; is_top < 2; is_top++) {
        size_t all = 0;
        o.by = is_top ? "key" : NULL;
        o.top = is_top ? 10000 : 0;
        CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
        while ((status = deltafs_select_next(s, &row, &count)) == DELTAFS_OK && count > 0)
            all += count;
        CHECK_CALL(d, status, DELTAFS_ERR_DAMAGED);
        CHECK(strstr(deltafs_errmsg(d), "p00000000.data") != NULL);
        CHECK(all < 9100 && all > 8900);
        CHECK_CALL(d, deltafs_select_next(s, &row, &count), DELTAFS_ERR_DAMAGED);
        CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void test_refused(void **state)
{
    const struct deltafs_key_list no_numbers = {.count = 1};
    const struct {
        struct deltafs_select_options o;
        const char *message;
    } wrong[] = {
        {{.where = "v > "}, "where: offset 4: "},
        {{.where = "v + 1"}, "where: offset "},
        {{.where = "v > 1 and w > 1"}, "where: offset 10: no column or attribute is named 'w'"},
        {{.by = "v > 1", .top = 3}, "by: offset "},
        {{.by = "v"}, "by needs top, a number of rows above 0 ('--top N'"},
        {{.top = 3}, "top needs by, the value to order by ('--by EXPR'"},
        {{.part = 2, .parts = 2}, "part: is 2, of 2 parts"},
        {{.fields = "v,w,n"}, "fields: offset 2: no column or attribute is named 'w'"},
        {{.fields = "v,,n"}, "fields: offset 2: expected the name of a column"},
        {{.fields = ","}, "fields: offset 0: expected the name of a column"},
        {{.fields = "v,key"}, "fields: offset 2: each row has its key"},
        {{.fields = "v,v"}, "two fields are named 'v'"},
        {{.keys = &no_numbers}, "keys: the keys of the directory are numbers"},
    };
    deltafs_dir *d = make("refused", "layout", "partitioned");
    const struct deltafs_range none = {100, 200};
    deltafs_select *s;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct deltafs_select_options o = wrong[i].o;
        CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_ERR_INVALID);
        o.struct_size = sizeof o;
        /* Also where nothing is to be read. */
        for (int k = 0; k < 2; k++, o.range = &none) {
            CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_ERR_INVALID);
            if (!strstr(deltafs_errmsg(d), wrong[i].message))
                fail_msg("'%s' is not in the message: %s", wrong[i].message, deltafs_errmsg(d));
        }
    }
    CHECK_IS(deltafs_select_open(NULL, NULL, &s), DELTAFS_ERR_INVALID);
    CHECK_CALL(d, deltafs_select_open(d, NULL, &s), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_select_next(NULL, NULL, NULL), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_select_close(NULL), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* ---- An index ---- */

/* Put an index in the place of the one at `path` that says the same of its records, which have these keys and codes. */
static void forge_index(const char *path, const uint64_t *key, const uint64_t *code, size_t n)
{
    static const char *const names[] = {VALUE_INDEX_MADE, VALUE_INDEX_VALUE, VALUE_INDEX_PRINT};
    struct deltafs_attribute a = {.struct_size = sizeof a};
    deltafs_dir *old = unit_open(path),
                *d = unit_create(unit_path("forged"),
                                 unit_options("schema", "source_key:u8", "partitioner", "range", NULL));

    for (size_t i = 0; i < n; i++)
        CHECK_CALL(d, deltafs_append(d, code[i], &key[i], sizeof key[i]), DELTAFS_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_CALL(old, deltafs_attribute_get(old, names[i], 1, &a), DELTAFS_OK);
        CHECK_CALL(d, deltafs_attribute_set(d, &a), DELTAFS_OK);
    }
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(deltafs_close(old), DELTAFS_OK);
    unit_remove(path);
    CHECK_IS(rename(unit_path("forged"), path), 0);
}

/* Another processor may have computed a value otherwise, so that its code is one less. A record with such a code, just
 * below those among which the largest values are looked for at first, is one of these all the same. */
static void test_top_other_code(void **state)
{
    const double value[] = {2, 2 - 0x1p-7 + 0x1p-40, 2 - 0x1p-7, 1};
    const uint64_t key[] = {10, 11, 12, 13};
    const struct deltafs_record *row;
    struct deltafs_select_options o = {.struct_size = sizeof o, .by = "v", .top = 2, .fields = ""};
    uint64_t code[4];
    char path[PATH_MAX];
    size_t n, given = 0;
    deltafs_select *s;

    (void)state;
    snprintf(path, sizeof path, "%s", unit_path("top/by/size"));
    deltafs_dir *d = unit_create(unit_path("top"), unit_options("schema", "v:f8", "index_by", "size:v", NULL));
    for (int i = 0; i < 4; i++) {
        code[i] = value_index_code(value[i]);
        CHECK_CALL(d, deltafs_append(d, key[i], &value[i], 8), DELTAFS_OK);
    }
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(code[1], code[2]);
    code[1]--;
    forge_index(path, key, code, 4);
    d = unit_open(unit_path("top"));
    CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
    CHECK(strcmp(deltafs_select_index(s), "size") == 0);
    do {
        CHECK_CALL(d, deltafs_select_next(s, &row, &n), DELTAFS_OK);
        for (size_t i = 0; i < n; i++)
            CHECK_IS(row[i].key, key[given++]);
    } while (n > 0);
    CHECK_IS(given, 2);
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_selects),  cmocka_unit_test(test_parts),          cmocka_unit_test(test_fields),
        cmocka_unit_test(test_overflow), cmocka_unit_test(test_alone),          cmocka_unit_test(test_damage),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_top_other_code),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
