/* Threads behind a writer, asynchronous commit and writes around the page cache change when and how bytes are written,
 * not which: the same appends give the same answers, and the same memtables the same logs. And a writer that cannot go
 * on does no harm, however often it is called. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "base/queue.h"
#include "directory/write/memtable.h"
#include "unit_help.h"
#include "unit_io.h"

/* ---- The queue itself ---- */

#define GIVEN_MOST 400
#define TABLES     3 /* at most */

static struct {
    uint64_t seen[GIVEN_MOST]; /* first keys of tables, as they were worked on; UINT64_MAX: an end */
    unsigned count;
    unsigned pause; /* microseconds */
} work;

static void note_work(void *ctx, const void *item)
{
    struct memtable *table = *(struct memtable *const *)item;

    CHECK(ctx == &work);
    work.seen[work.count++] = table ? table->keys[0] : UINT64_MAX;
    if (work.pause > 0)
        usleep(work.pause);
    if (table)
        memtable_clear(table);
}

/* What is given comes in order, ends between, with any number of tables and with or without a thread. */
static void test_order(void **state)
{
    struct rng r = rng_init(241);

    (void)state;
    for (int round = 0; round < 30; round++) {
        struct memtable tables[TABLES];
        struct memory memory = {.limit = 64 << 20};
        struct queue *q;
        struct error e;
        uint64_t want[GIVEN_MOST];
        unsigned n = 0;
        uint64_t end = 0;
        uint32_t count = 1 + (uint32_t)round % TABLES;
        work.count = 0;
        work.pause = round % 2 ? 0 : 50;
        for (uint32_t i = 0; i < count; i++)
            CHECK_IS(memtable_init(&tables[i], 8, 10, &memory, &e), DELTAFS_OK);
        int has_thread = count > 1 || round % 4 == 0;
        CHECK_IS(queue_create(count, sizeof(struct memtable *), has_thread, note_work, &work, &q, &e), DELTAFS_OK);
        for (uint32_t i = 0; i < count; i++)
            queue_add(q, &tables[i]);
        struct memtable *filling = queue_take(q);
        while (n < GIVEN_MOST - 10) {
            uint64_t key = rng_next(&r) >> 1;
            CHECK_IS(filling->count, 0);
            memtable_put(filling, key, &key, 8);
            want[n++] = key;
            queue_put(q, &filling);
            if (rng_below(&r, 5) == 0) {
                queue_wait(q, end);
                CHECK(queue_has_done(q, end));
                end = queue_put(q, &(struct memtable *){NULL});
                want[n++] = UINT64_MAX;
                CHECK_IS(end, n);
            }
            if (rng_below(&r, 20) == 0) {
                queue_wait(q, QUEUE_ALL);
                CHECK_IS(work.count, n);
            }
            filling = queue_take(q);
        }
        if (round % 3 == 0)
            queue_wait(q, QUEUE_ALL);
        queue_destroy(q); /* works off what is left */
        CHECK_IS(work.count, n);
        for (unsigned i = 0; i < n; i++)
            CHECK(work.seen[i] == want[i]);
        for (uint32_t i = 0; i < count; i++)
            memtable_fini(&tables[i]);
        CHECK_IS(memory.used, 0);
    }
    queue_destroy(NULL);
}

/* ---- The same appends, in all ways ---- */

struct way {
    const char *threads, *commit, *sync, *memory;
};

