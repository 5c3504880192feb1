/* The sort and the memtable, against what is slow and plainly right. */
#include "directory/write/memtable.h"
#include "directory/format/partition.h"
#include "directory/write/sort.h"
#include "directory/format/planes.h"
#include "unit_help.h"

static const size_t value_sizes[] = {0, 1, 4, 5, 7, 8, 40, 8}; /* the last: of values that differ in few bits */
#define VALUE_SIZES (sizeof value_sizes / sizeof value_sizes[0])

static volatile uint8_t slack;
static struct team *team;           /* that sorts; values of every second size are sorted without */
static uint64_t moved[VALUE_SIZES]; /* sorts that moved values of that size */

/* The oracle: the place of each record among all, one by one. */
struct slow_record {
    uint64_t key;
    uint32_t partition, index;
};

/* Stable because the index, which rises in the input, decides between equal keys. */
static int slow_compare(const void *a, const void *b)
{
    const struct slow_record *x = a, *y = b;

    if (x->partition != y->partition)
        return x->partition < y->partition ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Sorting overwrites it. */
static uint64_t *copy_keys(const uint64_t *keys, uint32_t n)
{
    uint64_t *copy = malloc(n * sizeof *copy + PLANES_SLACK);

    CHECK(copy != NULL);
    return n > 0 ? memcpy(copy, keys, n * sizeof *copy) : copy;
}

/* Sort the records with values of one size, which are moved with the keys or stay. */
static void check_values(const struct slow_record *want, const uint64_t *keys, uint32_t n, size_t number,
                         struct sort_partitions p, uint64_t *a, uint64_t *b)
{
    size_t size = value_sizes[number];
    uint8_t *values = malloc(n * size + PLANES_SLACK);
    uint64_t *copy = copy_keys(keys, n);

    CHECK(values != NULL);
    for (uint32_t i = 0; i < n; i++)
        model_value(number + 1 < VALUE_SIZES ? i : 2 * (i % 1000), values + i * size, size);
    const struct sort_input in = {
        .count = n, .keys = copy, .values = values, .value_size = size, .team = number % 2 ? team : NULL};
    const struct sorted got = sort_records(&in, &p, a, b);
    CHECK(got.keys == a || got.keys == b || got.keys == copy);
    CHECK(got.order ? got.values == values : (const void *)got.values == b || (const void *)got.values == copy);
    moved[number] += got.order == NULL;
    for (size_t i = 0; i < PLANES_SLACK; i++) /* the sanitizers say whether it can be read */
        slack = got.values[n * size + i];
    for (uint32_t i = 0; i < n; i++) {
        CHECK(got.keys[i] == want[i].key && (!got.order || got.order[i] == want[i].index));
        const struct sorted from = sorted_from(&got, i, size);
        CHECK(from.keys == got.keys + i);
        CHECK(memcmp(from.values + (from.order ? from.order[0] * size : 0), values + want[i].index * size, size) == 0);
    }
    free(values);
    free(copy);
}

/* Of all keys those that are of the partitions are sorted. */
static void check_sort(const uint64_t *all, uint32_t count, struct sort_partitions p)
{
    uint64_t *keys = malloc((count + 1) * sizeof *keys);
    struct slow_record *want = malloc((count + 1) * sizeof *want);
    uint32_t n = 0;

    CHECK(keys && want);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t partition = partition_of(p.by, all[i]);
        if (partition - p.first >= p.count)
            continue;
        want[n] = (struct slow_record){all[i], partition, n};
        keys[n++] = all[i];
    }
    qsort(want, n, sizeof *want, slow_compare);
    uint64_t *a = malloc(n * sizeof *a + PLANES_SLACK), *b = malloc(n * sizeof *b + PLANES_SLACK);
    CHECK(a && b);
    uint64_t *copy = copy_keys(keys, n);
    const struct sorted got = sort_records(&(struct sort_input){.count = n, .keys = copy, .team = team}, &p, a, b);
    const void *order = got.order;
    CHECK(order == a || order == b || order == copy);
    CHECK(got.keys == a || got.keys == b || got.keys == copy);
    for (uint32_t i = 0; i < n; i++)
        CHECK(got.order[i] == want[i].index && got.keys[i] == want[i].key);
    for (size_t s = 0; s < VALUE_SIZES; s++)
        check_values(want, keys, n, s, p, a, b);
    free(copy);
    free(keys);
    free(a);
    free(b);
    free(want);
}

static void check_sort_of(const uint64_t *keys, uint32_t n, uint32_t all, uint32_t first, uint32_t count)
{
    const struct partitioner by = {.partitions = all};

    check_sort(keys, n, (struct sort_partitions){&by, first, count});
}

