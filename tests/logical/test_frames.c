/* Data logs of logical files: what is appended is read, by the writer and by others; no damage passes; a failure takes
 * nothing with it. The oracle is all the bytes in one array. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>
#include "logical/format/frames.h"
#include "logical/format/logical_format.h"
#include "unit_help.h"
#include "unit_io.h"
#include "unit_kth.h"

#define SESSION 3
#define WRITER  17
#define GROUP   ((uint64_t)FRAME_GROUP * FRAME_SIZE)

static const uint8_t uuid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

/* A log with all that it should have. */
struct pair {
    struct io io;
    struct frame_log log;
    struct frame_cache cache;
    struct frame_reader reader;
    uint8_t *bytes; /* by position */
    uint64_t end, flushed, capacity;
};

static void pair_open(struct pair *p, const char *name, size_t capacity, size_t cache)
{
    struct error e;

    memset(p, 0, sizeof *p);
    p->io = io_default();
    unit_remove(unit_path("%s", name));
    CHECK_IS(frame_log_create(&p->log, &p->io, unit_path("%s", name), SESSION, WRITER, uuid, capacity, NULL, &e),
             DELTAFS_OK);
    frame_cache_init(&p->cache, cache);
    frame_log_use_cache(&p->log, &p->cache);
    CHECK_IS(frame_reader_open(&p->reader, &p->io, unit_path("%s", name), SESSION, WRITER, uuid, &p->cache, &e),
             DELTAFS_OK);
}

static void pair_close(struct pair *p)
{
    struct error e;

    CHECK_IS(frame_log_close(&p->log, &e), DELTAFS_OK);
    CHECK_IS(frame_reader_close(&p->reader, &e), DELTAFS_OK);
    frame_cache_fini(&p->cache);
    free(p->bytes);
}

/* Note `n` bytes, of which `from` is the begin or NULL for zeros. */
static void pair_note(struct pair *p, const void *from, uint64_t n)
{
    if (n == 0)
        return;
    if (p->end + n > p->capacity) {
        p->capacity = 2 * (p->end + n);
        p->bytes = realloc(p->bytes, p->capacity);
        assert_non_null(p->bytes);
    }
    if (from)
        memcpy(p->bytes + p->end, from, n);
    else
        memset(p->bytes + p->end, 0, n);
    p->end += n;
}

static int pair_append(struct pair *p, const void *bytes, size_t n)
{
    struct error e;

    CHECK_IS(frame_log_end(&p->log), p->end);
    int status = frame_log_append(&p->log, bytes, n, &e);
    if (status == DELTAFS_OK)
        pair_note(p, bytes, n);
    CHECK_IS(frame_log_end(&p->log), p->end);
    return status;
}

static int pair_flush(struct pair *p, int sync)
{
    struct error e;
    int status = frame_log_flush(&p->log, sync, &e);

    /* Also if all was written, and the sync failed. */
    if (status == DELTAFS_OK || frame_log_end(&p->log) != p->end) {
        pair_note(p, NULL, frame_log_end(&p->log) - p->end);
        CHECK_IS(p->end % FRAME_SIZE, 0);
        p->flushed = p->end;
    }
    CHECK_IS(frame_log_end(&p->log), p->end);
    return status;
}

static void pair_check(struct pair *p, uint64_t position, size_t n)
{
    uint8_t *got = malloc(n + 1);
    struct error e = {0};

    got[n] = 0xa5;
    CHECK_IS(frame_log_read(&p->log, position, got, n, &e), DELTAFS_OK);
    CHECK(memcmp(got, p->bytes + position, n) == 0 && got[n] == 0xa5);
    if (position + n <= p->flushed) {
        memset(got, 0x5a, n);
        int status = frame_reader_read(&p->reader, position, got, n, &e);
        if (status != DELTAFS_OK)
            fail_msg("%s", e.text);
        CHECK(memcmp(got, p->bytes + position, n) == 0 && got[n] == 0xa5);
    }
    free(got);
}

static uint8_t *noise(struct rng *r, size_t n)
{
    uint8_t *bytes = malloc(n + 1);

    assert_non_null(bytes);
    rng_fill(r, bytes, n);
    return bytes;
}

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

/* The bytes of `n` frames, flushed, in a file of its own. */
static void make_log(const char *name, struct rng *r, size_t n, struct pair *p)
{
    pair_open(p, name, 1 << 20, 1 << 20);
    uint8_t *bytes = noise(r, n * FRAME_SIZE);
    CHECK_IS(pair_append(p, bytes, n * FRAME_SIZE), DELTAFS_OK);
    CHECK_IS(pair_flush(p, 0), DELTAFS_OK);
    free(bytes);
}