static void write_all(struct model *m, const char *path, const struct way *w, const char *partitions,
                      const char *value_size, uint32_t n, uint64_t seed)
{
    struct rng r = {seed};
    uint32_t size = strcmp(value_size, "any") == 0 ? 0 : (uint32_t)atoi(value_size);
    struct deltafs_memory_stat stat = {.struct_size = sizeof stat};
    deltafs_dir *d =
        unit_create(path, unit_options("threads", w->threads, "commit", w->commit, "sync", w->sync, "memory", w->memory,
                                       "partitions", partitions, "value_size", value_size, NULL));

    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        for (uint32_t i = 0; i < (epoch == 1 ? 10 : n); i++) {
            uint32_t s = size ? size : (uint32_t)(rng_below(&r, 100) == 0 ? rng_below(&r, 30000) : rng_below(&r, 60));
            CHECK_CALL(d, model_append(m, d, rng_below(&r, 1 + n / 3), s), DELTAFS_OK);
        }
        CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
        model_keep(m, epoch);
    }
    CHECK_CALL(d, deltafs_memory_stat(d, &stat), DELTAFS_OK);
    CHECK(stat.peak <= stat.limit);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void check_all(struct model *m, const char *path)
{
    struct rng r = {1};
    deltafs_dir *d = unit_open(path);

    model_check_all(m, d, &r);
    model_check_scan(m, d, NULL);
    model_check_facts(m, d);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* More than two memtables an epoch (the budget is the least), in every mode. */
static void test_ways(void **state)
{
    static const struct way ways[] = {
        {"0", "wait", "none", "8M"},     {"1", "wait", "none", "8M"},    {"2", "wait", "commit", "8M"},
        {"0", "async", "commit", "8M"},  {"1", "async", "commit", "8M"}, {"2", "async", "none", "8M"},
        {"2", "async", "commit", "8M"},  {"2", "wait", "commit", "32M"}, {"3", "wait", "none", "32M"},
        {"8", "async", "commit", "32M"},
    };
    static const struct {
        const char *partitions, *value_size;
        uint32_t records;
    } loads[] = {{"1", "40", 110000}, {"5", "any", 40000}, {"1", "3000", 4000}};

    (void)state;
    rng_init(242);
    for (size_t l = 0; l < 3; l++)
        for (size_t i = l == 0 ? 0 : 1; i < sizeof ways / sizeof ways[0]; i += l == 0 ? 1 : 2 + l % 2) {
            const char *path = unit_path("ways");
            struct model m = {0};
            write_all(&m, path, &ways[i], loads[l].partitions, loads[l].value_size, loads[l].records, unit_seed);
            check_all(&m, path);
            unit_remove(path);
            model_fini(&m);
        }
}

/* With one memtable an epoch the logs are the same to the byte, but for the container's number, which is in all
 * checksums: so values are looked at. */
static void test_same_bytes(void **state)
{
    static const struct way ways[] = {
        {"0", "wait", "none", "64M"},    {"1", "wait", "none", "64M"},    {"2", "wait", "none", "64M"},
        {"2", "async", "commit", "64M"}, {"0", "async", "commit", "64M"}, {"1", "wait", "commit", "64M"},
        {"3", "wait", "none", "64M"},    {"8", "async", "commit", "64M"},
    };
    size_t first_data = 0, first_index = 0;

    (void)state;
    rng_init(243);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const char *path = unit_path("same");
        struct model m = {0};
        size_t data, index;
        write_all(&m, path, &ways[i], "1", "24", 20000, unit_seed);
        free(unit_load(unit_path("same/00/p00000000.data"), &data));
        free(unit_load(unit_path("same/00/p00000000.index"), &index));
        if (i == 0) {
            first_data = data;
            first_index = index;
        }
        CHECK_IS(data, first_data);
        CHECK_IS(index, first_index);
        check_all(&m, path);
        unit_remove(path);
        model_fini(&m);
    }
}

/* ---- Around the page cache ---- */

/* A file system that takes the flag, and then refuses the writes; or makes them in pieces of any length; or is fine.
 * With two threads, which both write to one log at an epoch's end. */
static void test_direct_faked(void **state)
{
    static const struct {
        int errnum, is_short;
    } fakes[] = {{0, 0}, {EINVAL, 0}, {0, 1}};
    static const struct way ways[] = {
        {"0", "wait", "commit", "16M"}, {"2", "wait", "commit", "16M"}, {"2", "async", "commit", "16M"}};

    (void)state;
    rng_init(244);
    for (int i = 0; i < 9; i++) {
        const char *path = unit_path("faked");
        struct model m = {0};
        unit_io_begin();
        unit_io_fake_direct(fakes[i / 3].errnum, fakes[i / 3].is_short);
        write_all(&m, path, &ways[i % 3], "1", "100", 40000, unit_seed);
        CHECK_IS(unit_io_failures(), 0);
        CHECK(unit_io_count(OP_DIRECT) > 0);
        unit_io_end();
        check_all(&m, path);
        unit_remove(path);
        model_fini(&m);
    }
}

/* The log's worker and its flusher find out at the same time that writes around the page cache are refused. (Both
 * closed the descriptor; the second close was that of whatever file had got its number.) */
static void test_direct_refused_twice(void **state)
{
    static uint8_t value[1000];
    struct rng r = rng_init(245);

    (void)state;
    for (int round = 0; round < 40; round++) {
        const char *path = unit_path("twice");
        unit_io_begin();
        unit_io_fake_direct(EINVAL, 0);
        unit_io_slow(OP_DIRECT, 300);
        deltafs_dir *d = unit_create(
            path, unit_options("sync", "commit", "memory", "16M", "value_size", "1000", "codec", "none", NULL));
        /* A full buffer for the flusher, and half a one that the end writes. */
        for (uint64_t key = 0; key < 1300 + 20 * (uint64_t)round; key++) {
            rng_fill(&r, value, sizeof value);
            CHECK_CALL(d, deltafs_append(d, key, value, sizeof value), DELTAFS_OK);
        }
        CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        CHECK(unit_io_count(OP_DIRECT) > 0);
        CHECK_IS(unit_io_failures(), 0); /* a double close counts as many */
        unit_io_end();
        unit_remove(path);
    }
}

