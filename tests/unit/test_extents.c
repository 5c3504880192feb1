/* Extents: lists against a plain list of what was written, batches there and back, and every way to spoil them. */
#include "store/extents.h"
#include "store/log.h"
#include "unit_help.h"

static const uint8_t uuid[FORMAT_UUID_SIZE] = {1, 2, 3};

/* ---- The oracle: each write by itself ---- */

struct write {
    uint64_t offset, size, position;
};

struct history {
    struct extent_list list;
    struct write *write;
    size_t count, capacity;
    uint64_t position;
};

static void write_some(struct history *h, uint64_t offset, uint64_t size)
{
    struct error e;

    if (h->count == h->capacity) {
        h->capacity = h->capacity ? 2 * h->capacity : 64;
        h->write = realloc(h->write, h->capacity * sizeof *h->write);
        CHECK(h->write != NULL);
    }
    CHECK_IS(extent_list_add(&h->list, offset, size, h->position, &e), DELTAFS_OK);
    h->write[h->count++] = (struct write){offset, size, h->position};
    h->position += size;
}

static void history_fini(struct history *h)
{
    extent_list_fini(&h->list);
    free(h->write);
    *h = (struct history){.count = 0};
}

/* What owns each byte of a small file: the position of its byte in the log, from 1. */
#define FILE_MAX 20000

static void paint(uint64_t *owner, uint64_t offset, uint64_t size, uint64_t position)
{
    CHECK(offset + size <= FILE_MAX);
    for (uint64_t i = 0; i < size; i++)
        if (owner[offset + i] < position + i + 1)
            owner[offset + i] = position + i + 1;
}

static void check_history(struct history *h)
{
    static uint64_t want[FILE_MAX], got[FILE_MAX];

    extent_list_settle(&h->list);
    memset(want, 0, sizeof want);
    memset(got, 0, sizeof got);
    for (size_t i = 0; i < h->count; i++)
        paint(want, h->write[i].offset, h->write[i].size, h->write[i].position);
    for (size_t i = 0; i < h->list.count; i++) {
        const struct extent *x = &h->list.extent[i];
        CHECK(extent_is_valid(x));
        for (uint64_t k = 0; k < x->count; k++)
            paint(got, x->offset + k * x->stride, x->size, x->position + k * x->position_stride);
    }
    CHECK(memcmp(want, got, sizeof want) == 0);
}

/* ---- Patterns ---- */

static void test_patterns(void **state)
{
    struct history h = {.count = 0};

    (void)state;
    /* One strided run, each piece in three calls. */
    for (uint64_t i = 0; i < 100; i++)
        for (uint64_t k = 0; k < 3; k++)
            write_some(&h, 7 + 100 * i + 10 * k, 10);
    check_history(&h);
    CHECK_IS(h.list.count, 1);
    CHECK_IS(h.list.extent[0].count, 100);
    CHECK_IS(h.list.extent[0].position_stride, 30);
    history_fini(&h);
    /* Variables written in turn: of several sizes, of one size, of one size and at one distance. */
    for (uint64_t i = 0; i < 200; i++)
        for (uint64_t k = 0; k < 5; k++)
            write_some(&h, 4000 * k + 20 * i, 4 * (k + 1));
    check_history(&h);
    CHECK_IS(h.list.count, 5);
    history_fini(&h);
    for (uint64_t i = 0; i < 200; i++)
        for (uint64_t k = 0; k < 4; k++)
            write_some(&h, 4000 * k * (k + 1) / 2 / 2 + 20 * i, 8);
    check_history(&h);
    CHECK_IS(h.list.count, 4);
    history_fini(&h);
    for (uint64_t i = 0; i < 200; i++)
        for (uint64_t k = 0; k < 4; k++)
            write_some(&h, 4000 * k + 8 * i, 8);
    check_history(&h);
    CHECK_IS(h.list.count, 4);
    history_fini(&h);
    /* A header that is written again with each step. */
    for (uint64_t i = 0; i < 200; i++) {
        write_some(&h, 0, 16);
        for (uint64_t k = 0; k < 3; k++)
            write_some(&h, 100 + 6000 * k + 20 * i, 8);
    }
    check_history(&h);
    CHECK_IS(h.list.count, 4);
    history_fini(&h);
}