/* Open and read all of it; the bytes that come must be right. */
static int read_all(const char *name, const struct pair *p, uint32_t session, uint32_t writer, struct error *e)
{
    struct io io = io_default();
    struct frame_cache cache;
    struct frame_reader r;
    struct error ignored;
    uint8_t small[FRAME_SIZE / 2];

    frame_cache_init(&cache, 1 << 20);
    int status = frame_reader_open(&r, &io, unit_path("%s", name), session, writer, uuid, &cache, e);
    if (status == DELTAFS_OK) {
        uint8_t *got = malloc(p->end);
        status = frame_reader_read(&r, 0, got, p->end, e);
        CHECK(status != DELTAFS_OK || memcmp(got, p->bytes, p->end) == 0);
        free(got);
        /* In small pieces the same is found. */
        int second = DELTAFS_OK;
        for (uint64_t at = 0; at < p->end && second == DELTAFS_OK; at += sizeof small) {
            second = frame_reader_read(&r, at, small, sizeof small, &ignored);
            CHECK(second != DELTAFS_OK || memcmp(small, p->bytes + at, sizeof small) == 0);
        }
        CHECK_IS(second, status);
        CHECK_IS(frame_reader_close(&r, &ignored), DELTAFS_OK);
    }
    frame_cache_fini(&cache);
    return status;
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
            CHECK_IS(frame_reader_open(&reader[i], &io, unit_path("reads.data"), SESSION, WRITER, uuid, &cache, &e),
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
        CHECK_IS(frame_reader_open(&reader, &io, unit_path("forward.data"), SESSION, WRITER, uuid, &cache, &e),
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

/* A life in which the k-th operation fails, for every k: what was appended with success is there, what failed is not,
 * and all calls but a sync can be tried again. */
static int faulty_life(struct pair *p, struct rng *r, const uint8_t *bytes)
{
    static const size_t sizes[] = {100, 5000, 200000, 30000, 140001, 4 << 20, 77};
    struct error e;
    int lost = 0;

    p->end = p->flushed = 0;
    for (int i = 0; frame_log_create(&p->log, &p->io, unit_path("fault.data"), SESSION, WRITER, uuid, 64 << 10, NULL,
                                     &e) != DELTAFS_OK;
         i++)
        CHECK(i < 2 && e.status == DELTAFS_ERR_IO);
    frame_cache_init(&p->cache, 512 << 10);
    frame_log_use_cache(&p->log, &p->cache);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (pair_append(p, bytes + i, sizes[i]) != DELTAFS_OK)
            CHECK_IS(pair_append(p, bytes + 2 * i, sizes[i]), DELTAFS_OK);
        if (i % 2 && pair_flush(p, 1) != DELTAFS_OK && pair_flush(p, 1) != DELTAFS_OK)
            lost = 1;
        uint64_t at = rng_below(r, p->end);
        size_t n = p->end - at < 300000 ? (size_t)(p->end - at) : 300000;
        uint8_t *got = malloc(n);
        if (frame_log_read(&p->log, at, got, n, &e) != DELTAFS_OK)
            CHECK_IS(frame_log_read(&p->log, at, got, n, &e), DELTAFS_OK);
        CHECK(memcmp(got, p->bytes + at, n) == 0);
        free(got);
    }
    if (pair_flush(p, 1) != DELTAFS_OK && pair_flush(p, 1) != DELTAFS_OK)
        lost = 1;
    frame_log_close(&p->log, &e);
    frame_cache_fini(&p->cache);
    return lost;
}

static void test_faults(void **state)
{
    struct rng r = rng_init(12);
    uint8_t *bytes = noise(&r, 5 << 20);
    int goes_on = 1;

    (void)state;
    for (uint64_t k = 0; goes_on; k++) {
        struct pair p = {0};
        struct error e;
        unit_remove(unit_path("fault.data"));
        unit_kth_begin(&p.io, k, EIO);
        int lost = faulty_life(&p, &r, bytes);
        goes_on = unit_kth_end();
        CHECK(!lost || goes_on);
        /* What is flushed can be read by others, whatever failed. */
        if (!lost)
            CHECK_IS(read_all("fault.data", &p, SESSION, WRITER, &e), DELTAFS_OK);
        free(p.bytes);
    }
    free(bytes);
}

/* Reading with the k-th operation failing: an error, and then all is well again. */
static void test_read_faults(void **state)
{
    struct rng r = rng_init(13);
    struct pair p;
    int goes_on = 1;

    (void)state;
    make_log("fault.data", &r, 1100, &p);
    for (uint64_t k = 0; goes_on; k++) {
        struct io io;
        struct frame_cache cache;
        struct frame_reader reader;
        struct error e;
        uint8_t got[70000];
        frame_cache_init(&cache, 0);
        unit_kth_begin(&io, k, EIO);
        while (frame_reader_open(&reader, &io, unit_path("fault.data"), SESSION, WRITER, uuid, &cache, &e) !=
               DELTAFS_OK)
            CHECK(e.status == DELTAFS_ERR_IO && unit_kth_has_failed());
        for (int i = 0; i < 60; i++) {
            size_t n = i % 3 ? 1 + rng_below(&r, 9000) : sizeof got;
            uint64_t at = rng_below(&r, p.end - n);
            if (frame_reader_read(&reader, at, got, n, &e) != DELTAFS_OK) {
                CHECK_IS(e.status, DELTAFS_ERR_IO);
                CHECK_IS(frame_reader_read(&reader, at, got, n, &e), DELTAFS_OK);
            }
            CHECK(memcmp(got, p.bytes + at, n) == 0);
        }
        frame_reader_close(&reader, &e);
        frame_cache_fini(&cache);
        goes_on = unit_kth_end();
    }
    pair_close(&p);
}

/* Once a sync has failed, nobody knows what is on storage: no later flush may say that all is. */
static void test_lost_sync(void **state)
{
    struct frame_log log;
    struct error e;
    struct io io;
    uint64_t k = 2; /* behind opening and the header; then the frame, the page and the sync */

    (void)state;
    unit_remove(unit_path("lost.data"));
    unit_kth_begin(&io, k + 2, EIO);
    CHECK_IS(frame_log_create(&log, &io, unit_path("lost.data"), SESSION, WRITER, uuid, 0, NULL, &e), DELTAFS_OK);
    CHECK_IS(frame_log_append(&log, "abc", 3, &e), DELTAFS_OK);
    CHECK_IS(frame_log_flush(&log, 1, &e), DELTAFS_ERR_IO);
    CHECK_IS(frame_log_append(&log, "abc", 3, &e), DELTAFS_OK);
    CHECK_IS(frame_log_flush(&log, 1, &e), DELTAFS_ERR_IO);
    CHECK(strstr(e.text, "an earlier sync failed"));
    CHECK_IS(frame_log_flush(&log, 0, &e), DELTAFS_ERR_IO);
    CHECK_IS(frame_log_close(&log, &e), DELTAFS_OK);
    CHECK(unit_kth_end());
}

/* The log is the only one of its name, counts its memory, and closes in any state. */
static void test_create(void **state)
{
    struct memory memory = {.limit = 1 << 20};
    struct frame_log log = {0};
    struct io io = io_default();
    struct error e;

    (void)state;
    CHECK_IS(frame_log_close(&log, &e), DELTAFS_OK);
    unit_save(unit_path("there.data"), "x", 1);
    CHECK_IS(frame_log_create(&log, &io, unit_path("there.data"), 0, 0, uuid, 4096, &memory, &e), DELTAFS_ERR_EXISTS);
    CHECK_IS(frame_log_create(&log, &io, unit_path("big.data"), 0, 0, uuid, 2 << 20, &memory, &e), DELTAFS_ERR_MEMORY);
    CHECK(!unit_exists(unit_path("big.data")));
    CHECK_IS(frame_log_create(&log, &io, unit_path("new.data"), 0, 0, uuid, 1 << 19, &memory, &e), DELTAFS_OK);
    CHECK(memory.used >= 1 << 19 && memory.used < (1 << 19) + 4096);
    CHECK_IS(frame_log_close(&log, &e), DELTAFS_OK);
    CHECK_IS(memory.used, 0);
    CHECK_IS(frame_log_close(&log, &e), DELTAFS_OK);
}

/* A file system that shows late what another host writes: a reader has the file as it was, until it has asked
 * `left` times more. */
static struct {
    struct fake_io fake;
    uint8_t old[64 * FRAME_SIZE];
    ssize_t size;
} late;

static ssize_t cached_do(struct fake_call *c)
{
    if (c->op == FAKE_REFRESH)
        return unit_cached_refresh();
    if (c->op != FAKE_READ || unit_cached.left == 0)
        return fake_do(c);
    uint64_t end = (uint64_t)late.size < c->offset + c->n ? (uint64_t)late.size : c->offset + c->n;
    memset(c->to, 0, c->n);
    for (uint64_t i = c->offset; i < end && i < sizeof late.old; i++)
        ((uint8_t *)c->to)[i - c->offset] = late.old[i];
    return end > c->offset ? (ssize_t)(end - c->offset) : 0;
}

/* From now on, the reader's file is as it is now. */
static void cached_begin(struct pair *p, int left)
{
    struct stat st;

    CHECK_IS(fstat(p->log.file.fd, &st), 0);
    late.size = st.st_size;
    CHECK(pread(p->log.file.fd, late.old, sizeof late.old, 0) >= FRAME_SIZE);
    unit_cached.left = left;
    unit_cached.asked = 0;
}

/* On GlusterFS, where this was found, a reader on another host was told that a log had been damaged which was only
 * newer than what its host knew of it: too short, or with checksums that did not have the new frames yet. */
static void test_client_cached(void **state)
{
    uint8_t bytes[10 * FRAME_SIZE], got[sizeof bytes];
    struct error e;
    struct pair p;

    (void)state;
    memset(bytes, 0x35, sizeof bytes);
    fake_io_init(&late.fake, cached_do);
    fake_io_has_all(&late.fake);
    unit_cached.is_client_cached = 1;
    unit_cached.left = 0;
    pair_open(&p, "late", 64 * FRAME_SIZE, 1 << 20);
    CHECK_IS(frame_reader_close(&p.reader, &e), DELTAFS_OK);
    struct io io = {.ops = &late.fake.ops, .ctx = &late.fake};
    CHECK_IS(frame_reader_open(&p.reader, &io, unit_path("%s", "late"), SESSION, WRITER, uuid, &p.cache, &e),
             DELTAFS_OK);

    /* At first the file has a header only; then checksums, which do not have the next frames. */
    for (int i = 0; i < 2; i++) {
        uint64_t from = p.end;
        cached_begin(&p, 5);
        CHECK_IS(pair_append(&p, bytes, sizeof bytes), DELTAFS_OK);
        CHECK_IS(pair_flush(&p, 0), DELTAFS_OK);
        if (i == 0) {
            CHECK_IS(io_file_read(&p.reader.file, frame_offset(from), got, sizeof got, &e), DELTAFS_OK);
            unit_cached.left = 5;
        }
        CHECK_IS(frame_reader_read(&p.reader, from, got, sizeof got, &e), DELTAFS_OK);
        CHECK(memcmp(got, bytes, sizeof got) == 0);
        CHECK_IS(unit_cached.left, 0);
    }

    /* Damage stays damage, also there, and is waited for once. Elsewhere it is not. */
    cached_begin(&p, INT_MAX);
    CHECK_IS(pair_append(&p, bytes, sizeof bytes), DELTAFS_OK);
    CHECK_IS(pair_flush(&p, 0), DELTAFS_OK);
    unit_cached.is_client_cached = 0;
    CHECK_IS(frame_reader_read(&p.reader, p.end - FRAME_SIZE, got, FRAME_SIZE, &e), DELTAFS_ERR_DAMAGED);
    CHECK(unit_cached.asked <= 2);
    unit_cached.is_client_cached = 1;
    CHECK_IS(frame_reader_read(&p.reader, p.end - FRAME_SIZE, got, FRAME_SIZE, &e), DELTAFS_ERR_DAMAGED);
    int asked = unit_cached.asked;
    CHECK(asked > 4);
    CHECK_IS(frame_reader_read(&p.reader, p.end - FRAME_SIZE, got, FRAME_SIZE, &e), DELTAFS_ERR_DAMAGED);
    CHECK(unit_cached.asked <= asked + 2);
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

/* ---- Room that is set aside ---- */

static struct {
    struct fake_io fake;
    uint64_t from, to, calls; /* set aside */
    uint64_t cut, cuts;       /* truncated to */
    uint64_t refusals;        /* from that call on */
} room;

static ssize_t room_allocate(const struct fake_call *c)
{
    if (room.calls++ >= room.refusals)
        return -ENOSPC;
    CHECK(room.to == 0 || room.to == c->offset);
    CHECK(c->length >= 8 << 20 && c->length <= 80 << 20);
    if (room.to == 0)
        room.from = c->offset;
    room.to = c->offset + c->length;
    return 0;
}

static ssize_t room_do(struct fake_call *c)
{
    if (c->op == FAKE_ALLOCATE)
        return room_allocate(c);
    if (c->op == FAKE_WRITE)
        CHECK(room.calls > room.refusals || room.to == 0 || c->offset + c->n <= room.to);
    if (c->op == FAKE_TRUNCATE) {
        room.cut = c->offset;
        room.cuts++;
    }
    return fake_do(c);
}

/* A short log has nothing set aside. In a long one all that is written has room, without gaps, until that is refused;
 * and the close gives back what is left. */
static void test_room(void **state)
{
    static const uint64_t refusals[] = {UINT64_MAX, 0, 1};
    struct rng r = rng_init(16);
    uint8_t *bytes = noise(&r, 1 << 20);

    (void)state;
    for (size_t k = 0; k < 6; k++) {
        struct pair p;
        struct error e;
        size_t n = k < 3 ? 1 << 20 : 150000; /* from the caller's memory, and by the buffer */
        pair_open(&p, "room.data", 1 << 20, 1 << 20);
        const struct io_ops *real = p.io.ops;
        memset(&room, 0, sizeof room);
        fake_io_init(&room.fake, room_do);
        fake_io_has_all(&room.fake);
        room.refusals = refusals[k % 3];
        p.io.ops = &room.fake.ops;
        p.io.ctx = &room.fake;
        while (p.end < 8 << 20)
            CHECK_IS(pair_append(&p, bytes, n), DELTAFS_OK);
        CHECK_IS(room.calls, 0);
        while (p.end < 45 << 20)
            CHECK_IS(pair_append(&p, bytes, n), DELTAFS_OK);
        /* Also of what is refused a part may have been set aside. */
        CHECK(room.refusals == UINT64_MAX ? room.to > frame_offset(45 << 20) && room.from < 11 << 20 && room.cuts == 0
                                          : room.calls == room.refusals + 1 && room.cuts == 1);
        uint64_t written = p.log.base;
        CHECK_IS(pair_flush(&p, 1), DELTAFS_OK);
        CHECK(room.cuts == 1);
        CHECK(room.refusals < UINT64_MAX || room.cut == frame_offset(written) ||
              room.cut == frame_page_offset(written - 1) + FRAME_SIZE);
        /* Behind the page that the flush has written it goes on, and the close gives back what that leaves. */
        uint64_t calls = room.calls;
        room.to = 0;
        while (p.end < 60 << 20)
            CHECK_IS(pair_append(&p, bytes, n), DELTAFS_OK);
        CHECK(room.refusals == UINT64_MAX ? room.calls > calls && room.from >= room.cut : room.calls == calls);
        CHECK_IS(room.cuts, 1);
        /* Also where whole groups were written, and nothing is left to flush. */
        if (n == 1 << 20) {
            while (p.end % GROUP != 0)
                CHECK_IS(pair_append(&p, bytes, FRAME_SIZE), DELTAFS_OK);
            CHECK_IS(pair_flush(&p, 0), DELTAFS_OK);
            CHECK_IS(room.cuts, room.refusals == UINT64_MAX ? 2 : 1);
        }
        CHECK_IS(frame_log_close(&p.log, &e), DELTAFS_OK);
        CHECK_IS(room.cuts, room.refusals == UINT64_MAX ? 2 : 1);
        p.io.ops = real;
        p.io.ctx = NULL;
        pair_close(&p);
    }
    free(bytes);
}

/* Of a log that was closed in the midst of a group there are no more blocks than of what was written, whatever the file
 * system does with what is set aside. */
static void test_room_is_given_back(void **state)
{
    struct rng r = rng_init(17);
    struct pair p;
    struct stat st;

    (void)state;
    for (int is_synced = 0; is_synced < 2; is_synced++) {
        make_log("given.data", &r, 9 * FRAME_GROUP + 5, &p);
        uint8_t *bytes = noise(&r, 3 << 20);
        for (int i = 0; i < 5; i++) {
            CHECK_IS(pair_append(&p, bytes, 3 << 20), DELTAFS_OK);
            if (is_synced)
                CHECK_IS(pair_flush(&p, 1), DELTAFS_OK);
        }
        CHECK_IS(pair_flush(&p, 0), DELTAFS_OK);
        pair_check(&p, 0, (size_t)p.end);
        uint64_t end = p.end;
        free(bytes);
        pair_close(&p);
        CHECK(stat(unit_path("given.data"), &st) == 0);
        CHECK((uint64_t)st.st_blocks * 512 <= end + end / FRAME_GROUP + (256 << 10));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),       cmocka_unit_test(test_finish),
        cmocka_unit_test(test_finish_fails), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_identity),     cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_growing),      cmocka_unit_test(test_reads),
        cmocka_unit_test(test_forward),      cmocka_unit_test(test_faults),
        cmocka_unit_test(test_read_faults),  cmocka_unit_test(test_lost_sync),
        cmocka_unit_test(test_create),       cmocka_unit_test(test_client_cached),
        cmocka_unit_test(test_team),         cmocka_unit_test(test_team_fails),
        cmocka_unit_test(test_room),         cmocka_unit_test(test_room_is_given_back),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
