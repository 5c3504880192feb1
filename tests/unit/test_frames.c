/* Data logs of logical files: what is appended is read, by the writer and by others; no damage passes; a failure takes
 * nothing with it. The oracle is all the bytes in one array. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "base/coding.h"
#include "store/frames.h"
#include "store/store_format.h"
#include "unit_help.h"
#include "unit_io.h"

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
    CHECK_IS(frame_cache_init(&p->cache, cache, &e), DELTAFS_OK);
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

    if (status == DELTAFS_OK) {
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
        return (128 << 10) - 2 + rng_below(r, 4);
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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
