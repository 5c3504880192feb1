/* Frames, the log: what is appended is read, by the writer and by others, also from a log that is finished or grows;
 * and no damage passes. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include "frames_pair.h"
#include "unit_io.h"

static size_t any_size(struct rng *r)
{
    switch (rng_below(r, 8)) {
    case 0:
        return rng_below(r, 3);
    case 1:
        return (1 + rng_below(r, 3)) * FRAME_SIZE;
    case 2:
        return rng_below(r, 600000);
    case 3:
        return ((size_t)64 << 10 << 2 * rng_below(r, 2)) - 2 + rng_below(r, 4); /* 64 KiB or 256 */
    default:
        return rng_below(r, 9000);
    }
}

static void test_random(void **state)
{
    static const size_t capacities[] = {1, 3 * FRAME_SIZE, 64 << 10, 1 << 20, 4 << 20};
    static const size_t caches[] = {0, 100000, 1 << 20, 64 << 20};

    (void)state;
    for (size_t k = 0; k < 20; k++) {
        struct rng r = rng_init(100 + k);
        struct pair p;
        pair_open(&p, "random.data", capacities[k % 5], caches[k % 4]);
        uint8_t *bytes = noise(&r, 600000);
        for (int i = 0; i < 300; i++) {
            size_t n = any_size(&r);
            CHECK_IS(pair_append(&p, bytes + (600000 - n), n), DELTAFS_OK);
            if (rng_below(&r, 10) == 0)
                CHECK_IS(pair_flush(&p, rng_below(&r, 2) == 0), DELTAFS_OK);
            for (int j = 0; j < 3 && p.end > 0; j++) {
                uint64_t at = rng_below(&r, p.end + 1);
                n = any_size(&r);
                pair_check(&p, at, n < p.end - at ? n : (size_t)(p.end - at));
            }
        }
        CHECK_IS(pair_flush(&p, 0), DELTAFS_OK);
        pair_check(&p, 0, (size_t)p.end);
        CHECK(p.end > GROUP);
        /* Forward in small steps, as a program that reads a file from its begin to its end. */
        for (uint64_t at = 0; at < p.end; at += 5000)
            pair_check(&p, at, p.end - at < 5000 ? (size_t)(p.end - at) : 5000);
        free(bytes);
        pair_close(&p);
    }
}

static uint64_t size_of(const char *name)
{
    struct stat st;

    CHECK_IS(stat(unit_path("%s", name), &st), 0);
    return (uint64_t)st.st_size;
}

/* A finished log ends behind its last frame and their checksums, whatever was flushed or synced before. A reader that
 * was there before goes on. */
static void test_finish(void **state)
{
    static const size_t frames[] = {0, 1, 5, FRAME_GROUP - 1, FRAME_GROUP, FRAME_GROUP + 1, 2 * FRAME_GROUP + 700};
    struct error e;

    (void)state;
    for (size_t i = 0; i < 4 * sizeof frames / sizeof *frames; i++) {
        size_t first = frames[i / 4], how = i % 4, n;
        struct rng r = rng_init(40 + i);
        struct pair p;
        make_log("finish.data", &r, first, &p);
        uint8_t *bytes = noise(&r, 3 * FRAME_SIZE);
        if (first > 0)
            pair_check(&p, (first - 1) * FRAME_SIZE, FRAME_SIZE);
        if (how & 1)
            CHECK_IS(pair_flush(&p, 1), DELTAFS_OK);
        if (how & 2)
            CHECK_IS(pair_append(&p, bytes, 2 * FRAME_SIZE + 5), DELTAFS_OK);
        CHECK_IS(frame_log_finish(&p.log, how == 3, &e), DELTAFS_OK);
        uint64_t end = frame_log_end(&p.log);
        CHECK_IS(end, (first + (how & 2 ? 3 : 0)) * FRAME_SIZE);
        CHECK_IS(size_of("finish.data"), frame_offset(end) + (end % GROUP > 0 ? FRAME_SIZE : 0));
        pair_note(&p, NULL, end - p.end);
        p.flushed = p.end;
        for (uint64_t at = 0; at < end; at += 3000) {
            uint8_t got[3000];
            n = end - at < sizeof got ? (size_t)(end - at) : sizeof got;
            CHECK_IS(frame_reader_read(&p.reader, at, got, n, &e), DELTAFS_OK);
            CHECK(memcmp(got, p.bytes + at, n) == 0);
        }
        if (end > 0) {
            CHECK_IS(read_all("finish.data", &p, SESSION, WRITER, &e), DELTAFS_OK);
            CHECK_IS(truncate(unit_path("finish.data"), (off_t)(frame_offset(end - 1))), 0);
            CHECK_IS(read_all("finish.data", &p, SESSION, WRITER, &e), DELTAFS_ERR_DAMAGED);
        }
        free(bytes);
        pair_close(&p);
    }
}

