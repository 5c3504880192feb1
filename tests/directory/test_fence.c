/* Fences: each leaf is found where a plain list has it, whatever the entries' lengths are; what does not add up is
 * refused. */
#include "base/coding.h"
#include "directory/format/directory_format.h"
#include "directory/format/fence.h"
#include "unit_help.h"

#define LEAVES_MOST 200
#define START       4096 /* where the leaves begin */

struct list {
    struct fence_leaf leaf[LEAVES_MOST];
    uint32_t count;
    uint64_t stop;
};

/* Leaves whose keys mostly add, and whose lengths mostly are, numbers of two bytes, as a particle run's; few others. */
static void list_make(struct list *l, struct rng *r, uint32_t count, uint64_t most_key, uint64_t others)
{
    uint64_t key = rng_below(r, most_key);

    l->count = count;
    l->stop = START;
    for (uint32_t i = 0; i < count; i++) {
        int is_other = others > 0 && rng_below(r, others) == 0;
        uint32_t length = is_other ? (uint32_t)rng_below(r, 60000) : 2000 + (uint32_t)rng_below(r, 2000);
        length = length < LEAF_HEADER_SIZE ? LEAF_HEADER_SIZE : length;
        l->leaf[i] = (struct fence_leaf){key, l->stop, length};
        l->stop += length;
        key += is_other ? rng_below(r, 3) * rng_below(r, most_key) : 128 + rng_below(r, 4000);
    }
}

static uint32_t list_put(const struct list *l, uint8_t *bytes)
{
    uint8_t *p = bytes + FENCE_HEADER_SIZE;

    memset(bytes, 0, FENCE_HEADER_SIZE);
    put_u64(bytes + 32, START);
    for (uint32_t i = 0; i < l->count; i++) {
        p = put_varint(p, l->leaf[i].first_key - (i > 0 ? l->leaf[i - 1].first_key : 0));
        p = put_varint(p, l->leaf[i].length);
    }
    return (uint32_t)(p - bytes);
}

/* The first leaf that can hold the key, and how many, as fence_find says it. */
static uint32_t list_find(const struct list *l, uint64_t key, uint32_t *leaves)
{
    uint32_t i = 0;

    *leaves = 0;
    while (i < l->count && l->leaf[i].first_key < key)
        i++;
    if (i == l->count || l->leaf[i].first_key > key) {
        *leaves = i > 0;
        return i > 0 ? i - 1 : 0;
    }
    while (i + *leaves < l->count && l->leaf[i + *leaves].first_key == key)
        ++*leaves;
    return i;
}

static void check_find(const struct list *l, const struct fence *f, uint64_t key)
{
    uint32_t leaves, wanted, first = list_find(l, key, &wanted);

    CHECK_IS(fence_find(f, key, &leaves), first);
    CHECK_IS(leaves, wanted);
}

static void check_list(const struct list *l)
{
    static uint8_t bytes[FENCE_HEADER_SIZE + LEAVES_MOST * 2 * VARINT_MAX];
    struct memory memory = {.limit = 1 << 20};
    struct fence f;
    struct error e;
    uint32_t size = list_put(l, bytes);
    int status = DELTAFS_OK;

    CHECK(fence_parse(&f, bytes, size, l->count, l->stop, &memory, &status, &e) == NULL);
    CHECK_IS(status, DELTAFS_OK);
    memset(bytes, 0xff, size); /* it has its own */
    for (uint32_t i = 0; i < l->count; i++) {
        struct fence_leaf leaf = fence_leaf(&f, i);
        uint64_t key = l->leaf[i].first_key;
        CHECK(leaf.first_key == key && leaf.offset == l->leaf[i].offset && leaf.length == l->leaf[i].length);
        check_find(l, &f, key > 0 ? key - 1 : 0);
        check_find(l, &f, key);
        check_find(l, &f, key < UINT64_MAX ? key + 1 : key);
    }
    check_find(l, &f, 0);
    check_find(l, &f, UINT64_MAX);
    fence_fini(&f, &memory);
    CHECK(memory.used == 0);
}

static void test_find(void **state)
{
    struct rng r = rng_init(301);
    struct list l;

    (void)state;
    for (uint32_t count = 0; count < LEAVES_MOST; count += count < 70 ? 1 : 13)
        for (uint64_t others = 0; others < 20; others += 1 + others) {
            list_make(&l, &r, count, 1000, others);
            check_list(&l);
            list_make(&l, &r, count, UINT64_MAX / 1000, others);
            check_list(&l);
        }
}

