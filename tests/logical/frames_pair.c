/* A log, its reader and their oracle. */
#include "frames_pair.h"

const uint8_t pair_uuid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

void pair_open(struct pair *p, const char *name, size_t capacity, size_t cache)
{
    struct error e;

    memset(p, 0, sizeof *p);
    p->io = io_default();
    unit_remove(unit_path("%s", name));
    CHECK_IS(frame_log_create(&p->log, &p->io, unit_path("%s", name), SESSION, WRITER, pair_uuid, capacity, NULL, &e),
             DELTAFS_OK);
    frame_cache_init(&p->cache, cache);
    frame_log_use_cache(&p->log, &p->cache);
    CHECK_IS(frame_reader_open(&p->reader, &p->io, unit_path("%s", name), SESSION, WRITER, pair_uuid, &p->cache, &e),
             DELTAFS_OK);
}

void pair_close(struct pair *p)
{
    struct error e;

    CHECK_IS(frame_log_close(&p->log, &e), DELTAFS_OK);
    CHECK_IS(frame_reader_close(&p->reader, &e), DELTAFS_OK);
    frame_cache_fini(&p->cache);
    free(p->bytes);
}

void pair_note(struct pair *p, const void *from, uint64_t n)
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

int pair_append(struct pair *p, const void *bytes, size_t n)
{
    struct error e;

    CHECK_IS(frame_log_end(&p->log), p->end);
    int status = frame_log_append(&p->log, bytes, n, &e);
    if (status == DELTAFS_OK)
        pair_note(p, bytes, n);
    CHECK_IS(frame_log_end(&p->log), p->end);
    return status;
}

int pair_flush(struct pair *p, int sync)
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

void pair_check(struct pair *p, uint64_t position, size_t n)
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

uint8_t *noise(struct rng *r, size_t n)
{
    uint8_t *bytes = malloc(n + 1);

    assert_non_null(bytes);
    rng_fill(r, bytes, n);
    return bytes;
}

void make_log(const char *name, struct rng *r, size_t n, struct pair *p)
{
    pair_open(p, name, 1 << 20, 1 << 20);
    uint8_t *bytes = noise(r, n * FRAME_SIZE);
    CHECK_IS(pair_append(p, bytes, n * FRAME_SIZE), DELTAFS_OK);
    CHECK_IS(pair_flush(p, 0), DELTAFS_OK);
    free(bytes);
}

int read_all(const char *name, const struct pair *p, uint32_t session, uint32_t writer, struct error *e)
{
    struct io io = io_default();
    struct frame_cache cache;
    struct frame_reader r;
    struct error ignored;
    uint8_t small[FRAME_SIZE / 2];

    frame_cache_init(&cache, 1 << 20);
    int status = frame_reader_open(&r, &io, unit_path("%s", name), session, writer, pair_uuid, &cache, e);
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
