/* The sort and the memtable, against what is slow and plainly right. */
#include "core/memtable.h"
#include "core/sort.h"
#include "unit_help.h"

/* Stable because the index, which rises in the input, decides between equal keys. */
static int entry_compare(const void *a, const void *b)
{
    const struct sort_entry *x = a, *y = b;

    if (x->partition != y->partition)
        return x->partition < y->partition ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static void check_sort(struct sort_entry *a, uint32_t n)
{
    struct sort_entry *b = malloc((n + 1) * sizeof *b), *want = malloc((n + 1) * sizeof *want);

    CHECK(b && want);
    if (n > 0)
        memcpy(want, a, n * sizeof *want);
    qsort(want, n, sizeof *want, entry_compare);
    const struct sort_entry *got = sort_entries(a, b, n);
    CHECK(got == a || got == b);
    for (uint32_t i = 0; i < n; i++)
        CHECK(got[i].key == want[i].key && got[i].index == want[i].index);
    free(b);
    free(want);
}

static void test_sort_random(void **state)
{
    static const uint32_t counts[] = {0, 1, 2, 3, 10, 255, 256, 257, 1000, 5000};
    struct rng r = rng_init(11);

    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        for (int kind = 0; kind < KEYS_KINDS; kind++) {
            uint32_t n = counts[c];
            struct sort_entry *a = malloc((n + 1) * sizeof *a);
            CHECK(a != NULL);
            for (uint32_t i = 0; i < n; i++)
                a[i] = (struct sort_entry){rng_key(&r, (enum key_kind)kind), i,
                                           (uint32_t)(c % 2 ? rng_below(&r, 1000) : 0)};
            check_sort(a, n);
            free(a);
        }
    }
}

/* Keys that differ in one byte only, each byte in turn, and in two that are apart: a pass is left out where it may. */
static void test_sort_bytes(void **state)
{
    enum { N = 700 };
    struct rng r = rng_init(12);
    struct sort_entry a[N];

    (void)state;
    for (unsigned low = 0; low < 8; low++) {
        for (unsigned high = low; high < 8; high++) {
            for (uint32_t i = 0; i < N; i++)
                a[i] = (struct sort_entry){rng_below(&r, 256) << 8 * low ^ rng_below(&r, 256) << 8 * high, i, 0};
            check_sort(a, N);
        }
    }
}

static void test_sort_orders(void **state)
{
    enum { N = 3000 };
    struct sort_entry a[N];

    (void)state;
    for (uint32_t i = 0; i < N; i++)
        a[i] = (struct sort_entry){i, i, 0};
    check_sort(a, N);
    for (uint32_t i = 0; i < N; i++)
        a[i] = (struct sort_entry){N - i, i, 0};
    check_sort(a, N);
    for (uint32_t i = 0; i < N; i++)
        a[i] = (struct sort_entry){42, i, 0};
    check_sort(a, N);
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
    assert_int_equal(memtable_init(&t, 92, 100, &m, &e), DELTAFS_OK);
    assert_int_equal(m.used, 10000);
    memtable_fini(&t);
    assert_int_equal(m.used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sort_random),       cmocka_unit_test(test_sort_bytes),
        cmocka_unit_test(test_sort_orders),       cmocka_unit_test(test_memtable_one_size),
        cmocka_unit_test(test_memtable_any_size),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
