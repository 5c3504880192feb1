/* The keys of written runs as they are held in memory: what is put comes out again, wherever a chunk ends, and the
 * bound that the budget reckons with is one. */
#include "directory/format/run_keys.h"
#include "unit_help.h"

#define KEYS_MOST 60000

static uint64_t keys[KEYS_MOST];

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void put_run(struct keys_store *s, const uint64_t *run, uint64_t n, struct keys_cursor *out)
{
    struct error e;
    uint64_t previous = 0;

    CHECK_IS(keys_begin(s, n, out, &e), DELTAFS_OK);
    if (n % 2 == 1) { /* all at once */
        CHECK_IS(keys_put_all(s, run, n, &e), DELTAFS_OK);
        CHECK(s->at <= s->last->bytes + sizeof s->last->bytes);
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        CHECK_IS(keys_put(s, run[i] - previous, &e), DELTAFS_OK);
        CHECK(s->at <= s->last->bytes + sizeof s->last->bytes);
        previous = run[i];
    }
}

static void check_run(struct keys_cursor cursor, const uint64_t *run, uint64_t n)
{
    CHECK(cursor.left == n);
    for (uint64_t i = 0; i < n; i++)
        CHECK(keys_next(&cursor) == run[i]);
    CHECK(cursor.left == 0);
}

/* Runs of all lengths one after the other, read back in turns, as a merge does. */
static void test_round_trip(void **state)
{
    enum { RUNS = 40 };
    struct rng r = rng_init(201);
    struct memory memory = {.limit = 64 << 20};
    struct keys_store s = {.memory = &memory};
    struct keys_cursor cursor[RUNS], copy[RUNS];
    uint64_t begin[RUNS + 1] = {0}, taken[RUNS];

    (void)state;
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < RUNS; i++) {
            uint64_t n = rng_below(&r, 3) == 0 ? rng_below(&r, 4) : rng_below(&r, KEYS_MOST / RUNS);
            begin[i + 1] = begin[i] + n;
            for (uint64_t k = begin[i]; k < begin[i + 1]; k++)
                keys[k] = rng_key(&r, (enum key_kind)((i + round) % KEYS_KINDS));
            qsort(keys + begin[i], n, sizeof *keys, compare_keys);
            put_run(&s, keys + begin[i], n, &cursor[i]);
        }
        memcpy(copy, cursor, sizeof copy);
        for (int i = 0; i < RUNS; i++)
            taken[i] = begin[i];
        for (uint64_t left = begin[RUNS]; left > 0;) {
            uint64_t i = rng_below(&r, RUNS);
            for (uint64_t n = rng_below(&r, 100); n > 0 && taken[i] < begin[i + 1]; n--, left--)
                CHECK(keys_next(&copy[i]) == keys[taken[i]++]);
        }
        for (int i = 0; i < RUNS; i++)
            check_run(cursor[i], keys + begin[i], begin[i + 1] - begin[i]);
        keys_clear(&s);
        CHECK_IS(memory.used, 0);
    }
}

/* Varints of every length at every distance from a chunk's end. */
static void test_chunk_ends(void **state)
{
    struct memory memory = {.limit = 64 << 20};

    (void)state;
    rng_init(202);
    for (uint64_t before = sizeof((struct keys_chunk *)0)->bytes - 3 * VARINT_MAX;
         before <= sizeof((struct keys_chunk *)0)->bytes + 2; before++) {
        for (unsigned bits = 0; bits <= 64; bits += bits < 63 ? 7 : 1) {
            struct keys_store s = {.memory = &memory};
            struct keys_cursor first, second, none;
            uint64_t few[3] = {5, bits ? 5 + (UINT64_MAX >> (64 - bits)) : 5, 0};
            /* So many bytes of zeros, then a run that begins here; one without keys between. */
            memset(keys, 0, before * sizeof *keys);
            put_run(&s, keys, before, &first);
            put_run(&s, NULL, 0, &none);
            few[1] = few[1] < 5 ? UINT64_MAX : few[1];
            few[2] = few[1];
            put_run(&s, few, 3, &second);
            check_run(first, keys, before);
            check_run(none, NULL, 0);
            check_run(second, few, 3);
            keys_clear(&s);
        }
    }
    CHECK_IS(memory.used, 0);
}