/* A finished log that could not be truncated, or whose truncation a crash has undone, is read by its former page. */
static void test_finish_fails(void **state)
{
    struct rng r = rng_init(41);
    struct pair p;
    struct error e;

    (void)state;
    for (int i = 0; i < 3; i++) {
        unit_io_begin();
        make_log("unfinished.data", &r, 10, &p);
        CHECK_IS(pair_flush(&p, 1), DELTAFS_OK);
        CHECK_IS(pair_append(&p, "abc", 3), DELTAFS_OK);
        unit_io_fail(i == 0 ? OP_TRUNCATE : i == 1 ? OP_SYNC : OP_WRITE, "unfinished.data", 0, 1, EIO);
        CHECK_IS(frame_log_finish(&p.log, 0, &e), i == 0 ? DELTAFS_OK : DELTAFS_ERR_IO);
        CHECK_IS(size_of("unfinished.data"), FRAME_SIZE + GROUP + FRAME_SIZE);
        if (i == 0)
            pair_note(&p, NULL, frame_log_end(&p.log) - p.end);
        p.end -= p.end % FRAME_SIZE;
        CHECK_IS(read_all("unfinished.data", &p, SESSION, WRITER, &e), DELTAFS_OK);
        pair_close(&p);
        unit_io_end();
    }
}

/* Each byte of the header, the last frame's and each of its checksum: it is found, and said where; what nobody reads
 * may be anything. */
static void test_damage(void **state)
{
    struct rng r = rng_init(7);
    struct pair p;
    struct error e;
    size_t n;

    (void)state;
    make_log("damage.data", &r, 20, &p);
    uint8_t *file = unit_load(unit_path("damage.data"), &n);
    CHECK_IS(n, FRAME_SIZE + GROUP + FRAME_SIZE);
    for (int round = 0; round < 1500; round++) {
        uint64_t frame = rng_below(&r, 20), in_group = FRAME_SIZE + GROUP;
        uint64_t at = round < LOG_HEADER_SIZE        ? (uint64_t)round
                      : round < LOG_HEADER_SIZE + 80 ? in_group + (uint64_t)round - LOG_HEADER_SIZE
                      : round < LOG_HEADER_SIZE + 80 + FRAME_SIZE
                          ? FRAME_SIZE + 19 * FRAME_SIZE + rng_below(&r, FRAME_SIZE)
                          : FRAME_SIZE * (1 + frame) + rng_below(&r, FRAME_SIZE);
        unit_poke(unit_path("damage.data"), at, file[at] ^ (uint8_t)(1 + rng_below(&r, 255)));
        CHECK_IS(read_all("damage.data", &p, SESSION, WRITER, &e), DELTAFS_ERR_DAMAGED);
        CHECK(strstr(e.text, "damage.data: damaged at offset "));
        unit_poke(unit_path("damage.data"), at, file[at]);
    }
    /* Behind what counts. */
    unit_poke(unit_path("damage.data"), LOG_HEADER_SIZE + 5, 1);
    unit_poke(unit_path("damage.data"), FRAME_SIZE * 22, 1);
    unit_poke(unit_path("damage.data"), FRAME_SIZE + GROUP + 4 * 20, 1);
    CHECK_IS(read_all("damage.data", &p, SESSION, WRITER, &e), DELTAFS_OK);
    free(file);
    pair_close(&p);
}

