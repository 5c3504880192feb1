/* Extents: lists against a plain list of what was written, batches there and back, and every way to spoil them. */
#include <errno.h>
#include "base/coding.h"
#include "base/crc32c.h"
#include "store/extents.h"
#include "store/log.h"
#include "store/store_format.h"
#include "unit_help.h"
#include "unit_io.h"

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

/* A block of a matrix of three dimensions: its rows or its columns, whichever are fewer. */
static void test_blocks(void **state)
{
    static const uint64_t shape[][2] = {{3, 40}, {40, 3}, {25, 25}, {1, 50}, {50, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++) {
        struct history h = {.count = 0};
        for (uint64_t z = 0; z < shape[i][0]; z++)
            for (uint64_t y = 0; y < shape[i][1]; y++)
                write_some(&h, z * 400 + y * 7, 3);
        check_history(&h);
        CHECK_IS(h.list.count, shape[i][0] < shape[i][1] ? shape[i][0] : shape[i][1]);
        history_fini(&h);
    }
}

/* Two random writes are no run: it would reach over half of the file, and be in the way of every look-up. */
static void test_random_writes(void **state)
{
    struct rng r = rng_init(63);
    struct extent_list l = {0};
    struct error e;
    uint64_t n = 20000, runs = 0;

    (void)state;
    for (uint64_t i = 0; i < n; i++)
        CHECK_IS(extent_list_add(&l, rng_below(&r, 1 << 28) * 4096, 4096, i * 4096, &e), DELTAFS_OK);
    for (size_t i = 0; i < l.count; i++)
        runs += l.extent[i].count > 1;
    CHECK(runs < 3);
    CHECK(l.count > n - 10);
    extent_list_fini(&l);
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

static void test_limits(void **state)
{
    static const struct extent bad[] = {
        {.size = 0, .count = 1},
        {.size = 1, .count = 0},
        {.size = 1, .count = 1, .offset = EXTENT_MAX},
        {.size = 1, .count = 1, .position = EXTENT_MAX},
        {.size = 1, .count = 1, .order = EXTENT_MAX + 1},
        {.size = EXTENT_MAX + 1, .count = 1},
        {.size = UINT64_MAX, .count = 1},
        {.size = 1, .count = 1, .offset = UINT64_MAX},
        {.size = 1, .count = 1, .stride = 1},
        {.size = 1, .count = 1, .position_stride = 1},
        {.size = 2, .count = 2, .stride = 1, .position_stride = 2},
        {.size = 2, .count = 2, .stride = 2, .position_stride = 1},
        {.size = 1, .count = EXTENT_MAX + 1, .stride = 1, .position_stride = 1},
        {.size = 1, .count = EXTENT_MAX / 2 + 1, .stride = 3, .position_stride = 1},
        {.size = 1, .count = EXTENT_MAX / 2 + 1, .stride = 1, .position_stride = 3},
        {.size = 1, .count = UINT64_MAX, .stride = UINT64_MAX, .position_stride = UINT64_MAX},
        {.size = 1, .count = 1, .kind = EXTENT_TRUNCATE},
        {.count = 2, .kind = EXTENT_EXTEND},
        {.offset = EXTENT_MAX + 1, .count = 1, .kind = EXTENT_EXTEND},
        {.count = 1, .kind = (enum extent_kind)3},
    };
    static const struct extent good[] = {
        {.size = EXTENT_MAX, .count = 1},
        {.offset = EXTENT_MAX - 1, .position = EXTENT_MAX - 1, .size = 1, .count = 1, .order = EXTENT_MAX},
        {.size = 1, .count = EXTENT_MAX, .stride = 1, .position_stride = 1},
        {.offset = EXTENT_MAX, .count = 1, .kind = EXTENT_TRUNCATE},
    };
    struct extent_list l = {0};
    struct buffer out = {0};
    struct error e;
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!extent_is_valid(&bad[i]));
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        CHECK(extent_is_valid(&good[i]));
    CHECK_IS(extent_list_add(&l, EXTENT_MAX, 1, 0, &e), DELTAFS_ERR_INVALID);
    CHECK_IS(extent_list_add(&l, 0, 1, EXTENT_MAX, &e), DELTAFS_ERR_INVALID);
    CHECK_IS(extent_list_add(&l, 1, UINT64_MAX, 0, &e), DELTAFS_ERR_INVALID);
    CHECK_IS(extent_list_mark(&l, EXTENT_EXTEND, EXTENT_MAX + 1, 0, &e), DELTAFS_ERR_INVALID);
    CHECK_IS(extent_list_mark(&l, EXTENT_DATA, 0, 0, &e), DELTAFS_ERR_INVALID);
    CHECK_IS(extent_list_add(&l, EXTENT_MAX, 0, 0, &e), DELTAFS_OK);
    CHECK_IS(extent_list_encode(&l, 0, 0, 0, EXTENT_MAX + 1, 0, 0, &out, &n, &e), DELTAFS_ERR_INVALID);
    CHECK_IS(extent_list_encode(&l, 0, 0, 0, 0, EXTENT_MAX + 1, 0, &out, &n, &e), DELTAFS_ERR_INVALID);
    CHECK(n == 0 && l.count == 0);
    CHECK_IS(extent_list_add(&l, EXTENT_MAX - 1, 1, 0, &e), DELTAFS_OK);
    CHECK_IS(extent_list_add(&l, EXTENT_MAX - 1, 1, 1, &e), DELTAFS_OK);
    CHECK_IS(l.count, 1);
    extent_list_fini(&l);
}

/* A budget that is too small is an error, and what was in the list stays. */
static void test_no_memory(void **state)
{
    struct memory memory = {.limit = 10000};
    struct extent_list l = {.memory = &memory};
    struct buffer out = {.memory = &memory};
    struct error e;
    size_t n = 0, count;
    uint64_t i = 0;

    (void)state;
    while (extent_list_add(&l, 7 * i * i, 3, 3 * i, &e) == DELTAFS_OK)
        i++;
    CHECK_IS(e.status, DELTAFS_ERR_MEMORY);
    count = l.count;
    CHECK_IS(count, i);
    CHECK_IS(extent_list_add(&l, 7 * i * i, 3, 3 * i, &e), DELTAFS_ERR_MEMORY);
    CHECK_IS(extent_list_mark(&l, EXTENT_EXTEND, 5, 3 * i, &e), DELTAFS_ERR_MEMORY);
    CHECK_IS(l.count, count);
    memory.limit = memory.used + 10;
    CHECK_IS(extent_list_encode(&l, 0, 0, 0, 0, EXTENT_MAX, 0, &out, &n, &e), DELTAFS_ERR_MEMORY);
    CHECK_IS(n, 0);
    buffer_fini(&out);
    extent_list_fini(&l);
    CHECK_IS(memory.used, 0);
}

/* A list that is too long for a batch becomes two, of which the last alone has the flag. */
static void test_long_list(void **state)
{
    struct extent_list l = {0};
    struct buffer out = {0};
    struct error e;
    size_t n = 0, used, count = BATCH_ENTRIES_MAX + 5;
    int is_last = 0;

    (void)state;
    for (uint64_t i = 0; i < count; i++)
        CHECK_IS(extent_list_add(&l, 7 * i * i, 3, 3 * i, &e), DELTAFS_OK);
    CHECK_IS(l.count, count);
    CHECK_IS(extent_list_encode(&l, 0, 0, 0, 0, EXTENT_MAX, 1, &out, &n, &e), DELTAFS_OK);
    size_t first = get_u32(out.bytes + 8);
    CHECK_IS(get_u32(out.bytes + 20), BATCH_ENTRIES_MAX);
    CHECK_IS(out.bytes[5], 0);
    CHECK_IS(get_u32(out.bytes + first + 20), 5);
    CHECK_IS(extent_batches_decode(out.bytes, n, 0, "log", 0, NULL, NULL, &used, &is_last, &e), DELTAFS_OK);
    CHECK(used == n && is_last);
    buffer_fini(&out);
    extent_list_fini(&l);
}

/* ---- Damage ---- */

/* Two batches of a few entries of all kinds; returns the first one's length. */
static size_t make_batches(struct rng *r, struct buffer *out, size_t *n)
{
    struct history h = {.count = 0};
    struct error e;
    size_t first = 0;

    *n = 0;
    for (int batch = 0; batch < 2; batch++) {
        for (uint64_t i = 0; i < 5; i++)
            for (uint64_t k = 0; k < 3; k++)
                write_some(&h, 3000 * k + 100 * i, 10 + k);
        write_some(&h, rng_below(r, 10000), rng_below(r, 1000) + 1);
        CHECK_IS(extent_list_mark(&h.list, EXTENT_EXTEND, rng_below(r, 10000), h.position, &e), DELTAFS_OK);
        write_some(&h, rng_below(r, 10000), rng_below(r, 1000) + 1);
        CHECK_IS(extent_list_encode(&h.list, log_seed(uuid), 3, 4, (uint64_t)batch, h.position, batch, out, n, &e),
                 DELTAFS_OK);
        extent_list_clear(&h.list);
        first = batch == 0 ? *n : first;
    }
    history_fini(&h);
    return first;
}

/* Decode a copy that has no byte too many, for the sanitizer; what is handed out is as `want` has it. */
static int decode_copy(const uint8_t *bytes, size_t n, const struct decoded *want, size_t *used, struct error *e)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);
    struct decoded d = {0};
    int is_last = 0;

    CHECK(copy != NULL);
    memcpy(copy, bytes, n);
    *used = 0;
    int status = extent_batches_decode(copy, n, log_seed(uuid), "log", 1000, note_extent, &d, used, &is_last, e);
    CHECK(!want || d.count <= want->count);
    for (size_t i = 0; i < d.count && want; i++)
        CHECK(is_same(&d.extent[i], &want->extent[i]) && d.extent[i].order == want->extent[i].order);
    if (status != DELTAFS_OK)
        CHECK_IS(status, DELTAFS_ERR_DAMAGED);
    free(d.extent);
    free(copy);
    return status;
}

