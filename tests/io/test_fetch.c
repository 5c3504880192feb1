/* What reading is made of: many reads at once, reading ahead through a window, and the leaves that are kept. */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/memory.h"
#include "base/thread.h"
#include "directory/read/leaf_cache.h"
#include "io/fetch.h"
#include "io/window.h"
#include "thread_count.h"
#include "unit_help.h"
#include "unit_io.h"

#define FILE_BYTES 300000

static uint8_t content[FILE_BYTES];
static size_t threads_first; /* before any test */

/* A file of noise, opened through the operations of unit_io. */
static void open_noise(struct io *io, struct io_file *file, struct rng *r)
{
    struct error e;
    const char *path = unit_path("noise");

    rng_fill(r, content, sizeof content);
    unit_save(path, content, sizeof content);
    unit_io_begin();
    *io = io_default();
    CHECK_IS(io_file_open(io, path, O_RDONLY, file, &e), DELTAFS_OK);
}

static void close_noise(struct io_file *file)
{
    struct error e;

    CHECK_IS(io_file_close(file, &e), DELTAFS_OK);
    unit_io_end();
}

/* ---- Fetching ---- */

#define FETCHES 200

static struct fetch fetch[FETCHES];
static uint8_t fetched[FETCHES][1000];

static size_t plan_fetches(struct rng *r, struct io_file *file)
{
    size_t n = rng_below(r, 4) == 0 ? rng_below(r, 4) : rng_below(r, FETCHES + 1);

    for (size_t i = 0; i < n; i++) {
        size_t length = rng_below(r, 20) == 0 ? 0 : rng_below(r, sizeof fetched[0] + 1);
        fetch[i] = (struct fetch){
            .file = file, .offset = rng_below(r, FILE_BYTES - length + 1), .length = length, .bytes = fetched[i]};
        memset(fetched[i], 0xee, sizeof fetched[i]);
    }
    return n;
}

static size_t check_fetches(size_t n)
{
    size_t bad = 0;

    for (size_t i = 0; i < n; i++) {
        bad += fetch[i].is_bad != 0;
        CHECK(fetch[i].is_bad || memcmp(fetched[i], content + fetch[i].offset, fetch[i].length) == 0);
        for (size_t k = fetch[i].length; k < sizeof fetched[i]; k++)
            CHECK(fetched[i][k] == 0xee);
    }
    return bad;
}

/* One fetcher again and again, quick reads and slow ones. */
static void test_fetch(void **state)
{
    static const uint32_t threads[] = {0, 1, 3, 64};
    struct rng r = rng_init(211);
    struct io io;
    struct io_file file;
    struct error e;

    (void)state;
    for (int t = 0; t < 4; t++) {
        struct team *f;
        open_noise(&io, &file, &r);
        CHECK_IS(team_create(threads[t], &f, &e), DELTAFS_OK);
        for (int round = 0; round < 40; round++) {
            unit_io_slow(OP_READ, round % 4 == 3 ? 100 : 0);
            size_t n = plan_fetches(&r, &file);
            fetch_all(f, fetch, n, (enum fetch_pace)(round % 3));
            CHECK_IS(check_fetches(n), 0);
        }
        CHECK(unit_io_most(OP_READ) <= threads[t] + 1);
        CHECK(threads[t] > 0 || unit_io_most(OP_READ) == 1);
        team_destroy(f);
        close_noise(&file);
    }
    team_destroy(NULL);
}

/* Slow reads are made at once, as many as there are threads for. */
static void test_fetch_in_parallel(void **state)
{
    struct rng r = rng_init(212);
    struct io io;
    struct io_file file;
    struct error e;
    struct team *f;

    (void)state;
    open_noise(&io, &file, &r);
    CHECK_IS(team_create(7, &f, &e), DELTAFS_OK);
    unit_io_slow(OP_READ, 3000);
    for (size_t i = 0; i < 60; i++)
        fetch[i] = (struct fetch){.file = &file, .offset = 1000 * i, .length = 1000, .bytes = fetched[i]};
    fetch_all(f, fetch, 60, FETCH_UNKNOWN);
    CHECK_IS(check_fetches(60), 0);
    CHECK(unit_io_most(OP_READ) > 4 && unit_io_most(OP_READ) <= 8);
    CHECK_IS(unit_io_count(OP_READ), 60);
    team_destroy(f);
    close_noise(&file);
}