static void check_sorts(const uint64_t *keys, uint32_t n)
{
    static const struct {
        uint32_t all, first, count;
    } partitions[] = {{1, 0, 1}, {2, 0, 2}, {1000, 0, 1000}, {1000, 300, 257}, {1 << 20, 0, 1 << 20}, {7, 6, 1}};

    for (size_t p = 0; p < sizeof partitions / sizeof partitions[0]; p++)
        check_sort_of(keys, n, partitions[p].all, partitions[p].first, partitions[p].count);
}

static void test_sort_random(void **state)
{
    static const uint32_t counts[] = {0, 1, 2, 3, 10, 15, 16, 17, 255, 256, 257, 1000, 8191, 8192, 70000};
    struct rng r = rng_init(11);
    static uint64_t keys[70000];

    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        for (int kind = 0; kind < KEYS_KINDS; kind++) {
            for (uint32_t i = 0; i < counts[c]; i++)
                keys[i] = rng_key(&r, (enum key_kind)kind);
            check_sorts(keys, counts[c]);
        }
        for (uint32_t i = 0; i < counts[c]; i++) /* of one byte: below them seven have room */
            keys[i] = rng_below(&r, 256);
        check_sorts(keys, counts[c]);
    }
    for (size_t s = 0; s < VALUE_SIZES; s++)
        CHECK((moved[s] > 0) == (value_sizes[s] > 0 && value_sizes[s] <= 8));
    CHECK(moved[VALUE_SIZES - 1] > 2 * moved[5]); /* of eight bytes, which all differ only where records are few */
}

/* Keys that differ in two ranges of bits only, from each bit on: what is alike in all is left out. */
static void test_sort_bits(void **state)
{
    enum { N = 700 };
    struct rng r = rng_init(12);
    uint64_t keys[N];

    (void)state;
    for (unsigned low = 0; low < 64; low += 3) {
        for (unsigned high = low; high < 64; high += 5) {
            uint64_t same = rng_next(&r);
            for (uint32_t i = 0; i < N; i++)
                keys[i] = same ^ rng_below(&r, 32) << low ^ rng_below(&r, 300) << high;
            check_sort_of(keys, N, 1, 0, 1);
            check_sort_of(keys, N, 9, 0, 9);
        }
    }
}

/* Most keys are near each other, some far away: then shares are of very different sizes. */
static void test_sort_uneven(void **state)
{
    enum { N = 70000 };
    static const unsigned far[] = {1, 8, 24, 64};
    struct rng r = rng_init(13);
    static uint64_t keys[N];

    (void)state;
    for (size_t k = 0; k < sizeof far / sizeof far[0]; k++)
        for (uint64_t same = 0; same < 2; same++) { /* or keys come several times */
            for (uint32_t i = 0; i < N; i++)
                keys[i] = rng_next(&r) >> 16 >> rng_below(&r, far[k]) & ~(same * 0xfff);
            check_sort_of(keys, N, 1, 0, 1);
            check_sort_of(keys, N, 9, 0, 9);
        }
}

static void test_sort_orders(void **state)
{
    enum { N = 20000 };
    static uint64_t keys[N];

    (void)state;
    for (uint32_t i = 0; i < N; i++)
        keys[i] = i;
    check_sorts(keys, N);
    /* All but one in one share: of two gaps in the bits that differ only one is left out. */
    keys[N / 2] = UINT64_C(1) << 33;
    keys[N / 3] = UINT64_C(1) << 40;
    check_sorts(keys, N);
    for (uint32_t i = 0; i < N; i++)
        keys[i] = N - i;
    check_sorts(keys, N);
    for (uint32_t i = 0; i < N; i++)
        keys[i] = 42;
    check_sorts(keys, N);
    for (uint32_t i = 0; i < N; i++)
        keys[i] = i % 3 ? UINT64_MAX : 0;
    check_sorts(keys, N);
}

/* Keys that differ in all bits, the more of them in the low ones alone: the numbers of some have what is needed. */
static void test_sort_whole(void **state)
{
    enum { N = 20000 };
    static const unsigned low[] = {64, 22, 18, 12, 3}; /* bits in which most keys differ */
    struct rng r = rng_init(14);
    static uint64_t keys[N];

    (void)state;
    for (size_t k = 0; k < sizeof low / sizeof low[0]; k++)
        for (uint64_t far = 2; far < N; far *= 20) { /* one of so many keys may be any */
            for (uint32_t i = 0; i < N; i++)
                keys[i] = i % far == 1 ? rng_next(&r) : 42 ^ rng_next(&r) >> (64 - low[k]);
            check_sort_of(keys, N, 1, 0, 1);
            check_sort_of(keys, N, 9, 0, 9);
            check_sort_of(keys, N, 1 << 20, 0, 1 << 20);
        }
}

