/* Extents: lists against a plain list of what was written, batches there and back, and every way to spoil them. */
#include "base/coding.h"
#include "base/crc32c.h"
#include "io/log.h"
#include "logical/format/logical_format.h"
#include "unit_extents.h"

/* ---- The oracle: each write by itself ---- */

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

/* A batch of the greatest length is read again; a list that is longer is an error. */
static void test_long_list(void **state)
{
    struct extent_list l = {0};
    struct buffer out = {0};
    struct error e;
    size_t n = 0, used, count = BATCH_ENTRIES_MAX;
    int is_last = 0;

    (void)state;
    for (uint64_t i = 0; i < count; i++)
        CHECK_IS(extent_list_add(&l, 7 * i * i, 3, 3 * i, &e), DELTAFS_OK);
    CHECK_IS(extent_list_encode(&l, 0, 0, 0, 0, EXTENT_MAX, 1, &out, &n, &e), DELTAFS_OK);
    CHECK_IS(l.count, count);
    CHECK_IS(get_u32(out.bytes + 8), n);
    CHECK_IS(get_u32(out.bytes + 20), count);
    CHECK_IS(extent_batches_decode(out.bytes, n, 0, "log", 0, NULL, NULL, &used, &is_last, &e), DELTAFS_OK);
    CHECK(used == n && is_last);
    CHECK_IS(extent_list_add(&l, 7 * count * count, 3, 3 * count, &e), DELTAFS_OK);
    CHECK_IS(extent_list_encode(&l, 0, 0, 0, 0, EXTENT_MAX, 1, &out, &n, &e), DELTAFS_ERR_INVALID);
    CHECK_IS(n, used);
    buffer_fini(&out);
    extent_list_fini(&l);
}

/* ---- Damage ---- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),       cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_random_writes),  cmocka_unit_test(test_random_lists),
        cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_memory),      cmocka_unit_test(test_long_list),
        cmocka_unit_test(test_spoilt_batches), cmocka_unit_test(test_forged),
        cmocka_unit_test(test_hand_made),      cmocka_unit_test(test_page),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
