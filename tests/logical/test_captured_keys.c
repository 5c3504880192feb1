/* Keys that a writer has kept: whatever was written, in whatever order, each row of the file is handed out once with
 * the key that it has in the end, kept or read back; and what was kept is not read. */
#include <fcntl.h>
#include <string.h>
#include "base/options.h"
#include "fileindex/source_file.h"
#include "logical/logical.h"
#include "unit_help.h"

#define SIZE_MAX_BYTES 30000

struct stream {
    struct deltafs_column column;
    uint64_t skip;
    uint8_t bytes[SIZE_MAX_BYTES]; /* what the file is */
    uint64_t size;
    char path[300];
};

static struct stream model;

static void stream_name(const char *what, int number)
{
    static const char *base;

    if (!base)
        base = unit_path("file");
    snprintf(model.path, sizeof model.path, "%s-%s-%d", base, what, number);
}

static void stream_init(struct rng *r, int round)
{
    uint32_t before = (uint32_t)rng_below(r, 20), size = rng_below(r, 2) ? 8 : 4;

    memset(&model, 0, sizeof model);
    model.skip = rng_below(r, 3) ? 0 : rng_below(r, 200);
    model.column = (struct deltafs_column){.name = "id",
                                           .kind = 'u',
                                           .size = size,
                                           .stride = before + size + rng_below(r, 30),
                                           .offset = model.skip + before};
    stream_name("anyhow", round);
}

static deltafs_logical *stream_open(int flags)
{
    deltafs_logical *f;

    CHECK_IS(deltafs_logical_open(model.path, flags | O_CREAT, NULL, &f), DELTAFS_OK);
    return f;
}

static void stream_write(deltafs_logical *f, struct rng *r, uint64_t offset, uint64_t n)
{
    uint8_t bytes[SIZE_MAX_BYTES];

    n = offset + n < SIZE_MAX_BYTES ? n : SIZE_MAX_BYTES - offset;
    rng_fill(r, bytes, n);
    memcpy(model.bytes + offset, bytes, n);
    if (n > 0 && offset + n > model.size)
        model.size = offset + n;
    CHECK_IS(deltafs_logical_write(f, offset, bytes, n), DELTAFS_OK);
}

static void stream_truncate(deltafs_logical *f, uint64_t size)
{
    if (size < model.size)
        memset(model.bytes + size, 0, model.size - size);
    model.size = size;
    CHECK_IS(deltafs_logical_truncate(f, size), DELTAFS_OK);
}

/* Records, one behind the other or in strides; pieces of any size anywhere; now and then a truncation. */
static void stream_fill(deltafs_logical *f, struct rng *r, int is_wild)
{
    uint64_t stride = model.column.stride, at = model.skip;

    for (uint64_t i = 0, n = 1 + rng_below(r, 30); i < n; i++) {
        uint64_t rows = 1 + rng_below(r, 40);
        if (!is_wild || rng_below(r, 3) == 0) {
            stream_write(f, r, at, rows * stride);
            at += rows * stride * (1 + rng_below(r, 2));
            at = at < SIZE_MAX_BYTES ? at : model.skip;
        } else if (rng_below(r, 12) == 0) {
            stream_truncate(f, rng_below(r, SIZE_MAX_BYTES));
        } else {
            stream_write(f, r, rng_below(r, SIZE_MAX_BYTES), 1 + rng_below(r, 3 * stride));
        }
    }
}

struct seen {
    uint64_t rows;
    uint8_t times[SIZE_MAX_BYTES];
};

static int see(void *arg, uint64_t first, const uint64_t *key, size_t n, struct error *e)
{
    struct seen *seen = arg;

    (void)e;
    for (size_t i = 0; i < n; i++) {
        uint64_t want = 0;
        CHECK(first + i < seen->rows);
        memcpy(&want, model.bytes + model.column.offset + (first + i) * model.column.stride, model.column.size);
        CHECK(key[i] == want);
        seen->times[first + i]++;
    }
    return DELTAFS_OK;
}

static struct captured_keys *stream_keep(uint64_t limit)
{
    struct captured_keys *k;
    struct error e;

    CHECK_IS(captured_keys_create(&model.column, limit, &k, &e), DELTAFS_OK);
    return k;
}

static struct key_writer stream_writer(const deltafs_logical *f)
{
    struct key_writer w = {.session = f->session.number, .keys = f->captured};

    memcpy(w.uuid, f->container.uuid, sizeof w.uuid);
    return w;
}

/* Close, and take the keys of two shares: that of the writer, and one of a process of its group that wrote nothing.
 * Returns how often data was read. */