static void test_spoilt_batches(void **state)
{
    struct rng r = rng_init(64);
    struct buffer out = {0};
    struct decoded want = {0};
    struct error e;
    size_t n, used, first = make_batches(&r, &out, &n);
    int is_last;

    (void)state;
    CHECK_IS(extent_batches_decode(out.bytes, n, log_seed(uuid), "log", 0, note_extent, &want, &used, &is_last, &e), 0);
    for (size_t cut = 0; cut <= n; cut++) {
        CHECK_IS(decode_copy(out.bytes, cut, &want, &used, &e), DELTAFS_OK);
        CHECK_IS(used, cut == n ? n : cut >= first ? first : 0);
    }
    for (size_t bit = 0; bit < 8 * n; bit++) {
        out.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK_IS(decode_copy(out.bytes, n, &want, &used, &e), DELTAFS_ERR_DAMAGED);
        CHECK(strncmp(e.text, "log: ", 5) == 0 && strstr(e.text, "offset 1") != NULL);
        out.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t i = 0; i < n; i++) {
        uint8_t before = out.bytes[i];
        out.bytes[i] = (uint8_t)(before + rng_below(&r, 255) + 1);
        CHECK_IS(decode_copy(out.bytes, n, &want, &used, &e), DELTAFS_ERR_DAMAGED);
        out.bytes[i] = before;
    }
    /* Another container's. */
    CHECK_IS(extent_batches_decode(out.bytes, n, 1, "log", 0, NULL, NULL, &used, &is_last, &e), DELTAFS_ERR_DAMAGED);
    /* What a crash leaves where the file grew, but its bytes were not written. */
    memset(out.bytes + first, 0, n - first);
    CHECK_IS(decode_copy(out.bytes, n, &want, &used, &e), DELTAFS_OK);
    CHECK_IS(used, first);
    free(want.extent);
    buffer_fini(&out);
}