/* Longer than a slow read, without waiting for anything. */
static void be_busy(void *unused)
{
    uint64_t begin = thread_clock();

    (void)unused;
    while (thread_clock() - begin < 1000000)
        ;
}

/* A read that took long because others had the processor does not start threads. */
static void test_fetch_busy(void **state)
{
    struct rng r = rng_init(214);
    struct io io;
    struct io_file file;
    struct error e;
    struct team *f;

    (void)state;
    open_noise(&io, &file, &r);
    CHECK_IS(team_create(7, &f, &e), DELTAFS_OK);
    size_t before = thread_count_settled(threads_first);
    CHECK(before > 0);
    for (size_t i = 0; i < 60; i++)
        fetch[i] = (struct fetch){.file = &file, .offset = 1000 * i, .length = 1000, .bytes = fetched[i]};
    unit_io_call(OP_READ, "noise", be_busy, NULL);
    fetch_all(f, fetch, 60, FETCH_UNKNOWN);
    CHECK_IS(check_fetches(60), 0);
    CHECK_IS(thread_count(), before);
    team_destroy(f);
    close_noise(&file);
}

/* Storage that takes a while for each read, and if it heeds advice, for all at once that it was advised of. */
#define STORAGE_US 2000

static struct {
    struct fake_io fake;
    int does_heed;
    size_t advised;
    uint64_t ready[FETCHES]; /* when, by the number of the thousand bytes; 0: has to be read */
} storage;

static ssize_t storage_do(struct fake_call *c)
{
    uint64_t i = c->offset / 1000, ready = thread_clock() + STORAGE_US * 1000;

    if (c->op == FAKE_ADVISE) {
        storage.advised++;
        storage.ready[i] = storage.does_heed ? ready : 0;
        return 0;
    }
    if (c->op == FAKE_READ) {
        ready = storage.ready[i] > 0 ? storage.ready[i] : ready;
        while (thread_clock() < ready)
            usleep(STORAGE_US / 10);
    }
    return fake_do(c);
}

/* Reads of a new file through storage; returns whether they started threads. */
static int read_storage(int does_heed, enum fetch_pace last)
{
    struct rng r = rng_init(218);
    struct io_file file;
    struct error e;
    struct team *f;

    rng_fill(&r, content, sizeof content);
    unit_save(unit_path("noise"), content, sizeof content);
    memset(&storage, 0, sizeof storage);
    fake_io_init(&storage.fake, storage_do);
    fake_io_has_all(&storage.fake);
    storage.does_heed = does_heed;
    struct io io = {.ops = &storage.fake.ops, .ctx = &storage.fake};
    CHECK_IS(io_file_open(&io, unit_path("noise"), O_RDONLY, &file, &e), DELTAFS_OK);
    CHECK_IS(team_create(7, &f, &e), DELTAFS_OK);
    size_t before = thread_count_settled(threads_first);
    CHECK(before > 0);
    for (size_t i = 0; i < 20; i++)
        fetch[i] = (struct fetch){.file = &file, .offset = 1000 * i, .length = 1000, .bytes = fetched[i]};
    CHECK(fetch_all(f, fetch, 20, last) == FETCH_SLOW);
    CHECK_IS(check_fetches(20), 0);
    size_t threads = thread_count() - before;
    team_destroy(f);
    CHECK_IS(io_file_close(&file, &e), DELTAFS_OK);
    return threads > 0;
}

/* Whether they do or do not, at least now and then: others may have the processor. */
static int reads_storage(int does_heed, enum fetch_pace last, int want)
{
    int tries = 20;

    while (tries > 0 && read_storage(does_heed, last) != want)
        tries--;
    return tries > 0;
}

/* Once a read was slow, the system begins the others, or all if that was so the last time; threads are for one that
 * does not. */
static void test_fetch_advised(void **state)
{
    (void)state;
    for (enum fetch_pace last = FETCH_UNKNOWN; last <= FETCH_SLOW; last++) {
        CHECK(reads_storage(1, last, 0));
        CHECK_IS(storage.advised, last == FETCH_SLOW ? 20 : 19);
        CHECK(reads_storage(0, last, 1));
    }
}

