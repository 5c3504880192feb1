/* Logs of extents: there and back, cut and spoilt everywhere, and when storage fails. */
#include <errno.h>
#include "io/log.h"
#include "logical/format/logical_format.h"
#include "unit_extents.h"
#include "unit_io.h"

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

static ssize_t cached_do(struct fake_call *c)
{
    if (c->op == FAKE_REFRESH)
        return unit_cached_refresh();
    if (c->op != FAKE_ATTRIBUTES || unit_cached.left == 0)
        return fake_do(c);
    *c->attributes = (struct io_attributes){.size = late.size, .is_regular = 1};
    return 0;
}

/* The line that closes a session may be seen before its logs are: what they lack is waited for, and neither damage nor,
 * to a reader that forgives, the end. But not in file after file. */
static void test_client_cached(void **state)
{
    const char *path = unit_path("late");
    static struct fake_io fake;
    struct io io = {.ops = &fake.ops, .ctx = &fake};
    struct extent_log log;
    struct history h = {.count = 0};
    struct buffer all = {0}, got = {0};
    size_t n = 0, first = 0, read = 0;
    uint64_t from = 0;
    int is_last = 0;
    struct error e;

    (void)state;
    fake_io_init(&fake, cached_do);
    fake_io_has_all(&fake);
    unit_cached.is_client_cached = 1;
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
    unit_cached.left = 5;
    CHECK_IS(extent_log_read(&io, path, 1, 1, uuid, 1, &from, &is_last, &got, &read, &e), DELTAFS_OK);
    CHECK_IS(read, n);
    CHECK(memcmp(got.bytes, all.bytes, n) == 0 && is_last && unit_cached.left == 0);

    from = read = 0;
    is_last = 0;
    unit_cached.left = 1000;
    unit_cached.asked = 0;
    io.vain_waits = 1000;
    CHECK_IS(extent_log_read(&io, path, 1, 1, uuid, 1, &from, &is_last, &got, &read, &e), DELTAFS_ERR_DAMAGED);
    CHECK(strstr(e.text, "the last batch is missing") && unit_cached.asked <= 1 && read == 0);
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
        cmocka_unit_test(test_log),           cmocka_unit_test(test_spoilt_logs),   cmocka_unit_test(test_long_log),
        cmocka_unit_test(test_client_cached), cmocka_unit_test(test_failed_append), cmocka_unit_test(test_failed_sync),
        cmocka_unit_test(test_lost_sectors),  cmocka_unit_test(test_last_bytes),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
