/* A file system that shows late what another host has written (GlusterFS, where this was found, and NFS): a host that
 * has read a file knows its new size, and still has what stood there before, or nothing, instead of its new bytes. What
 * a reader takes for damage is looked at again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "unit_help.h"
#include "unit_io.h"

#define KEYS  40000u
#define KNOWN 4096u /* bytes of a file that are seen from the start */

static int is_short;
static const char *cached_name; /* files that are seen late have it in their names */

/* Bytes behind the known ones are zeros until this host has caught up; or there are none. */
static ssize_t cached_do(struct fake_call *c)
{
    if (c->op == FAKE_REFRESH)
        return fcntl(c->fd, F_GETFD) < 0 ? -EBADF : unit_cached_refresh();
    ssize_t rc = fake_do(c);
    if (unit_cached.left == 0 || (c->op != FAKE_READ && c->op != FAKE_ATTRIBUTES) || !strstr(c->path, cached_name))
        return rc;
    size_t known = c->offset < KNOWN ? (size_t)(KNOWN - c->offset) : 0;
    if (c->op == FAKE_READ && rc > 0 && known < (size_t)rc)
        memset((uint8_t *)c->to + known, 0, (size_t)rc - known);
    if (c->op == FAKE_ATTRIBUTES && rc == 0 && is_short && c->attributes->size > KNOWN)
        c->attributes->size = KNOWN;
    return rc;
}

static void value_of(uint64_t key, uint64_t epoch, uint8_t value[40])
{
    for (uint64_t i = 0; i < 40; i++)
        value[i] = (uint8_t)(key * 31 + epoch * 7 + i * i);
}

static deltafs_options *cached_options(const char *place)
{
    return unit_options("layout", place, "value_size", "40", "memory", "16M", NULL);
}

/* Three epochs, of which the directory is closed or not (as one whose writer still goes on). */
static deltafs_dir *cached_write(const char *path, deltafs_options *o)
{
    uint8_t value[40];
    deltafs_dir *d = unit_create(path, o);

    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        for (uint64_t key = 0; key < KEYS; key++) {
            value_of(key, epoch, value);
            CHECK_IS(deltafs_append(d, key, value, sizeof value), DELTAFS_OK);
        }
        CHECK_IS(deltafs_epoch_end(d, epoch), DELTAFS_OK);
    }
    return d;
}

static void cached_sound(int status, const char *message, void *arg)
{
    (void)arg;
    if (status < 0)
        fail_msg("%s", message);
}

/* From here on, until this host has caught up `left` times. */
static void cached_begin(const char *name, int left)
{
    cached_name = name;
    unit_cached.left = left;
}

static void cached_get(deltafs_dir *d, uint64_t key)
{
    deltafs_records *records = NULL;
    uint8_t value[40];

    CHECK_CALL(d, deltafs_get(d, key, NULL, &records), DELTAFS_OK);
    CHECK_IS(records->count, 3);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        value_of(key, epoch, value);
        CHECK_IS(records->record[epoch].size, sizeof value);
        CHECK(memcmp(records->record[epoch].value, value, sizeof value) == 0);
    }
    deltafs_records_destroy(records);
    CHECK_IS(unit_cached.left, 0);
}

static int cached_count(const struct deltafs_record *record, void *arg)
{
    uint8_t value[40];

    value_of(record->key, record->label, value);
    CHECK(memcmp(record->value, value, sizeof value) == 0);
    ++*(uint64_t *)arg;
    return 0;
}

static void cached_scan(deltafs_dir *d)
{
    uint64_t n = 0;

    CHECK_CALL(d, deltafs_scan(d, NULL, cached_count, &n, NULL), DELTAFS_OK);
    CHECK_IS(n, 3 * KEYS);
    CHECK_IS(unit_cached.left, 0);
}

static void cached_damage(int status, const char *message, void *arg)
{
    (void)arg;
    fail_msg("damage %d: %s", status, message);
}