/* What cannot be read is marked, and nothing else; beyond the file's end, too. */
static void test_fetch_fails(void **state)
{
    struct rng r = rng_init(213);
    struct io io;
    struct io_file file;
    struct error e;

    (void)state;
    for (uint32_t threads = 0; threads < 4; threads++) {
        struct team *f;
        open_noise(&io, &file, &r);
        CHECK_IS(team_create(threads, &f, &e), DELTAFS_OK);
        for (int round = 0; round < 40; round++) {
            size_t n = plan_fetches(&r, &file), many = rng_below(&r, 10), beyond = 0;
            for (size_t i = 0; i < n; i++)
                if (rng_below(&r, 20) == 0 && fetch[i].length > 0) {
                    fetch[i].offset = FILE_BYTES - fetch[i].length + 1;
                    beyond++;
                }
            unit_io_slow(OP_READ, round % 2 ? 100 : 0);
            unit_io_fail(OP_READ, "noise", rng_below(&r, n + 1), many, EIO);
            fetch_all(f, fetch, n, (enum fetch_pace)(round % 3));
            uint64_t failed = unit_io_failures();
            size_t bad = 0;
            for (size_t i = 0; i < n; i++) {
                int is_beyond = fetch[i].length > 0 && fetch[i].offset + fetch[i].length > FILE_BYTES;
                CHECK(!is_beyond || fetch[i].is_bad);
                bad += fetch[i].is_bad != 0;
                CHECK(fetch[i].is_bad || memcmp(fetched[i], content + fetch[i].offset, fetch[i].length) == 0);
            }
            CHECK(bad <= beyond + failed && bad >= (beyond > failed ? beyond : failed));
            unit_io_fail(OP_READ, "noise", 0, 0, 0);
            /* The same once more, now that they can be read. */
            unit_io_slow(OP_READ, 0);
            for (size_t i = 0; i < n; i++)
                if (fetch[i].offset + fetch[i].length > FILE_BYTES)
                    fetch[i].offset = 0;
            fetch_all(f, fetch, n, (enum fetch_pace)(round % 3));
            for (size_t i = 0; i < n; i++)
                CHECK(!fetch[i].is_bad);
        }
        team_destroy(f);
        close_noise(&file);
    }
}