static void seal_batch(uint8_t *batch, size_t n)
{
    put_u32(batch + 40, crc32c(log_seed(uuid), batch + BATCH_HEADER_SIZE, n - BATCH_HEADER_SIZE));
    log_seal(log_seed(uuid), batch, BATCH_HEADER_SIZE);
}

/* Whatever stands behind right checksums: only valid extents come out. */
static void test_forged(void **state)
{
    struct rng r = rng_init(65);
    struct buffer out = {0};
    struct error e;
    size_t n, used, passed = 0;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint8_t batch[BATCH_HEADER_SIZE + 200];
        if (round % 1000 == 0)
            make_batches(&r, &out, &n);
        size_t length = get_u32(out.bytes + 8);
        CHECK(length <= sizeof batch);
        memcpy(batch, out.bytes, length);
        if (round % 4 == 0) {
            rng_fill(&r, batch + BATCH_HEADER_SIZE, length - BATCH_HEADER_SIZE);
            put_u32(batch + 20, (uint32_t)rng_below(&r, 20));
        }
        if (round % 2)
            put_u64(batch + 32, EXTENT_MAX);
        for (uint64_t k = rng_below(&r, 3) + 1; k > 0; k--)
            batch[rng_below(&r, 3) ? BATCH_HEADER_SIZE + rng_below(&r, length - BATCH_HEADER_SIZE)
                                   : rng_below(&r, BATCH_HEADER_SIZE)] =
                (uint8_t)(rng_below(&r, 3) ? rng_next(&r) : rng_below(&r, 2) * 0xff);
        seal_batch(batch, length);
        passed += decode_copy(batch, length, NULL, &used, &e) == DELTAFS_OK && used == length;
        rng_fill(&r, batch, sizeof batch);
        decode_copy(batch, rng_below(&r, sizeof batch + 1), NULL, &used, &e);
    }
    CHECK(passed > 1000); /* or this tests nothing */
    buffer_fini(&out);
}