static uint64_t stream_check(deltafs_logical *f, uint64_t cut)
{
    struct key_writer w = stream_writer(f), idle = w;
    struct captured_keys *kept = f->captured;
    struct io io = io_default();
    struct deltafs_io_stat before = {.struct_size = sizeof before}, after = before;
    struct seen seen = {0};
    struct key_file file;
    struct error e;

    idle.writer = 1;
    idle.keys = NULL;
    f->captured = NULL;
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    seen.rows = model.size < model.skip ? 0 : (model.size - model.skip) / model.column.stride;
    cut = cut < seen.rows ? cut : seen.rows;
    CHECK_IS(key_file_open(&file, &io, model.path, 'f', NULL, NULL, &e), DELTAFS_OK);
    key_file_io_stat(&file, &before);
    CHECK_IS(key_column_scan_written(&file, &model.column, seen.rows, 0, cut, &w, model.path, see, &seen, &e),
             DELTAFS_OK);
    CHECK_IS(
        key_column_scan_written(&file, &model.column, seen.rows, cut, seen.rows, &idle, model.path, see, &seen, &e),
        DELTAFS_OK);
    key_file_io_stat(&file, &after);
    for (uint64_t i = 0; i < seen.rows; i++)
        CHECK(seen.times[i] == 1);
    key_file_close(&file);
    deltafs_private_captured_keys_destroy(kept);
    return after.reads - before.reads;
}

static void test_anyhow(void **state)
{
    struct rng r = rng_init(401);

    (void)state;
    for (int round = 0; round < 300; round++) {
        stream_init(&r, round);
        for (uint64_t i = rng_below(&r, 3); i > 0; i--) {
            deltafs_logical *earlier = stream_open(O_RDWR);
            stream_fill(earlier, &r, 1);
            CHECK_IS(deltafs_logical_close(earlier), DELTAFS_OK);
        }
        deltafs_logical *f = stream_open(rng_below(&r, 2) ? O_RDWR : O_WRONLY);
        /* Sometimes there is room for the first few only: of keys, or of runs. */
        f->captured = rng_below(&r, 4)
                          ? stream_keep(rng_below(&r, 3) ? UINT64_C(1) << 20 : 140000 * model.column.size / 4)
                          : NULL;
        stream_fill(f, &r, rng_below(&r, 4) != 0);
        stream_check(f, rng_below(&r, 1000));
    }
}

/* More keys than stand together in memory; none of them is read back. */
static void test_not_read(void **state)
{
    static const uint64_t pieces[] = {48, 4800, 12000};
    struct rng r = rng_init(402);

    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        memset(&model, 0, sizeof model);
        model.column = (struct deltafs_column){.name = "id", .kind = 'u', .size = 8, .stride = 48, .offset = 24};
        stream_name("not-read", (int)i);
        deltafs_logical *f = stream_open(O_WRONLY);
        f->captured = stream_keep(UINT64_C(1) << 20);
        for (uint64_t at = 0; at + pieces[i] <= 24000; at += pieces[i])
            stream_write(f, &r, at, pieces[i]);
        CHECK(stream_check(f, UINT64_MAX) == 0);
    }
}

static int count_keys(void *arg, uint64_t first, const uint64_t *key, size_t n, struct error *e)
{
    uint64_t *next = arg;

    (void)e;
    for (size_t i = 0; i < n; i++)
        CHECK(first + i == *next + i && key[i] == (*next + i) * 7);
    *next += n;
    return DELTAFS_OK;
}

/* Over many chunks of them, and up to a limit from which on they are read. */
static void test_many(void **state)
{
    enum { ROWS = 150000, RECORD = 16 };
    struct deltafs_column c = {.name = "id", .kind = 'u', .size = 8, .stride = RECORD, .offset = 8};
    uint8_t *bytes = calloc(ROWS, RECORD);
    struct error e;

    (void)state;
    model.column = c;
    for (uint64_t i = 0; i < ROWS; i++)
        memcpy(bytes + i * RECORD + 8, &(uint64_t){i * 7}, 8);
    for (int is_enough = 0; is_enough < 2; is_enough++) {
        struct key_file file;
        struct io io = io_default();
        struct deltafs_io_stat before = {.struct_size = sizeof before}, after = before;
        uint64_t next = 0;
        stream_name("many", is_enough);
        deltafs_logical *f = stream_open(O_WRONLY);
        struct captured_keys *kept = f->captured = stream_keep(is_enough ? 2 << 20 : 600000);
        CHECK_IS(deltafs_logical_write(f, 0, bytes, (size_t)ROWS * RECORD), DELTAFS_OK);
        CHECK(deltafs_private_captured_keys_missed(kept) == (is_enough ? 0 : ROWS - 65536));
        CHECK(deltafs_private_captured_keys_rows(kept, (uint64_t)ROWS * RECORD) == ROWS);
        const struct key_writer w = stream_writer(f);
        f->captured = NULL;
        CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
        CHECK_IS(key_file_open(&file, &io, model.path, 'f', NULL, NULL, &e), DELTAFS_OK);
        key_file_io_stat(&file, &before);
        CHECK_IS(key_column_scan_written(&file, &c, ROWS, 0, ROWS, &w, model.path, count_keys, &next, &e), DELTAFS_OK);
        key_file_io_stat(&file, &after);
        CHECK(next == ROWS);
        /* Two chunks of keys have room: 65,536 of 16 bytes are not read. */
        CHECK(after.bytes_read - before.bytes_read == 0
                  ? is_enough
                  : !is_enough && after.bytes_read - before.bytes_read < (ROWS - 65536) * RECORD + (64u << 10));
        key_file_close(&file);
        deltafs_private_captured_keys_destroy(kept);
    }
    free(bytes);
}