/* An end does not return before the flusher is through, even where all else is quicker. */
static void test_slow_flusher(void **state)
{
    const char *path = unit_path("slow");
    struct model m = {0};

    (void)state;
    rng_init(248);
    unit_io_begin();
    unit_io_fake_direct(0, 0);
    unit_io_slow(OP_DIRECT, 50000);
    deltafs_dir *d =
        unit_create(path, unit_options("sync", "commit", "memory", "32M", "value_size", "1000", "codec", "none", NULL));
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        for (uint64_t key = 0; key < 1070; key++) /* a full buffer, and what is too short for direct writes */
            CHECK_CALL(d, model_append(&m, d, key, 1000), DELTAFS_OK);
        CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
        model_keep(&m, epoch);
        check_all(&m, path);
    }
    CHECK(unit_io_count(OP_DIRECT) > 0);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_io_end();
    unit_remove(path);
    model_fini(&m);
}

/* A write that failed behind an epoch that was discarded for another reason is not the next one's. */
static void test_failure_of_the_cancelled(void **state)
{
    const char *path = unit_path("other");
    struct model m = {0};

    (void)state;
    rng_init(249);
    unit_io_begin();
    deltafs_dir *d =
        unit_create(path, unit_options("memory", "16M", "threads", "8", "value_size", "1000", "codec", "none", NULL));
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        unit_io_fail(OP_WRITE, ".data", 0, 1, EIO);
        for (uint64_t key = 0; key < 6000; key++)
            CHECK_CALL(d, model_append(&m, d, key, 1000), DELTAFS_OK);
        CHECK_CALL(d, deltafs_epoch_cancel(d, "not this one"), DELTAFS_OK);
        CHECK(deltafs_epoch_end(d, epoch) != DELTAFS_OK);
        CHECK_IS(unit_io_failures(), 1);
        model_discard(&m);
        for (uint64_t key = 0; key < 3000; key++)
            CHECK_CALL(d, model_append(&m, d, key, 1000), DELTAFS_OK);
        CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
        model_keep(&m, epoch);
        check_all(&m, path);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_io_end();
    unit_remove(path);
    model_fini(&m);
}

/* On a real file system, if there is one: what was written is what a reader finds. */
static void test_direct_real(void **state)
{
    char folder[] = "deltafs-direct.XXXXXX", path[64];

    (void)state;
    rng_init(246);
    if (!mkdtemp(folder))
        skip();
    snprintf(path, sizeof path, "%s/d", folder);
    for (int i = 0; i < 3; i++) {
        struct model m = {0};
        struct way w = {i == 1 ? "2" : "1", "wait", i > 0 ? "commit" : "none", "32M"};
        write_all(&m, path, &w, "2", "100", 30000, unit_seed);
        check_all(&m, path);
        unit_remove(path);
        model_fini(&m);
    }
    unit_remove(folder);
}

/* ---- A writer that cannot go on ---- */

/* The disk fails, and so does going back: the writer says so from then on, and does no more harm. The runs of
 * partitions that could not go back any more held keys that were given away; enough epochs later they were merged. */
static void test_broken(void **state)
{
    static const char *const threads[] = {"0", "2"};
    static uint8_t value[8];
    struct rng r = rng_init(247);

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *path = unit_path("broken");
        unit_io_begin();
        deltafs_dir *d = unit_create(
            path, unit_options("memory", "8M", "partitions", "100", "value_size", "8", "threads", threads[i], NULL));
        CHECK_CALL(d, deltafs_append(d, 1, value, 8), DELTAFS_OK);
        CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
        for (uint64_t epoch = 2; epoch < 300; epoch++) {
            struct deltafs_memory_stat stat = {.struct_size = sizeof stat};
            for (int k = 0; k < 1000; k++)
                deltafs_append(d, rng_next(&r), value, 8);
            if (epoch == 2) {
                CHECK_CALL(d, deltafs_epoch_cancel(d, "enough"), DELTAFS_OK);
                unit_io_fail(OP_TRUNCATE, "p0000", 0, 1, EIO);
            }
            CHECK_IS(deltafs_epoch_end(d, epoch), epoch == 2 ? DELTAFS_ERR_CANCELLED : DELTAFS_ERR_IO);
            CHECK_CALL(d, deltafs_memory_stat(d, &stat), DELTAFS_OK);
            CHECK(stat.peak <= stat.limit);
        }
        CHECK_IS(unit_io_failures(), 1);
        CHECK(deltafs_close(d) != DELTAFS_OK);
        unit_io_end();
        unit_remove(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_direct_faked),
        cmocka_unit_test(test_direct_refused_twice),
        cmocka_unit_test(test_slow_flusher),
        cmocka_unit_test(test_failure_of_the_cancelled),
        cmocka_unit_test(test_direct_real),
        cmocka_unit_test(test_broken),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