/* A child of this process has the team, and none of its threads: it does all by itself, and ends. */
static void test_forked(void **state)
{
    struct rng r = rng_init(215);
    struct io io;
    struct io_file file;
    struct error e;
    struct team *f;
    int status;

    (void)state;
    open_noise(&io, &file, &r);
    CHECK_IS(team_create(3, &f, &e), DELTAFS_OK);
    unit_io_slow(OP_READ, 2000);
    fetch_all(f, fetch, plan_fetches(&r, &file), FETCH_UNKNOWN);
    CHECK(unit_io_most(OP_READ) > 1);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        size_t n = plan_fetches(&r, &file);
        fetch_all(f, fetch, n, FETCH_SLOW);
        size_t bad = 0; /* a CHECK here would end in the parent's test */
        for (size_t i = 0; i < n; i++)
            bad += fetch[i].is_bad || memcmp(fetched[i], content + fetch[i].offset, fetch[i].length) != 0;
        team_destroy(f);
        _exit(bad == 0 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    team_destroy(f);
    close_noise(&file);
}

/* ---- A window ---- */

static void test_window(void **state)
{
    struct rng r = rng_init(214);
    struct io io;
    struct io_file file;
    struct error e;
    const uint8_t *out;

    (void)state;
    open_noise(&io, &file, &r);
    for (int round = 0; round < 60; round++) {
        struct window w = {.ahead = rng_below(&r, 3) == 0 ? 0 : rng_below(&r, 50000)};
        uint64_t end = round % 3 == 0 ? rng_below(&r, FILE_BYTES) : FILE_BYTES, at = 0;
        for (int i = 0; i < 200; i++) {
            /* Mostly onwards, with gaps; now and then back, or anywhere. */
            size_t n = rng_below(&r, 50) == 0 ? rng_below(&r, 60000) : rng_below(&r, 3000);
            if (rng_below(&r, 10) == 0)
                at = rng_below(&r, FILE_BYTES);
            n = n > FILE_BYTES - at ? (size_t)(FILE_BYTES - at) : n;
            CHECK_IS(window_read(&w, &file, end, at, n, &out, &e), DELTAFS_OK);
            CHECK(memcmp(out, content + at, n) == 0);
            at += n + (rng_below(&r, 4) == 0 ? rng_below(&r, 200) : 0);
            at = at < FILE_BYTES ? at : 0;
            if (i == 100)
                window_fini(&w);
        }
        window_fini(&w);
    }
    /* In order, few reads; none goes beyond the end. */
    struct window w = {.ahead = 10000};
    uint64_t before = unit_io_count(OP_READ);
    for (uint64_t at = 0; at + 500 <= 200000; at += 500)
        CHECK_IS(window_read(&w, &file, 200000, at, 500, &out, &e), DELTAFS_OK);
    CHECK_IS(unit_io_count(OP_READ) - before, 20);
    window_fini(&w);
    close_noise(&file);
}

/* What lies ahead may not be readable where what is asked for is; and an error leaves nothing wrong behind. */
static void test_window_fails(void **state)
{
    struct rng r = rng_init(215);
    struct io io;
    struct io_file file;
    struct error e;
    const uint8_t *out;
    struct window w = {.ahead = 20000};

    (void)state;
    open_noise(&io, &file, &r);
    /* The caller thinks that the file is longer. */
    CHECK_IS(window_read(&w, &file, FILE_BYTES + 100000, FILE_BYTES - 100, 100, &out, &e), DELTAFS_OK);
    CHECK(memcmp(out, content + FILE_BYTES - 100, 100) == 0);
    CHECK_IS(window_read(&w, &file, FILE_BYTES + 100000, FILE_BYTES - 100, 101, &out, &e), DELTAFS_ERR_DAMAGED);
    CHECK_IS(window_read(&w, &file, FILE_BYTES + 100000, FILE_BYTES - 100, 100, &out, &e), DELTAFS_OK);
    CHECK(memcmp(out, content + FILE_BYTES - 100, 100) == 0);
    /* One failure is that of the read ahead, two are that of the bytes themselves. */
    for (uint64_t failures = 1; failures < 3; failures++) {
        CHECK_IS(window_read(&w, &file, FILE_BYTES, 1000, 10, &out, &e), DELTAFS_OK);
        unit_io_fail(OP_READ, "noise", 0, failures, EIO);
        CHECK_IS(window_read(&w, &file, FILE_BYTES, 100000, 10, &out, &e), failures == 1 ? DELTAFS_OK : DELTAFS_ERR_IO);
        CHECK(failures > 1 || memcmp(out, content + 100000, 10) == 0);
        unit_io_fail(OP_READ, "noise", 0, 0, 0);
        for (uint64_t at = 0; at < 150000; at += 5000) {
            CHECK_IS(window_read(&w, &file, FILE_BYTES, at, 10, &out, &e), DELTAFS_OK);
            CHECK(memcmp(out, content + at, 10) == 0);
        }
    }
    window_fini(&w);
    close_noise(&file);
}

/* ---- Leaves that are kept ---- */

/* The bytes that stand for the leaf at a place. */
static size_t make_leaf(uint32_t partition, uint64_t offset, uint8_t *bytes, struct leaf *leaf)
{
    struct rng r = {partition * UINT64_C(1000003) + offset};
    size_t n = 100 + rng_below(&r, 5000);

    rng_fill(&r, bytes, n + LEAF_SLACK);
    *leaf = (struct leaf){.count = (uint32_t)n,
                          .first_key = offset,
                          .last_key = partition,
                          .bytes = bytes,
                          .size = n,
                          .table = bytes + 8,
                          .table_size = 20,
                          .upper = bytes + 28,
                          .lower = bytes + 60,
                          .runs_of = bytes + n - 10};
    return n;
}

static int is_leaf(const struct leaf *got, uint32_t partition, uint64_t offset)
{
    static uint8_t bytes[5100 + LEAF_SLACK];
    struct leaf want;
    size_t n = make_leaf(partition, offset, bytes, &want);

    return got->first_key == offset && got->last_key == partition && got->count == n && got->table_size == 20 &&
           memcmp(got->table, want.table, n - 8 + LEAF_SLACK) == 0 && got->upper - got->table == 20 &&
           got->lower - got->table == 52 && (size_t)(got->runs_of - got->table) == n - 18 && !got->runs.bytes &&
           !got->blocks.bytes;
}

/* Against the simplest oracle: what is found is right, whatever was thrown out; and what was put last is there. */
static void test_leaf_cache(void **state)
{
    static const uint64_t limits[] = {0, 1, 3000, 6000, 40000, 1 << 20, 64 << 20};
    static uint8_t bytes[5100 + LEAF_SLACK];
    struct rng r = rng_init(216);
    struct error e;

    (void)state;
    for (int l = 0; l < 7; l++) {
        struct leaf_cache *c;
        struct leaf leaf;
        unsigned found = 0;
        CHECK_IS(leaf_cache_create(limits[l], &c, &e), DELTAFS_OK);
        for (int i = 0; i < 4000; i++) {
            /* The same offsets in all partitions and segments; and such as differ where partitions do in the hash. */
            uint32_t partition = (uint32_t)rng_below(&r, 4), segment = (uint32_t)rng_below(&r, 2);
            uint64_t offset = rng_below(&r, 50) * 4096 + (rng_below(&r, 2) ? (uint64_t)rng_below(&r, 4) << 44 : 0);
            const struct leaf *got = leaf_cache_find(c, partition, segment, offset);
            CHECK(!got || is_leaf(got, partition + 4 * segment, offset));
            found += got != NULL;
            if (!got) {
                size_t n = make_leaf(partition + 4 * segment, offset, bytes, &leaf);
                leaf_cache_add(c, partition, segment, offset, &leaf);
                memset(bytes, 0, sizeof bytes); /* it keeps a copy */
                got = leaf_cache_find(c, partition, segment, offset);
                /* Besides a leaf's bytes it counts what finds them. */
                CHECK(got ? n + LEAF_SLACK <= limits[l] : n + LEAF_SLACK + 500 + limits[l] / 256 > limits[l]);
                CHECK(!got || is_leaf(got, partition + 4 * segment, offset));
            }
        }
        CHECK((found > 0) == (limits[l] >= 3000));
        CHECK(limits[l] < 64 << 20 || found > 1000);
        leaf_cache_destroy(c);
    }
    leaf_cache_destroy(NULL);
}

/* What it holds at once, counted by asking for all: never more than its limit, though not much less. */
static void test_leaf_cache_limit(void **state)
{
    enum { LEAVES = 600 };
    static uint8_t bytes[5100 + LEAF_SLACK];
    static size_t size[LEAVES];
    struct rng r = rng_init(217);
    struct error e;

    (void)state;
    for (uint64_t limit = 2000; limit < 2000000; limit *= 3) {
        struct leaf_cache *c;
        struct leaf leaf;
        uint64_t most = 0, all = 0;
        CHECK_IS(leaf_cache_create(limit, &c, &e), DELTAFS_OK);
        for (int i = 0; i < 2 * LEAVES; i++) {
            uint64_t k = rng_below(&r, LEAVES), held = 0;
            size[k] = make_leaf(1, k * 5000, bytes, &leaf);
            leaf_cache_add(c, 1, 7, k * 5000, &leaf);
            for (uint64_t j = 0; j < LEAVES && i % 10 == 0; j++)
                held += leaf_cache_find(c, 1, 7, j * 5000) ? size[j] + LEAF_SLACK : 0;
            CHECK(held <= limit);
            most = held > most ? held : most;
        }
        for (int j = 0; j < LEAVES; j++)
            all += size[j];
        CHECK(limit < 100000 || most > (limit < all ? limit : all) / 2);
        leaf_cache_destroy(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fetch),       cmocka_unit_test(test_fetch_in_parallel),
        cmocka_unit_test(test_fetch_busy),  cmocka_unit_test(test_fetch_advised),
        cmocka_unit_test(test_fetch_fails), cmocka_unit_test(test_forked),
        cmocka_unit_test(test_window),      cmocka_unit_test(test_window_fails),
        cmocka_unit_test(test_leaf_cache),  cmocka_unit_test(test_leaf_cache_limit),
    };

    threads_first = thread_count();
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