/* A key that cannot be is told with its place in the file. */
static void test_negative(void **state)
{
    struct deltafs_column c = {.name = "id", .kind = 'i', .size = 8, .stride = 16, .offset = 0};
    uint8_t bytes[160] = {0};
    struct io io = io_default();
    struct key_file file;
    struct error e;
    uint64_t next = 0;

    (void)state;
    bytes[5 * 16 + 7] = 0x80;
    model.column = c;
    stream_name("negative", 0);
    deltafs_logical *f = stream_open(O_WRONLY);
    struct captured_keys *kept = f->captured = stream_keep(1 << 20);
    CHECK_IS(deltafs_logical_write(f, 0, bytes, sizeof bytes), DELTAFS_OK);
    const struct key_writer w = stream_writer(f);
    f->captured = NULL;
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    CHECK_IS(key_file_open(&file, &io, model.path, 'f', NULL, NULL, &e), DELTAFS_OK);
    CHECK_IS(key_column_scan_written(&file, &c, 10, 0, 10, &w, model.path, count_keys, &next, &e), DELTAFS_ERR_SCHEMA);
    CHECK(strstr(e.text, "offset 80: the key is negative"));
    key_file_close(&file);
    deltafs_private_captured_keys_destroy(kept);
}

/* What has taken the file's place meanwhile has a session of the same number, and the like; or is no such file. */
static void test_replaced(void **state)
{
    struct rng r = rng_init(403);
    struct io io = io_default();
    struct key_file file;
    struct error e;

    (void)state;
    for (int is_plain = 0; is_plain < 2; is_plain++) {
        struct seen seen = {.rows = 100};
        memset(&model, 0, sizeof model);
        model.column = (struct deltafs_column){.name = "id", .kind = 'u', .size = 8, .stride = 48, .offset = 24};
        stream_name("replaced", is_plain);
        deltafs_logical *f = stream_open(O_WRONLY);
        f->captured = stream_keep(UINT64_C(1) << 20);
        stream_write(f, &r, 0, 4800);
        const struct key_writer w = stream_writer(f);
        f->captured = NULL;
        CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
        unit_remove(model.path);
        f = is_plain ? NULL : stream_open(O_WRONLY);
        if (f)
            stream_write(f, &r, 0, 4800);
        else
            unit_save(model.path, model.bytes, 4800);
        CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
        CHECK_IS(key_file_open(&file, &io, model.path, is_plain ? '-' : 'f', NULL, NULL, &e), DELTAFS_OK);
        CHECK_IS(key_column_scan_written(&file, &model.column, 100, 0, 100, &w, model.path, see, &seen, &e),
                 DELTAFS_OK);
        for (uint64_t i = 0; i < seen.rows; i++)
            CHECK(seen.times[i] == 1);
        key_file_close(&file);
        deltafs_private_captured_keys_destroy((struct captured_keys *)(uintptr_t)w.keys);
    }
}

/* What is for keys is not the index's: with the least memory as many pieces fit as without them. */
static void test_memory(void **state)
{
    enum { LEAST = 8 << 20, PIECES = 6000 };
    const struct collective group = {.ranks = 1, .ctx = (struct rank_group *)(void *)&model};
    static const int flags[] = {O_RDWR, O_WRONLY};
    struct rng r = rng_init(404);
    uint8_t bytes[48];
    deltafs_options *o;
    struct error e = {0};

    (void)state;
    CHECK_IS(deltafs_options_create(&o), DELTAFS_OK);
    CHECK_IS(deltafs_options_set(o, "memory", "8M"), DELTAFS_OK);
    CHECK_IS(deltafs_options_set(o, "schema", "x:V40,id:u8"), DELTAFS_OK);
    CHECK_IS(deltafs_options_set(o, "key", "id"), DELTAFS_OK);
    for (int i = 0; i < 2; i++) {
        deltafs_logical *f;
        stream_name("memory", i);
        CHECK_IS(deltafs_private_logical_open_group(model.path, flags[i] | O_CREAT, o, &group, &f, &e), DELTAFS_OK);
        deltafs_private_logical_capture_keys(f, o);
        CHECK(f->captured);
        CHECK(f->memory.limit + f->cache.bytes + f->capture_limit <= LEAST);
        rng_fill(&r, bytes, sizeof bytes);
        for (uint64_t n = 0; n < PIECES; n++)
            CHECK_IS(deltafs_logical_write(f, rng_below(&r, UINT64_C(1) << 40), bytes, sizeof bytes), DELTAFS_OK);
        CHECK_IS(deltafs_logical_sync(f), DELTAFS_OK);
        CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    }
    deltafs_options_destroy(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_anyhow),   cmocka_unit_test(test_not_read),
                                       cmocka_unit_test(test_many),     cmocka_unit_test(test_negative),
                                       cmocka_unit_test(test_replaced), cmocka_unit_test(test_memory)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) != 0;
}
