/* Frames, the faults: an operation that fails takes nothing with it; a file system that shows late what was written is
 * waited for; and room that is set aside for a log may be refused, and is given back. */
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>
#include "frames_pair.h"
#include "unit_io.h"
#include "unit_kth.h"

/* A life in which the k-th operation fails, for every k: what was appended with success is there, what failed is not,
 * and all calls but a sync can be tried again. */
static int faulty_life(struct pair *p, struct rng *r, const uint8_t *bytes)
{
    static const size_t sizes[] = {100, 5000, 200000, 30000, 140001, 4 << 20, 77};
    struct error e;
    int lost = 0;

    p->end = p->flushed = 0;
    for (int i = 0; frame_log_create(&p->log, &p->io, unit_path("fault.data"), SESSION, WRITER, pair_uuid, 64 << 10,
                                     NULL, &e) != DELTAFS_OK;
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
        int tries = 0;
        frame_cache_init(&cache, 0);
        unit_kth_begin(&io, k, EIO);
        while (frame_reader_open(&reader, &io, unit_path("fault.data"), SESSION, WRITER, pair_uuid, &cache, &e) !=
               DELTAFS_OK)
            CHECK(tries++ < 2 && e.status == DELTAFS_ERR_IO && unit_kth_has_failed());
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
    CHECK_IS(frame_log_create(&log, &io, unit_path("lost.data"), SESSION, WRITER, pair_uuid, 0, NULL, &e), DELTAFS_OK);
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
    CHECK_IS(frame_log_create(&log, &io, unit_path("there.data"), 0, 0, pair_uuid, 4096, &memory, &e),
             DELTAFS_ERR_EXISTS);
    CHECK_IS(frame_log_create(&log, &io, unit_path("big.data"), 0, 0, pair_uuid, 2 << 20, &memory, &e),
             DELTAFS_ERR_MEMORY);
    CHECK(!unit_exists(unit_path("big.data")));
    CHECK_IS(frame_log_create(&log, &io, unit_path("new.data"), 0, 0, pair_uuid, 1 << 19, &memory, &e), DELTAFS_OK);
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

/* On GlusterFS, where this was found, a reader on another host took a log for damaged that was only newer than what its
 * host knew of it: too short, or with checksums that did not have the new frames yet. */
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
    CHECK_IS(frame_reader_open(&p.reader, &io, unit_path("%s", "late"), SESSION, WRITER, pair_uuid, &p.cache, &e),
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
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_read_faults),
        cmocka_unit_test(test_lost_sync),
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_client_cached),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_room_is_given_back),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