/* From a buffer behind which nothing may be read. */
static const char *parse_wrong(const uint8_t *bytes, uint32_t size, uint32_t leaves, uint64_t stop)
{
    struct fence f;
    struct error e;
    uint8_t *exact = malloc(size);
    int status = DELTAFS_OK;

    CHECK(exact != NULL);
    memcpy(exact, bytes, size);
    const char *wrong = fence_parse(&f, exact, size, leaves, stop, NULL, &status, &e);
    CHECK_IS(status, DELTAFS_OK);
    fence_fini(&f, NULL);
    free(exact);
    return wrong;
}

/* Within a group of entries, at its end, and behind the last whole one. */
static void test_wrong(void **state)
{
    static const uint32_t bad[] = {3, FENCE_STEP - 1, FENCE_STEP + 2};
    uint8_t bytes[FENCE_HEADER_SIZE + LEAVES_MOST * 2 * VARINT_MAX];
    struct rng r = rng_init(302);
    struct list good, l;

    (void)state;
    list_make(&good, &r, FENCE_STEP + 4, 1000, 0);
    uint32_t size = list_put(&good, bytes);
    CHECK(parse_wrong(bytes, size, good.count, good.stop) == NULL);
    CHECK(parse_wrong(bytes, size, good.count, good.stop - 1) != NULL);
    CHECK(parse_wrong(bytes, size, good.count, good.stop + 1) != NULL);
    CHECK(parse_wrong(bytes, size, good.count, START - 1) != NULL);
    CHECK(parse_wrong(bytes, size, good.count - 1, good.stop) != NULL);
    CHECK(parse_wrong(bytes, size - 1, good.count, good.stop) != NULL);
    bytes[size] = 0;
    CHECK(parse_wrong(bytes, size + 1, good.count, good.stop) != NULL);
    put_u64(bytes + 32, START - good.stop); /* the sum wraps to 0 */
    CHECK(parse_wrong(bytes, size, good.count, 0) != NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t stop = good.stop - good.leaf[bad[i]].length;
        l = good;
        l.leaf[bad[i]].length = LEAF_HEADER_SIZE - 1;
        CHECK(parse_wrong(bytes, list_put(&l, bytes), l.count, stop + l.leaf[bad[i]].length) != NULL);
        l.leaf[bad[i]].length = LEAF_SIZE_MAX + 1;
        CHECK(parse_wrong(bytes, list_put(&l, bytes), l.count, stop + l.leaf[bad[i]].length) != NULL);
        l = good;
        l.leaf[bad[i]].first_key = UINT64_MAX; /* what the next one adds is too much */
        CHECK(parse_wrong(bytes, list_put(&l, bytes), l.count, l.stop) != NULL);
    }
}

/* A group of entries that are as short as can be; and one whose lengths are too small, in a form that is too long. */
static void test_short(void **state)
{
    uint8_t bytes[FENCE_HEADER_SIZE + FENCE_STEP * 4] = {0}, *p = bytes + FENCE_HEADER_SIZE;
    struct list l = {.count = FENCE_STEP, .stop = START};

    (void)state;
    for (uint32_t i = 0; i < l.count; i++, l.stop += LEAF_HEADER_SIZE)
        l.leaf[i] = (struct fence_leaf){i, l.stop, LEAF_HEADER_SIZE};
    check_list(&l);
    CHECK(parse_wrong(bytes, list_put(&l, bytes), l.count, l.stop) == NULL);
    for (uint32_t i = 0; i < l.count; i++, p += 4)
        memcpy(p, (const uint8_t[]){0x80, 1, 0x80 | (LEAF_HEADER_SIZE - 1), 0}, 4);
    CHECK(parse_wrong(bytes, sizeof bytes, l.count, l.stop - l.count) != NULL);
}

/* All leaves from one on begin with the same key. */
static void test_equal(void **state)
{
    struct rng r = rng_init(304);
    struct list l;

    (void)state;
    for (uint32_t first = 0; first < 60; first += 7) {
        list_make(&l, &r, 60, 1000, 0);
        for (uint32_t i = first; i < l.count; i++)
            l.leaf[i].first_key = l.leaf[first].first_key;
        check_list(&l);
    }
}

static void test_memory(void **state)
{
    uint8_t bytes[FENCE_HEADER_SIZE + LEAVES_MOST * 2 * VARINT_MAX];
    struct memory memory = {.limit = 100};
    struct rng r = rng_init(303);
    struct fence f;
    struct error e;
    struct list l;
    int status = DELTAFS_OK;

    (void)state;
    list_make(&l, &r, 100, 1000, 0);
    CHECK(fence_parse(&f, bytes, list_put(&l, bytes), l.count, l.stop, &memory, &status, &e) == NULL);
    CHECK_IS(status, DELTAFS_ERR_MEMORY);
    fence_fini(&f, &memory);
    CHECK(memory.used == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),  cmocka_unit_test(test_wrong),  cmocka_unit_test(test_short),
        cmocka_unit_test(test_equal), cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