/* The example of deltafs-format(5). */
static void test_page(void **state)
{
    static const uint8_t want[] = {0x04, 0x0e, 0x1e, 0x64, 0x46, 0x01, 0x91, 0x4d, 0x10, 0xff, 0x4a, 0x0a, 0x90, 0x11};
    struct history h = {.count = 0};
    struct buffer out = {0};
    struct error e;
    size_t n = 0;

    (void)state;
    for (uint64_t i = 0; i < 100; i++)
        write_some(&h, 7 + 100 * i, 30);
    CHECK_IS(extent_list_mark(&h.list, EXTENT_TRUNCATE, 5000, h.position, &e), DELTAFS_OK);
    h.position = 4096;
    write_some(&h, 200, 10);
    CHECK_IS(extent_list_encode(&h.list, 0, 0, 0, 1, h.position, 0, &out, &n, &e), DELTAFS_OK);
    CHECK_IS(n, BATCH_HEADER_SIZE + sizeof want);
    CHECK(memcmp(out.bytes + BATCH_HEADER_SIZE, want, sizeof want) == 0);
    buffer_fini(&out);
    history_fini(&h);
}

/* One entry, coded by hand, is taken or not. */
static void test_hand_made(void **state)
{
    static const struct {
        uint8_t bytes[32];
        uint8_t n;
        int is_good;
    } entry[] = {
        {{0x00, 0x02, 0x05}, 3, 1},
        {{0x00, 0x01, 0x05}, 3, 0},             /* offset -1 */
        {{0x00, 0x02, 0x00}, 3, 0},             /* no bytes */
        {{0x20, 0x02, 0x05}, 3, 0},             /* a tag of later times */
        {{0x03, 0x02}, 2, 0},                   /* a kind of later times */
        {{0x01, 0x02}, 2, 1},                   /* truncate */
        {{0x02, 0x02}, 2, 1},                   /* extend */
        {{0x05, 0x02, 0x02, 0x00}, 4, 0},       /* a run of truncations */
        {{0x04, 0x02, 0x05, 0x02, 0x00}, 5, 1}, /* a run */
        {{0x04, 0x02, 0x05, 0x01, 0x00}, 5, 0}, /* of one */
        {{0x08, 0x02, 0x05, 0x01}, 4, 0},       /* gaps, but no run */
        {{0x0c, 0x02, 0x05, 0x02, 0x00, 0x01}, 6, 1},
        {{0x10, 0x02, 0x05, 0x08}, 4, 1},
        {{0x10, 0x02, 0x05, 0x07}, 4, 0},                                                              /* position -4 */
        {{0x04, 0x02, 0x05, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 14, 0}, /* wraps */
        {{0x04, 0x02, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00}, 14, 0},
        {{0x00, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 12, 0},
        {{0x00, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, 12, 0}, /* 65 bits */
        {{0x00, 0x02, 0x05, 0x00}, 4, 0},                                                  /* a byte too many */
        {{0x00, 0x02}, 2, 0},                                                              /* a field too few */
        {{0x00}, 1, 0},
        {{0}, 0, 0},
    };
    struct error e;
    size_t used;

    (void)state;
    for (size_t i = 0; i < sizeof entry / sizeof entry[0]; i++) {
        uint8_t batch[BATCH_HEADER_SIZE + 32] = {0};
        size_t n = BATCH_HEADER_SIZE + entry[i].n;
        batch[4] = FORMAT_EXTENTS;
        put_u32(batch + 8, (uint32_t)n);
        put_u32(batch + 20, 1);
        put_u64(batch + 32, EXTENT_MAX);
        memcpy(batch + BATCH_HEADER_SIZE, entry[i].bytes, entry[i].n);
        seal_batch(batch, n);
        CHECK_IS(decode_copy(batch, n, NULL, &used, &e), entry[i].is_good ? DELTAFS_OK : DELTAFS_ERR_DAMAGED);
        put_u64(batch + 32, 4); /* the data log ends before the bytes do */
        seal_batch(batch, n);
        if (batch[BATCH_HEADER_SIZE] != 1 && batch[BATCH_HEADER_SIZE] != 2)
            CHECK_IS(decode_copy(batch, n, NULL, &used, &e), DELTAFS_ERR_DAMAGED);
    }
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

static int read_log(const char *path, uint32_t session, uint32_t writer, int is_closed, uint64_t *from, size_t *n)
{
    struct io io = io_default();
    struct buffer got = {0};
    struct error e;
    int is_last = 0;

    *from = *n = 0;
    int status = extent_log_read(&io, path, session, writer, uuid, is_closed, from, &is_last, &got, n, &e);
    CHECK(status == DELTAFS_OK || (*from == 0 && *n == 0));
    buffer_fini(&got);
    return status;
}

/* Every cut and every spoilt byte of a log's file, while its session is open and when it is closed. */
static void test_spoilt_logs(void **state)
{
    struct rng r = rng_init(66);
    struct buffer out = {0};
    size_t n, got, first = make_batches(&r, &out, &n);
    uint64_t from;
    uint8_t file[LOG_HEADER_SIZE + 1000];
    const char *path = unit_path("spoilt");

    (void)state;
    CHECK(n <= 1000);
    log_put_header(file, LOG_KIND_EXTENTS, 4, uuid);
    memcpy(file + LOG_HEADER_SIZE, out.bytes, n);
    n += LOG_HEADER_SIZE;
    first += LOG_HEADER_SIZE;
    unit_save(path, file, n);
    CHECK_IS(read_log(path, 3, 4, 1, &from, &got), DELTAFS_OK);
    CHECK(from == n && got == n - LOG_HEADER_SIZE);
    CHECK_IS(read_log(path, 2, 4, 1, &from, &got), DELTAFS_ERR_DAMAGED);
    CHECK_IS(read_log(path, 3, 5, 1, &from, &got), DELTAFS_ERR_DAMAGED);
    for (size_t cut = 0; cut < n; cut++) {
        unit_save(path, file, cut);
        CHECK_IS(read_log(path, 3, 4, 1, &from, &got), DELTAFS_ERR_DAMAGED);
        CHECK_IS(read_log(path, 3, 4, 0, &from, &got), DELTAFS_OK);
        CHECK_IS(from, cut >= first ? first : cut >= LOG_HEADER_SIZE ? LOG_HEADER_SIZE : 0);
        CHECK_IS(got, cut >= first ? first - LOG_HEADER_SIZE : 0);
    }
    for (size_t i = 0; i < n; i++) {
        file[i] ^= (uint8_t)(1u << rng_below(&r, 8));
        unit_save(path, file, n);
        CHECK_IS(read_log(path, 3, 4, (int)rng_below(&r, 2), &from, &got), DELTAFS_ERR_DAMAGED);
        memcpy(file + LOG_HEADER_SIZE, out.bytes, n - LOG_HEADER_SIZE);
        log_put_header(file, LOG_KIND_EXTENTS, 4, uuid);
    }
    buffer_fini(&out);
}

/* More than what is read at once, in batches shorter and longer than that. */
static void test_long_log(void **state)
{
    const char *path = unit_path("long");
    struct io io = io_default();
    struct extent_log log;
    struct history h = {.count = 0};
    struct buffer all = {0}, got = {0};
    struct rng r = rng_init(67);
    uint64_t from = 0;
    size_t n = 0, read = 0;
    int is_last = 0;
    struct error e;

    (void)state;
    CHECK_IS(extent_log_create(&log, &io, path, 1, uuid, &e), DELTAFS_OK);
    for (int i = 0; i < 60; i++) {
        size_t before = n;
        for (uint64_t k = i == 30 ? 100000 : rng_below(&r, 3000); k > 0; k--)
            write_some(&h, rng_next(&r) >> 2, 10);
        CHECK_IS(extent_list_encode(&h.list, log_seed(uuid), 1, 1, 1, h.position, i == 59, &all, &n, &e), DELTAFS_OK);
        extent_list_clear(&h.list);
        CHECK_IS(extent_log_append(&log, all.bytes + before, n - before, 0, &e), DELTAFS_OK);
        if (rng_below(&r, 10) == 0)
            CHECK_IS(extent_log_read(&io, path, 1, 1, uuid, 0, &from, &is_last, &got, &read, &e), DELTAFS_OK);
    }
    CHECK_IS(extent_log_close(&log, &e), DELTAFS_OK);
    CHECK_IS(extent_log_read(&io, path, 1, 1, uuid, 1, &from, &is_last, &got, &read, &e), DELTAFS_OK);
    CHECK_IS(read, n);
    CHECK(memcmp(got.bytes, all.bytes, n) == 0);
    /* Nothing new; and a log that became shorter. */
    CHECK_IS(extent_log_read(&io, path, 1, 1, uuid, 1, &from, &is_last, &got, &read, &e), DELTAFS_OK);
    CHECK_IS(read, n);
    from++;
    CHECK_IS(extent_log_read(&io, path, 1, 1, uuid, 1, &from, &is_last, &got, &read, &e), DELTAFS_ERR_DAMAGED);
    buffer_fini(&all);
    buffer_fini(&got);
    history_fini(&h);
}

/* A file system that shows late how long a file is that another host has closed. */
static struct {
    uint64_t size;
} late;

static int late_size(void *ctx, int fd, uint64_t *out)
{
    if (unit_late.left == 0)
        return io_default().ops->size(ctx, fd, out);
    *out = late.size;
    return 0;
}

/* The line that closes a session may be seen before its logs are: what they lack is waited for, and neither damage nor,
 * to a reader that forgives, the end. But not in file after file. */
static void test_late(void **state)
{
    const char *path = unit_path("late");
    struct io_ops ops = *io_default().ops;
    struct io io = {.ops = &ops, .ctx = io_default().ctx};
    struct extent_log log;
    struct history h = {.count = 0};
    struct buffer all = {0}, got = {0};
    size_t n = 0, first = 0, read = 0;
    uint64_t from = 0;
    int is_last = 0;
    struct error e;

    (void)state;
    ops.catch_up = unit_late_catch_up;
    unit_late.is_late = 1;
    ops.size = late_size;
    CHECK_IS(extent_log_create(&log, &io, path, 1, uuid, &e), DELTAFS_OK);
    for (int i = 0; i < 2; i++) {
        first = n;
        write_some(&h, (uint64_t)i * 1000, 10);
        CHECK_IS(extent_list_encode(&h.list, log_seed(uuid), 1, 1, 1, h.position, i == 1, &all, &n, &e), DELTAFS_OK);
        extent_list_clear(&h.list);
        CHECK_IS(extent_log_append(&log, all.bytes + first, n - first, 0, &e), DELTAFS_OK);
    }
    CHECK_IS(extent_log_close(&log, &e), DELTAFS_OK);

    late.size = LOG_HEADER_SIZE + first;
    unit_late.left = 5;
    CHECK_IS(extent_log_read(&io, path, 1, 1, uuid, 1, &from, &is_last, &got, &read, &e), DELTAFS_OK);
    CHECK_IS(read, n);
    CHECK(memcmp(got.bytes, all.bytes, n) == 0 && is_last && unit_late.left == 0);

    from = read = 0;
    is_last = 0;
    unit_late.left = 1000;
    unit_late.asked = 0;
    io.waited = 1000;
    CHECK_IS(extent_log_read(&io, path, 1, 1, uuid, 1, &from, &is_last, &got, &read, &e), DELTAFS_ERR_DAMAGED);
    CHECK(strstr(e.text, "the last batch is missing") && unit_late.asked <= 1 && read == 0);
    buffer_fini(&all);
    buffer_fini(&got);
    history_fini(&h);
}

/* An append that failed leaves nothing behind that a later, shorter one does not take away. */
static void test_failed_append(void **state)
{
    const char *path = unit_path("failed");
    struct extent_log log;
    struct buffer batch = {0};
    struct error e;
    size_t n, got, first, fails = 0;
    uint64_t from;
    struct rng r = rng_init(68);

    (void)state;
    first = make_batches(&r, &batch, &n);
    unit_io_begin();
    struct io io = io_default();
    CHECK_IS(extent_log_create(&log, &io, path, 4, uuid, &e), DELTAFS_OK);
    for (int round = 0; round < 30; round++) {
        int is_sync = (int)rng_below(&r, 2);
        uint64_t end = log.end;
        unit_io_fail(rng_below(&r, 4) ? OP_WRITE : OP_TRUNCATE, "failed", 0, 1, EIO);
        if (extent_log_append(&log, batch.bytes, rng_below(&r, 2) ? n : first, is_sync, &e) != DELTAFS_OK) {
            fails++;
            CHECK_IS(e.status, DELTAFS_ERR_IO);
            CHECK_IS(log.end, end);
        }
    }
    CHECK(fails > 5);
    unit_io_fail(OP_WRITE, "failed", 0, 0, 0);
    CHECK_IS(extent_log_append(&log, batch.bytes, n, 1, &e), DELTAFS_OK);
    uint64_t end = log.end;
    CHECK_IS(extent_log_close(&log, &e), DELTAFS_OK);
    unit_io_end();
    CHECK_IS(read_log(path, 3, 4, 1, &from, &got), DELTAFS_OK);
    CHECK_IS(from, end);
    buffer_fini(&batch);
}

/* What was appended without a sync is synced by the next call that is to, even if that has nothing to append; and when
 * a sync has failed nobody is told that a later one went well. */
static void test_failed_sync(void **state)
{
    struct extent_log log;
    struct buffer batch = {0};
    struct error e;
    size_t n;
    struct rng r = rng_init(69);

    (void)state;
    make_batches(&r, &batch, &n);
    unit_io_begin();
    struct io io = io_default();
    CHECK_IS(extent_log_create(&log, &io, unit_path("syncs"), 4, uuid, &e), DELTAFS_OK);
    CHECK_IS(extent_log_append(&log, batch.bytes, n, 0, &e), DELTAFS_OK);
    CHECK_IS(unit_io_count(OP_SYNC), 0);
    CHECK_IS(extent_log_append(&log, NULL, 0, 1, &e), DELTAFS_OK);
    CHECK_IS(unit_io_count(OP_SYNC), 1);
    CHECK_IS(extent_log_append(&log, NULL, 0, 1, &e), DELTAFS_OK);
    CHECK_IS(unit_io_count(OP_SYNC), 1);
    unit_io_fail(OP_SYNC, "syncs", 0, 1, EIO);
    CHECK_IS(extent_log_append(&log, batch.bytes, n, 1, &e), DELTAFS_ERR_IO);
    CHECK_IS(extent_log_append(&log, NULL, 0, 1, &e), DELTAFS_ERR_IO);
    CHECK_IS(extent_log_append(&log, batch.bytes, n, 0, &e), DELTAFS_ERR_IO);
    CHECK_IS(extent_log_close(&log, &e), DELTAFS_OK);
    unit_io_end();
    buffer_fini(&batch);
}

/* What a crash leaves of batches that were not synced is no damage as long as the session is not closed: any sector of
 * them may be zeros. Any other byte that is wrong is. */
static void test_lost_sectors(void **state)
{
    struct extent_log log;
    struct buffer batch = {0};
    struct error e;
    struct io io = io_default();
    size_t n, first, got, size;
    uint64_t from;
    struct rng r = rng_init(70);
    const char *path = unit_path("sectors");

    (void)state;
    first = make_batches(&r, &batch, &n);
    CHECK_IS(extent_log_create(&log, &io, path, 4, uuid, &e), DELTAFS_OK);
    CHECK_IS(extent_log_append(&log, batch.bytes, first, 0, &e), DELTAFS_OK);
    for (int i = 0; i < 40; i++)
        CHECK_IS(extent_log_append(&log, batch.bytes, n, 0, &e), DELTAFS_OK);
    CHECK_IS(extent_log_close(&log, &e), DELTAFS_OK);
    uint8_t *bytes = unit_load(path, &size);
    CHECK(size > 4096);
    for (size_t at = 0; at < size; at += 512) {
        uint8_t *torn = malloc(size);
        memcpy(torn, bytes, size);
        memset(torn + at, 0, size - at < 512 ? size - at : 512);
        unit_save(path, torn, size);
        CHECK_IS(read_log(path, 3, 4, 0, &from, &got), DELTAFS_OK);
        CHECK(from <= at);
        CHECK(at < 512 ? from == 0 : from + n + first > at);
        CHECK_IS(read_log(path, 3, 4, 1, &from, &got), DELTAFS_ERR_DAMAGED);
        memcpy(torn, bytes, size);
        torn[at + rng_below(&r, size - at < 512 ? size - at : 512)] ^= (uint8_t)(1 + rng_below(&r, 255));
        unit_save(path, torn, size);
        CHECK_IS(read_log(path, 3, 4, 0, &from, &got), DELTAFS_ERR_DAMAGED);
        free(torn);
    }
    free(bytes);
    buffer_fini(&batch);
}

/* A batch whose last byte is a zero and the first one of a sector; another one follows. */
static size_t make_reaching(struct buffer *out, size_t *n)
{
    struct rng r = rng_init(71);
    size_t first = 0;
    struct error e;

    for (size_t pieces = 100; first == 0 || (LOG_HEADER_SIZE + first) % FORMAT_SECTOR != 1; pieces++) {
        struct extent_list list = {0};
        uint64_t offset = 0;
        for (size_t i = 0; i < pieces; i++) {
            offset += 10 + rng_below(&r, 10000);
            CHECK_IS(extent_list_add(&list, offset, 5, 5 * i, &e), DELTAFS_OK);
        }
        CHECK_IS(extent_list_mark(&list, EXTENT_EXTEND, offset + 5, 5 * pieces, &e), DELTAFS_OK);
        *n = 0;
        CHECK_IS(extent_list_encode(&list, log_seed(uuid), 3, 4, 1, 5 * pieces, 0, out, n, &e), DELTAFS_OK);
        first = *n;
        CHECK_IS(extent_list_encode(&list, log_seed(uuid), 3, 4, 2, 5 * pieces, 0, out, n, &e), DELTAFS_OK);
        extent_list_fini(&list);
    }
    CHECK_IS(out->bytes[first - 1], 0);
    return first;
}

/* A damaged batch that happens to have zeros where it reaches into another sector is damaged: what else stands there
 * says that the sector was written. At the file's end there is nothing else. */
static void test_last_bytes(void **state)
{
    const char *path = unit_path("last_bytes");
    struct extent_log log;
    struct io io = io_default();
    struct buffer batch = {0};
    struct error e;
    size_t n, size, got, first = make_reaching(&batch, &n), sector = LOG_HEADER_SIZE + first - 1;
    uint64_t from;

    (void)state;
    CHECK_IS(extent_log_create(&log, &io, path, 4, uuid, &e), DELTAFS_OK);
    CHECK_IS(extent_log_append(&log, batch.bytes, n, 0, &e), DELTAFS_OK);
    CHECK_IS(extent_log_close(&log, &e), DELTAFS_OK);
    uint8_t *bytes = unit_load(path, &size);
    for (size_t at = LOG_HEADER_SIZE; at < sector; at += 7) {
        bytes[at] ^= 0x40;
        unit_save(path, bytes, size);
        CHECK_IS(read_log(path, 3, 4, 0, &from, &got), DELTAFS_ERR_DAMAGED);
        bytes[at] ^= 0x40;
    }
    bytes[LOG_HEADER_SIZE + 50] ^= 1;
    unit_save(path, bytes, sector + 1);
    CHECK_IS(read_log(path, 3, 4, 0, &from, &got), DELTAFS_OK);
    CHECK_IS(from, LOG_HEADER_SIZE);
    memset(bytes + sector, 0, size - sector < FORMAT_SECTOR ? size - sector : FORMAT_SECTOR);
    unit_save(path, bytes, size);
    CHECK_IS(read_log(path, 3, 4, 0, &from, &got), DELTAFS_OK);
    CHECK_IS(from, LOG_HEADER_SIZE);
    free(bytes);
    buffer_fini(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_random_writes),
        cmocka_unit_test(test_random_lists),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_long_list),
        cmocka_unit_test(test_spoilt_batches),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_hand_made),
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_spoilt_logs),
        cmocka_unit_test(test_long_log),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_failed_append),
        cmocka_unit_test(test_failed_sync),
        cmocka_unit_test(test_lost_sectors),
        cmocka_unit_test(test_last_bytes),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