/* A frame is of one session, writer and place. */
static void test_identity(void **state)
{
    struct rng r = rng_init(8);
    struct pair p;
    struct error e;
    size_t n;

    (void)state;
    make_log("identity.data", &r, 4, &p);
    CHECK_IS(read_all("identity.data", &p, SESSION, WRITER, &e), DELTAFS_OK);
    CHECK_IS(read_all("identity.data", &p, SESSION + 1, WRITER, &e), DELTAFS_ERR_DAMAGED);
    CHECK_IS(read_all("identity.data", &p, SESSION, WRITER + 1, &e), DELTAFS_ERR_DAMAGED);
    uint8_t *file = unit_load(unit_path("identity.data"), &n), *swap = malloc(n);
    memcpy(swap, file, n);
    memcpy(swap + FRAME_SIZE, file + 2 * FRAME_SIZE, FRAME_SIZE);
    memcpy(swap + 2 * FRAME_SIZE, file + FRAME_SIZE, FRAME_SIZE);
    memcpy(swap + FRAME_SIZE + GROUP, file + FRAME_SIZE + GROUP + 4, 4);
    memcpy(swap + FRAME_SIZE + GROUP + 4, file + FRAME_SIZE + GROUP, 4);
    unit_save(unit_path("identity.data"), swap, n);
    CHECK_IS(read_all("identity.data", &p, SESSION, WRITER, &e), DELTAFS_ERR_DAMAGED);
    free(file);
    free(swap);
    pair_close(&p);
}

/* Cut at any place, and asked for what cannot be: an error, and not more memory or reads than there are bytes. */
static void test_hostile(void **state)
{
    static const uint64_t positions[] = {
        0, 1, FRAME_SIZE, GROUP - 1, GROUP, 1 << 30, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX - 1, UINT64_MAX};
    struct rng r = rng_init(9);
    struct pair p;
    struct error e;
    uint8_t byte[2];
    size_t n;

    (void)state;
    make_log("hostile.data", &r, 3, &p);
    uint8_t *file = unit_load(unit_path("hostile.data"), &n);
    for (size_t i = 3; i < sizeof positions / sizeof positions[0]; i++)
        CHECK_IS(frame_reader_read(&p.reader, positions[i], byte, 2, &e), DELTAFS_ERR_DAMAGED);
    for (size_t i = 4; i < sizeof positions / sizeof positions[0]; i++)
        CHECK_IS(frame_log_read(&p.log, positions[i], byte, 2, &e), DELTAFS_ERR_INVALID);
    for (size_t cut = 0; cut < n; cut += cut < 2 * FRAME_SIZE ? 111 : 3 * FRAME_SIZE + 100) {
        unit_save(unit_path("hostile.data"), file, cut);
        CHECK_IS(read_all("hostile.data", &p, SESSION, WRITER, &e), DELTAFS_ERR_DAMAGED);
    }
    unit_remove(unit_path("hostile.data"));
    CHECK_IS(read_all("hostile.data", &p, SESSION, WRITER, &e), DELTAFS_ERR_DAMAGED);
    free(file);
    pair_close(&p);
}

/* A reader that has looked at a group before its last frames were written finds them afterwards; its reads ahead of
 * what was written do no harm. */
static void test_growing(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 4; k++) {
        struct rng r = rng_init(20 + k);
        struct pair p;
        pair_open(&p, "growing.data", 64 << 10, 1 << 20);
        uint8_t *bytes = noise(&r, 100000);
        while (p.end < GROUP + 300000) {
            uint64_t before = p.end;
            CHECK_IS(pair_append(&p, bytes, 1 + rng_below(&r, k % 2 ? 100000 : 9000)), DELTAFS_OK);
            CHECK_IS(pair_flush(&p, 0), DELTAFS_OK);
            for (uint64_t at = before; at < p.end; at += 1000)
                pair_check(&p, at, p.end - at < 1000 ? (size_t)(p.end - at) : 1000);
        }
        free(bytes);
        pair_close(&p);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),  cmocka_unit_test(test_finish),   cmocka_unit_test(test_finish_fails),
        cmocka_unit_test(test_damage),  cmocka_unit_test(test_identity), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_growing),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