static void test_random_lists(void **state)
{
    struct rng r = rng_init(61);

    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct history h = {.count = 0};
        for (uint64_t n = rng_below(&r, 12) + 1; n > 0; n--) {
            uint64_t turns = rng_below(&r, 12) + 1, columns = rng_below(&r, 6) + 1, at[6], stride[6], size[6];
            uint64_t any = rng_below(&r, 3) ? 0 : 1, even = rng_below(&r, 2) * 300, parts = rng_below(&r, 3) + 1;
            for (uint64_t k = 0; k < columns; k++) {
                at[k] = even ? k * even : rng_below(&r, 3000);
                size[k] = even ? 8 : rng_below(&r, 30) + 1;
                stride[k] = rng_below(&r, 4) ? rng_below(&r, 100) : rng_below(&r, 2) * 8;
            }
            for (uint64_t i = 0; i < turns; i++)
                for (uint64_t k = 0; k < columns; k++)
                    for (uint64_t p = 0; p < parts; p++)
                        write_some(&h, at[k] + i * stride[k] + p * size[k] + any * rng_below(&r, 3), size[k]);
            h.position += rng_below(&r, 4) ? 0 : rng_below(&r, 100);
        }
        check_history(&h);
        CHECK(h.list.count <= h.count);
        history_fini(&h);
    }
}

/* ---- Batches ---- */

struct decoded {
    struct extent *extent;
    size_t count;
};

static int note_extent(const struct extent *x, void *arg, struct error *e)
{
    struct decoded *d = arg;

    (void)e;
    CHECK(extent_is_valid(x));
    d->extent = realloc(d->extent, (d->count + 1) * sizeof *d->extent);
    CHECK(d->extent != NULL);
    d->extent[d->count++] = *x;
    return DELTAFS_OK;
}

static int is_same(const struct extent *a, const struct extent *b)
{
    return a->offset == b->offset && a->size == b->size && a->stride == b->stride && a->count == b->count &&
           a->position == b->position && a->position_stride == b->position_stride && a->kind == b->kind;
}

static void test_there_and_back(void **state)
{
    struct rng r = rng_init(62);
    struct buffer out = {0};
    struct error e;

    (void)state;
    for (int round = 0; round < 500; round++) {
        struct history h = {.count = 0};
        struct decoded d = {0};
        size_t n = 0, used;
        int is_last = 0;
        h.position = rng_next(&r) >> (1 + rng_below(&r, 60)) >> 1;
        for (uint64_t i = rng_below(&r, 40); i > 0; i--)
            write_some(&h, rng_below(&r, UINT64_C(1) << (1 + rng_below(&r, 60))), rng_below(&r, 5000) + 1);
        if (rng_below(&r, 3) == 0)
            CHECK_IS(extent_list_mark(&h.list, EXTENT_TRUNCATE, rng_next(&r) >> 1, h.position, &e), DELTAFS_OK);
        CHECK_IS(extent_list_encode(&h.list, 5, 3, 4, 77, h.position, round % 2, &out, &n, &e), DELTAFS_OK);
        CHECK_IS(extent_batches_decode(out.bytes, n, 5, "log", 0, note_extent, &d, &used, &is_last, &e), DELTAFS_OK);
        CHECK_IS(used, n);
        CHECK_IS(is_last, round % 2);
        CHECK_IS(d.count, h.list.count);
        for (size_t i = 0; i < d.count; i++) {
            CHECK(is_same(&d.extent[i], &h.list.extent[i]));
            CHECK(d.extent[i].order == 77 && d.extent[i].session == 3 && d.extent[i].writer == 4);
        }
        free(d.extent);
        history_fini(&h);
    }
    buffer_fini(&out);
}

/* ---- Logs ---- */

static void test_log(void **state)
{
    const char *path = unit_path("w.extents");
    struct io io = io_default();
    struct extent_log log;
    struct history h = {.count = 0};
    struct buffer batch = {0}, got = {0};
    uint64_t from = 0;
    size_t n = 0, read = 0;
    int is_last = 0;
    struct error e;

    (void)state;
    CHECK_IS(extent_log_read(&io, path, 0, 9, uuid, 0, &from, &is_last, &got, &read, &e), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(extent_log_create(&log, &io, path, 9, uuid, &e), DELTAFS_OK);
    for (int i = 0; i < 5; i++) {
        write_some(&h, 1000 * (uint64_t)i, 10);
        n = 0;
        CHECK_IS(extent_list_encode(&h.list, log_seed(uuid), 2, 9, 1, h.position, i == 4, &batch, &n, &e), DELTAFS_OK);
        CHECK_IS(extent_log_append(&log, batch.bytes, n, 1, &e), DELTAFS_OK);
        extent_list_clear(&h.list);
        size_t before = read;
        CHECK_IS(extent_log_read(&io, path, 2, 9, uuid, i == 4, &from, &is_last, &got, &read, &e), DELTAFS_OK);
        CHECK_IS(read, before + n);
        CHECK(memcmp(got.bytes + before, batch.bytes, n) == 0);
        CHECK_IS(from, log.end);
        CHECK_IS(is_last, i == 4);
    }
    CHECK_IS(extent_log_close(&log, &e), DELTAFS_OK);
    CHECK_IS(extent_log_create(&log, &io, path, 9, uuid, &e), DELTAFS_ERR_EXISTS);
    CHECK_IS(extent_log_close(&log, &e), DELTAFS_OK);
    buffer_fini(&batch);
    buffer_fini(&got);
    history_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_random_lists),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_log),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