/* As many records as there may be shares for, and more. */
static void test_sort_many(void **state)
{
    const struct partitioner by = {.partitions = 1};
    const uint32_t n = 4300000;
    const size_t bytes = n * sizeof(uint64_t) + PLANES_SLACK;
    uint64_t *keys = malloc(bytes), *a = malloc(bytes), *b = malloc(bytes);

    (void)state;
    CHECK(keys && a && b);
    for (uint32_t i = 0; i < n; i++)
        keys[i] = (uint64_t)i * 7919 % n; /* n is no multiple of it: all differ */
    const struct sorted got = sort_records(&(struct sort_input){.count = n, .keys = keys, .team = team},
                                           &(struct sort_partitions){&by, 0, 1}, a, b);
    for (uint32_t i = 0; i < n; i++)
        CHECK(got.keys[i] == i && got.order[i] < n && (uint64_t)got.order[i] * 7919 % n == i);
    free(keys);
    free(a);
    free(b);
}

static void fill_and_check(struct memtable *t, struct rng *r, int64_t value_size, uint32_t size_max)
{
    static uint8_t value[1 << 20];
    uint64_t keys[512];
    uint32_t sizes[512], n = 0;
    size_t size;

    memtable_clear(t);
    for (;;) {
        size = value_size >= 0 ? (size_t)value_size : (size_t)rng_below(r, size_max + 1);
        if (n == 512 || !memtable_has_room(t, size))
            break;
        model_value(n, value, size);
        keys[n] = rng_next(r);
        sizes[n] = (uint32_t)size;
        memtable_put(t, keys[n], size > 0 ? value : NULL, size);
        n++;
    }
    CHECK(n > 0);
    CHECK_IS(t->count, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *got = memtable_value(t, i, &size);
        CHECK_IS(size, sizes[i]);
        model_value(i, value, size);
        CHECK(memcmp(got, value, size) == 0);
        CHECK(t->keys[i] == keys[i]);
    }
}

static void test_memtable_one_size(void **state)
{
    static const int64_t sizes[] = {0, 1, 40, 4096, 1 << 20};
    struct rng r = rng_init(13);
    struct memtable t;
    struct error e;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(memtable_init(&t, sizes[i], 20, NULL, &e), DELTAFS_OK);
        for (int round = 0; round < 3; round++) {
            fill_and_check(&t, &r, sizes[i], 0);
            CHECK_IS(t.count, 20);
            CHECK(!memtable_has_room(&t, (size_t)sizes[i]));
        }
        memtable_fini(&t);
    }
}

static void test_memtable_any_size(void **state)
{
    static const uint32_t most[] = {0, 3, 100, 5000, 1 << 20};
    struct rng r = rng_init(14);
    struct memtable t;
    struct error e;

    (void)state;
    assert_int_equal(memtable_init(&t, -1, 300, NULL, &e), DELTAFS_OK);
    for (int round = 0; round < 5; round++)
        for (size_t i = 0; i < sizeof most / sizeof most[0]; i++)
            fill_and_check(&t, &r, -1, most[i]);
    memtable_fini(&t);
    /* However small it is, one value of the largest size fits an empty one. */
    assert_int_equal(memtable_init(&t, -1, 1, NULL, &e), DELTAFS_OK);
    assert_true(memtable_has_room(&t, 1 << 20));
    memtable_fini(&t);
    /* A budget is kept to, and given back. */
    struct memory m = {.limit = 10000};
    assert_int_equal(memtable_init(&t, -1, 1000, &m, &e), DELTAFS_ERR_MEMORY);
    memtable_fini(&t);
    assert_int_equal(m.used, 0);
    assert_int_equal(memtable_init(&t, 91, 100, &m, &e), DELTAFS_OK);
    assert_int_equal(m.used, 100 * (8 + 91) + 2 * PLANES_SLACK);
    memtable_fini(&t);
    assert_int_equal(m.used, 0);
}

static int start(void **state)
{
    struct error e;

    CHECK_IS(team_create(2, &team, &e), DELTAFS_OK);
    return unit_setup(state);
}

static int stop(void **state)
{
    team_destroy(team);
    return unit_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sort_random),       cmocka_unit_test(test_sort_bits),
        cmocka_unit_test(test_sort_uneven),       cmocka_unit_test(test_sort_orders),
        cmocka_unit_test(test_sort_whole),        cmocka_unit_test(test_sort_many),
        cmocka_unit_test(test_memtable_one_size), cmocka_unit_test(test_memtable_any_size),
    };

    return cmocka_run_group_tests(tests, start, stop) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
