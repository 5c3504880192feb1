/* Frames, the reads: how many system calls they take, what stays in the cache, and reads that a team takes part in. */
#include <errno.h>
#include "frames_pair.h"
#include "unit_io.h"

/* Forward in small steps costs a read for each window, also with many logs by turns; at random one for each frame, but
 * none for what is there. */
static void test_reads(void **state)
{
    enum { LOGS = 100 };
    static struct frame_reader reader[LOGS];
    struct rng r = rng_init(11);
    struct pair p;
    struct error e;
    struct frame_cache cache;
    uint8_t got[1000];

    (void)state;
    make_log("reads.data", &r, 600, &p);
    for (int logs = 1; logs <= LOGS; logs *= 10) {
        struct io io = io_default();
        frame_cache_init(&cache, 8 << 20);
        for (int i = 0; i < logs; i++)
            CHECK_IS(
                frame_reader_open(&reader[i], &io, unit_path("reads.data"), SESSION, WRITER, pair_uuid, &cache, &e),
                DELTAFS_OK);
        uint64_t opening = io.reads;
        CHECK_IS(opening, logs);
        for (uint64_t at = 0; at + sizeof got <= p.end; at += sizeof got)
            for (int i = 0; i < logs; i++) {
                CHECK_IS(frame_reader_read(&reader[i], at, got, sizeof got, &e), DELTAFS_OK);
                CHECK(memcmp(got, p.bytes + at, sizeof got) == 0);
            }
        /* 600 frames: windows of 64, or of 8; the page of checksums; the first frame alone. */
        CHECK(io.reads - opening <= (uint64_t)logs * (logs == 1 ? 10 + 2 : logs == 10 ? 19 + 2 : 75 + 2));
        uint64_t before = io.reads;
        CHECK_IS(frame_reader_read(&reader[0], p.end - 500, got, 500, &e), DELTAFS_OK);
        CHECK_IS(io.reads, before);
        for (int i = 0; i < logs; i++)
            CHECK_IS(frame_reader_close(&reader[i], &e), DELTAFS_OK);
        frame_cache_fini(&cache);
    }
    pair_close(&p);
}

/* Read all of it forward; returns how many system calls that took. */
static uint64_t read_forward(struct frame_reader *reader, const struct io *io, const struct pair *p)
{
    uint64_t before = io->reads;
    uint8_t got[8000];
    struct error e;

    for (uint64_t at = 0; at + sizeof got <= p->end; at += sizeof got) {
        CHECK_IS(frame_reader_read(reader, at, got, sizeof got, &e), DELTAFS_OK);
        CHECK(memcmp(got, p->bytes + at, sizeof got) == 0);
    }
    return io->reads - before;
}

/* What was read forward stays if there is room for all of it. If not, one window is reused for what comes, and the
 * others stay. */
static void test_forward(void **state)
{
    enum { WINDOW = 64 * FRAME_SIZE };
    struct rng r = rng_init(12);
    struct frame_reader reader;
    struct frame_cache cache;
    struct pair p;
    struct error e;
    uint8_t got[1000];

    (void)state;
    make_log("forward.data", &r, 600, &p);
    for (size_t bytes = 1 << 20; bytes <= 8 << 20; bytes *= 8) {
        struct io io = io_default();
        frame_cache_init(&cache, bytes);
        CHECK_IS(frame_reader_open(&reader, &io, unit_path("forward.data"), SESSION, WRITER, pair_uuid, &cache, &e),
                 DELTAFS_OK);
        read_forward(&reader, &io, &p);
        uint64_t before = io.reads;
        CHECK_IS(frame_reader_read(&reader, WINDOW, got, sizeof got, &e), DELTAFS_OK);
        CHECK_IS(io.reads, before);
        CHECK(bytes < 8 << 20 || read_forward(&reader, &io, &p) == 0);
        for (size_t i = 0; i < cache.windows.sets * cache.windows.ways; i++)
            CHECK_IS((uintptr_t)cache.windows.slot[i].bytes % FRAME_SIZE, 0);
        CHECK_IS(frame_reader_close(&reader, &e), DELTAFS_OK);
        frame_cache_fini(&cache);
    }
    pair_close(&p);
}

/* ---- Long reads that a team takes part in ---- */

static void test_team(void **state)
{
    struct rng r = rng_init(15);
    struct pair p;
    struct error e;
    size_t n;

    (void)state;
    make_log("team.data", &r, 2 * FRAME_GROUP + 300, &p);
    uint8_t *file = unit_load(unit_path("team.data"), &n), *got = malloc(p.end);
    CHECK_IS(team_create(3, &p.cache.team, &e), DELTAFS_OK);
    for (int i = 0; i < 100; i++) {
        uint64_t at = rng_below(&r, p.end - (1 << 20));
        size_t size = 500000 + rng_below(&r, p.end - at - 500000);
        pair_check(&p, at, i % 10 ? size % (3 << 20) : size);
        /* One wrong byte: it is found where it is, and the bytes that come otherwise are right. */
        uint64_t bad = rng_below(&r, p.end);
        unit_poke(unit_path("team.data"), frame_offset(bad), file[frame_offset(bad)] ^ 0x10);
        int status = frame_reader_read(&p.reader, at, got, size, &e);
        if (status == DELTAFS_OK) {
            CHECK(memcmp(got, p.bytes + at, size) == 0);
            CHECK(bad - bad % FRAME_SIZE >= at + size || bad - bad % FRAME_SIZE + FRAME_SIZE <= at ||
                  /* It was in the cache already. */
                  bad / FRAME_SIZE == at / FRAME_SIZE || bad / FRAME_SIZE == (at + size) / FRAME_SIZE);
        } else {
            char where[80];
            snprintf(where, sizeof where, "damaged at offset %llu",
                     (unsigned long long)frame_offset(bad - bad % FRAME_SIZE));
            CHECK(status == DELTAFS_ERR_DAMAGED && strstr(e.text, where));
        }
        unit_poke(unit_path("team.data"), frame_offset(bad), file[frame_offset(bad)]);
    }
    /* A file that ends too early. */
    unit_save(unit_path("team.data"), file, frame_offset(2 * GROUP + 200 * FRAME_SIZE));
    CHECK_IS(frame_reader_read(&p.reader, 0, got, p.end, &e), DELTAFS_ERR_DAMAGED);
    unit_save(unit_path("team.data"), file, n);
    free(file);
    free(got);
    team_destroy(p.cache.team);
    pair_close(&p);
}