static void test_extremes(void **state)
{
    static const uint64_t runs[][4] = {{0, 0, 0, 0},
                                       {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
                                       {0, UINT64_MAX, UINT64_MAX, UINT64_MAX},
                                       {0, 1, UINT64_MAX - 1, UINT64_MAX},
                                       {127, 255, 256 + 127, UINT64_C(1) << 63}};
    struct memory memory = {.limit = 1 << 20};
    struct keys_store s = {.memory = &memory};
    struct keys_cursor cursor[5];

    (void)state;
    for (int i = 0; i < 5; i++)
        put_run(&s, runs[i], 4, &cursor[i]);
    for (int i = 5; i-- > 0;)
        check_run(cursor[i], runs[i], 4);
    keys_clear(&s);
    /* It can be used again. */
    put_run(&s, runs[3], 4, &cursor[0]);
    check_run(cursor[0], runs[3], 4);
    keys_clear(&s);
    CHECK_IS(memory.used, 0);
}

/* A budget that is used up is an error at the put that finds no room, and what was put before stays. */
static void test_no_memory(void **state)
{
    struct memory memory = {.limit = 2 * KEYS_CHUNK};
    struct keys_store s = {.memory = &memory};
    struct keys_cursor cursor;
    struct error e;
    uint64_t put = 0;
    int status;

    (void)state;
    rng_init(203);
    CHECK_IS(keys_begin(&s, KEYS_MOST, &cursor, &e), DELTAFS_OK);
    while ((status = keys_put(&s, 1, &e)) == DELTAFS_OK)
        put++;
    CHECK_IS(status, DELTAFS_ERR_MEMORY);
    CHECK(put > KEYS_CHUNK && put < 2 * KEYS_CHUNK && memory.used <= memory.limit);
    CHECK_IS(keys_put(&s, 1, &e), DELTAFS_ERR_MEMORY);
    CHECK_IS(keys_put_all(&s, &put, 1, &e), DELTAFS_ERR_MEMORY);
    for (uint64_t i = 0; i < put; i++)
        CHECK(keys_next(&cursor) == i + 1);
    keys_clear(&s);
    CHECK_IS(memory.used, 0);
}

/* The worst that `n` keys in `runs` runs within `range` can be: all gaps of a length at which varints grow, or spread
 * by chance; with as many of the largest gaps as the range has. */
static void check_bound(struct rng *r, uint64_t n, uint64_t runs, uint64_t range, int kind)
{
    struct memory memory = {.limit = 64 << 20};
    struct keys_store s = {.memory = &memory};
    struct keys_cursor cursor;
    uint64_t first = UINT64_MAX - range, each = n / runs;

    for (uint64_t i = 0; i < runs; i++) {
        uint64_t left = i + 1 < runs ? each : n - each * (runs - 1), at = first;
        uint64_t mean = left > 0 ? range / left : 0, gap = 0;
        if (left == 0)
            continue;
        /* The shortest gap that takes as many bytes as the mean, or one more. */
        while (kind < 2 && gap <= mean / 128 && gap < UINT64_MAX / 128)
            gap = gap ? gap * 128 : 128;
        gap = kind == 1 && gap < UINT64_MAX / 128 ? gap * 128 : gap;
        for (uint64_t k = 0; k < left; k++) {
            if (kind == 2)
                at = first + (range == UINT64_MAX ? rng_next(r) : rng_below(r, range + 1));
            else if (k > 0)
                at = at - first <= range && gap <= range - (at - first) ? at + gap : at;
            keys[k] = at;
        }
        if (kind == 2)
            qsort(keys, left, sizeof *keys, compare_keys);
        put_run(&s, keys, left, &cursor);
    }
    if (memory.used > keys_bound(n, runs, range))
        fail_msg("%llu keys in %llu runs within %llu, kind %d: %llu bytes, not %llu", (unsigned long long)n,
                 (unsigned long long)runs, (unsigned long long)range, kind, (unsigned long long)memory.used,
                 (unsigned long long)keys_bound(n, runs, range));
    keys_clear(&s);
}

static void test_bound(void **state)
{
    static const uint64_t counts[] = {1, 2, 100, 5000, 17000, KEYS_MOST};
    static const uint64_t runs[] = {1, 2, 7, 100, 3000};
    struct rng r = rng_init(204);

    (void)state;
    for (size_t n = 0; n < 6; n++)
        for (size_t k = 0; k < 5 && runs[k] <= counts[n]; k++)
            for (unsigned bits = 0; bits <= 64; bits += 4)
                for (int kind = 0; kind < 3; kind++)
                    check_bound(&r, counts[n], runs[k], bits ? UINT64_MAX >> (64 - bits) : 0, kind);
    /* Nor is it far too much, or memory would lie idle: a byte a key where keys are dense, and two. */
    CHECK(keys_bound(1000000, 1, 1000000) < 1500000);
    CHECK(keys_bound(1000000, 1, 100000000) < 2500000);
    CHECK(keys_bound(UINT64_C(1) << 30, 1000, UINT64_MAX) < UINT64_C(1) << 34);
    CHECK(keys_bound(0, 1, 0) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_chunk_ends), cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_no_memory),  cmocka_unit_test(test_bound),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