static void cached_verify(deltafs_dir *d)
{
    struct deltafs_verify_counts stat = {.struct_size = sizeof stat};

    CHECK_CALL(d, deltafs_verify(d, cached_damage, NULL, &stat), DELTAFS_OK);
    CHECK_IS(stat.damages, 0);
    CHECK_IS(unit_cached.left, 0);
}

/* Every part that is read of a directory, each at first as it was before. */
static void cached_read(const char *path, const char *data)
{
    deltafs_dir *d = unit_open(path);

    is_short = 1;
    cached_begin(data, 3);
    cached_get(d, KEYS - 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    is_short = 0;
    d = unit_open(path);
    cached_begin(".index", 3); /* where its epochs are */
    cached_get(d, 7);
    cached_begin(".index", 3); /* leaves */
    cached_get(d, KEYS / 2);
    cached_begin(data, 3);
    cached_get(d, KEYS - 7);
    cached_begin(".index", 3);
    cached_scan(d);
    cached_begin(data, 3);
    cached_scan(d);
    cached_begin(".index", 3);
    cached_verify(d);
    cached_begin(data, 3);
    cached_verify(d);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void test_directory(void **state)
{
    static const struct {
        const char *place, *data;
    } cases[] = {{"partitioned", ".data"}, {"local", ".values"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = unit_path("%s", cases[i].place);
        deltafs_dir *d = cached_write(path, cached_options(cases[i].place));
        cached_read(path, cases[i].data);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        cached_read(path, cases[i].data);

        /* Another host has appended to it, and this one goes on. */
        deltafs_options *o = unit_options("memory", "16M", NULL);
        cached_begin(".index", 3);
        CHECK_IS(deltafs_reopen(path, o, &d), DELTAFS_OK);
        CHECK_IS(unit_cached.left, 0);
        deltafs_options_destroy(o);
        CHECK_IS(deltafs_append(d, 1, "0123456789012345678901234567890123456789", 40), DELTAFS_OK);
        CHECK_IS(deltafs_epoch_end(d, 3), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
}

/* Of more partitions than a reader keeps open, each read opens its file again. */
static void test_many_partitions(void **state)
{
    const char *path = unit_path("many");
    const struct deltafs_record *record;
    deltafs_iter *iter;
    uint64_t n = 0;

    (void)state;
    deltafs_dir *d = cached_write(path, unit_options("partitions", "40", "value_size", "40", "memory", "16M", NULL));
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    CHECK_CALL(d, deltafs_iter_open(d, 0, UINT64_MAX, NULL, &iter), DELTAFS_OK);
    cached_begin(".data", 3);
    for (;;) {
        CHECK_CALL(d, deltafs_iter_next(iter, &record), DELTAFS_OK);
        if (!record)
            break;
        cached_count(record, &n);
    }
    CHECK_IS(n, 3 * KEYS);
    CHECK_IS(unit_cached.left, 0);
    CHECK_IS(deltafs_iter_close(iter), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* Nothing is waited for in a directory that is sound, closed or not. */
static void test_sound(void **state)
{
    const struct deltafs_repair_options wish = {.struct_size = sizeof wish, .dry_run = 1};
    const char *path = unit_path("sound");
    deltafs_dir *d = cached_write(path, cached_options("partitioned"));

    (void)state;
    cached_begin("", 0);
    unit_cached.asked = 0;
    for (int is_closed = 0; is_closed < 2; is_closed++) {
        deltafs_dir *reader = unit_open(path);
        cached_get(reader, 7);
        cached_scan(reader);
        cached_verify(reader);
        CHECK_IS(deltafs_close(reader), DELTAFS_OK);
        CHECK_IS(deltafs_repair(path, &wish, cached_sound, NULL), DELTAFS_OK);
        CHECK_IS(unit_cached.asked, 0);
        if (!is_closed)
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
        unit_cached.asked = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_directory), cmocka_unit_test(test_many_partitions),
                                       cmocka_unit_test(test_sound)};
    static struct fake_io fake;

    unit_cached.is_client_cached = 1;
    fake_io_begin(&fake, cached_do);
    fake_io_has_all(&fake);
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