/* Several threads read, and what fails for them is read again by one: then it is an error, and which. */
static void test_team_fails(void **state)
{
    struct rng r = rng_init(18);
    struct pair p;
    struct error e;

    (void)state;
    unit_io_begin();
    make_log("fails.data", &r, 2 * FRAME_GROUP, &p);
    uint8_t *got = malloc(p.end);
    CHECK_IS(team_create(3, &p.cache.team, &e), DELTAFS_OK);
    unit_io_slow(OP_READ, 1000);
    pair_check(&p, 0, GROUP);
    CHECK(unit_io_most(OP_READ) > 1);
    unit_io_slow(OP_READ, 0);
    for (uint64_t skip = 0; skip < 20; skip++) {
        memset(got, 0, GROUP);
        unit_io_fail(OP_READ, "fails.data", skip, 1, EIO);
        CHECK_IS(frame_reader_read(&p.reader, 0, got, GROUP, &e), DELTAFS_OK);
        CHECK(memcmp(got, p.bytes, GROUP) == 0);
        unit_io_fail(OP_READ, "fails.data", skip, 1000, EIO);
        CHECK_IS(frame_reader_read(&p.reader, 0, got, GROUP, &e), DELTAFS_ERR_IO);
    }
    /* The page of checksums, which is not there yet. */
    unit_io_fail(OP_READ, "fails.data", 0, 2, EIO);
    CHECK_IS(frame_reader_read(&p.reader, GROUP, got, GROUP, &e), DELTAFS_ERR_IO);
    unit_io_fail(OP_READ, "fails.data", 0, 0, 0);
    unit_poke(unit_path("fails.data"), frame_page_offset(GROUP), 1);
    unit_poke(unit_path("fails.data"), frame_page_offset(GROUP) + 1, 2);
    CHECK_IS(frame_reader_read(&p.reader, GROUP, got, GROUP, &e), DELTAFS_ERR_DAMAGED);
    free(got);
    team_destroy(p.cache.team);
    pair_close(&p);
    unit_io_end();
}

/* Windows that are read forward are shared, too; of one with a wrong byte all but that frame can be read. */
static void test_team_forward(void **state)
{
    enum { STEP = 5000 };
    struct rng r = rng_init(19);
    struct frame_reader reader;
    struct frame_cache cache;
    struct team *team;
    struct pair p;
    struct error e;
    uint8_t got[STEP];
    char where[80];

    (void)state;
    unit_io_begin();
    make_log("steps.data", &r, 600, &p);
    CHECK_IS(team_create(1, &team, &e), DELTAFS_OK);
    unit_io_slow(OP_READ, 1000);
    for (uint64_t bad = 0; bad <= 3; bad++) { /* a byte of frame 100 * bad is wrong; 0: none */
        uint64_t begin = 100 * bad * FRAME_SIZE;
        unit_poke(unit_path("steps.data"), frame_offset(begin), p.bytes[begin] ^ (bad > 0));
        snprintf(where, sizeof where, "damaged at offset %llu", (unsigned long long)frame_offset(begin));
        frame_cache_init(&cache, 8 << 20);
        cache.team = team;
        CHECK_IS(frame_reader_open(&reader, &p.io, unit_path("steps.data"), SESSION, WRITER, pair_uuid, &cache, &e),
                 DELTAFS_OK);
        for (uint64_t at = 0; at + STEP <= p.end; at += STEP) {
            int status = frame_reader_read(&reader, at, got, STEP, &e);
            if (bad > 0 && at < begin + FRAME_SIZE && at + STEP > begin) {
                CHECK(status == DELTAFS_ERR_DAMAGED && strstr(e.text, where));
            } else {
                CHECK_IS(status, DELTAFS_OK);
                CHECK(memcmp(got, p.bytes + at, STEP) == 0);
            }
        }
        CHECK(unit_io_most(OP_READ) > 1);
        CHECK_IS(frame_reader_close(&reader, &e), DELTAFS_OK);
        frame_cache_fini(&cache);
        unit_poke(unit_path("steps.data"), frame_offset(begin), p.bytes[begin]);
    }
    team_destroy(team);
    pair_close(&p);
    unit_io_end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),      cmocka_unit_test(test_forward),      cmocka_unit_test(test_team),
        cmocka_unit_test(test_team_fails), cmocka_unit_test(test_team_forward),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
