/* The ends of what a directory takes: many epochs, none, one record, one key a million times, the largest values, the
 * least memory; of every kind of keys. */
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>
#include "fake_io.h"
#include "unit_help.h"

static int count_record(const struct deltafs_record *record, void *arg)
{
    (void)record;
    ++*(uint64_t *)arg;
    return 0;
}

/* Ten thousand epochs of little, some of nothing; all found, in order, with and without a close. */
static void test_many_epochs(void **state)
{
    enum { EPOCHS = 10000 };
    const char *path = unit_path("epochs"), *copy = unit_path("copy");
    deltafs_dir *d = unit_create(path, unit_options("partitions", "2", "value_size", "8", "memory", "8M", NULL));
    struct deltafs_memory_stat memory = {.struct_size = sizeof memory};
    struct deltafs_io_stat io = {.struct_size = sizeof io};

    (void)state;
    rng_init(251);
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        for (uint64_t key = 0; key < (epoch % 10 == 3 ? 0 : 3); key++) {
            uint64_t value = epoch * 10 + key;
            CHECK_CALL(d, deltafs_append(d, key, &value, 8), DELTAFS_OK);
        }
        CHECK_CALL(d, deltafs_epoch_end(d, 2 * epoch), DELTAFS_OK);
    }
    CHECK_CALL(d, deltafs_memory_stat(d, &memory), DELTAFS_OK);
    CHECK(memory.peak <= memory.limit);
    unit_copy(path, copy);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    for (int i = 0; i < 2; i++) {
        struct deltafs_verify_counts verified = {.struct_size = sizeof verified};
        uint64_t count = 0;
        d = unit_open(i ? copy : path);
        for (uint64_t key = 0; key < 4; key++) {
            deltafs_records *got = NULL;
            CHECK_CALL(d, deltafs_get(d, key, NULL, &got), key < 3 ? DELTAFS_OK : DELTAFS_ERR_NOT_FOUND);
            CHECK((got ? got->count : 0) == (key < 3 ? EPOCHS / 10 * 9 : 0));
            CHECK_CALL(d, deltafs_io_stat(d, &io), DELTAFS_OK);
            CHECK(i == 1 || key > 0 || io.reads <= 2 + 2 * EPOCHS);
            for (uint64_t epoch = 0, at = 0; got && epoch < EPOCHS; epoch++) {
                uint64_t value;
                if (epoch % 10 == 3)
                    continue;
                memcpy(&value, got->record[at].value, 8);
                CHECK(got->record[at++].label == 2 * epoch && value == epoch * 10 + key);
            }
            deltafs_records_destroy(got);
        }
        CHECK_CALL(d, deltafs_scan(d, NULL, count_record, &count, NULL), DELTAFS_OK);
        CHECK_IS(count, EPOCHS / 10 * 27);
        CHECK_CALL(d, deltafs_verify(d, NULL, NULL, &verified), DELTAFS_OK);
        CHECK_IS(verified.records, count);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
    unit_remove(path);
    unit_remove(copy);
}

/* A thousand partitions of one process that may have 64 descriptors: written, cancelled and reopened. */
static void test_few_descriptors(void **state)
{
    static const char *const threads[] = {"0", "3"};
    struct rng r = rng_init(256);
    struct rlimit all, few;

    (void)state;
    CHECK(getrlimit(RLIMIT_NOFILE, &all) == 0);
    few = (struct rlimit){64, all.rlim_max};
    for (int i = 0; i < 2; i++) {
        const char *path = unit_path("descriptors");
        struct model m = {0};
        CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
        deltafs_dir *d = unit_create(path, unit_options("partitions", "1000", "memory", "32M", "threads", threads[i],
                                                        "sync", i ? "none" : "commit", "value_size", "8", NULL));
        for (uint64_t epoch = 0; epoch < 4; epoch++) {
            for (int k = 0; k < 10000; k++)
                CHECK_CALL(d, model_append(&m, d, rng_below(&r, 5000), 8), DELTAFS_OK);
            if (epoch == 1)
                CHECK_CALL(d, deltafs_epoch_cancel(d, "enough"), DELTAFS_OK);
            CHECK_CALL(d, deltafs_epoch_end(d, epoch), epoch == 1 ? DELTAFS_ERR_CANCELLED : DELTAFS_OK);
            if (epoch == 1)
                model_discard(&m);
            else
                model_keep(&m, epoch);
            if (epoch == 2) {
                CHECK_IS(deltafs_close(d), DELTAFS_OK);
                CHECK_CALL(NULL, deltafs_reopen(path, NULL, &d), DELTAFS_OK);
            }
        }
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        CHECK(setrlimit(RLIMIT_NOFILE, &all) == 0);
        model_check_directory(&m, path, &r);
        unit_remove(path);
        model_fini(&m);
    }
}

/* The end of an index log needs memory for each epoch. Without, the epochs can be read, and a writer with more memory
 * closes the directory. */
static void test_close_needs_memory(void **state)
{
    enum { EPOCHS = 80000 };
    const char *path = unit_path("tail");
    deltafs_dir *d = unit_create(path, unit_options("value_size", "8", "memory", "8M", "sync", "none", NULL));
    deltafs_options *o = unit_options("memory", "32M", NULL);
    deltafs_records *got;

    (void)state;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        CHECK_CALL(d, deltafs_append(d, epoch % 3, &epoch, 8), DELTAFS_OK);
        CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_ERR_MEMORY);
    CHECK(strstr(deltafs_errmsg(NULL), ".index: the directory cannot be closed: "));
    CHECK(strstr(deltafs_errmsg(NULL), "reopen it with more memory"));
    for (int i = 0; i < 2; i++) {
        d = unit_open(path);
        CHECK_CALL(d, deltafs_get(d, 0, NULL, &got), DELTAFS_OK);
        CHECK_IS(got->count, (EPOCHS + 2) / 3);
        deltafs_records_destroy(got);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        CHECK_CALL(NULL, deltafs_reopen(path, o, &d), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
    deltafs_options_destroy(o);
    unit_remove(path);
}

/* A file system whose storage fails to take one write from the page cache. As Linux may do, it reports that to a sync
 * only while the file stays open. */
static struct {
    struct fake_io io;
    int opens, is_next, is_failed, is_reported;
} forgetful;

static ssize_t forgetful_do(struct fake_call *c)
{
    ssize_t rc = fake_do(c);

    if (!strstr(c->path, "/p00000010.data"))
        return rc;
    forgetful.opens += c->op == FAKE_OPEN ? rc >= 0 : c->op == FAKE_CLOSE ? -1 : 0;
    if (c->op == FAKE_WRITE) {
        forgetful.is_failed |= forgetful.is_next;
        forgetful.is_next = 0;
    }
    forgetful.is_failed &= forgetful.opens > 0;
    if (c->op != FAKE_SYNC || !forgetful.is_failed)
        return rc;
    forgetful.is_failed = 0;
    forgetful.is_reported = 1;
    return -EIO;
}

/* A write-back that fails while no descriptor is open must not pass for one that went well. */
static void test_write_back_error(void **state)
{
    static const char *const syncs[] = {"commit", "close"};
    struct rlimit all;

    (void)state;
    CHECK(getrlimit(RLIMIT_NOFILE, &all) == 0);
    for (int i = 0; i < 2; i++) {
        const char *path = unit_path("writeback");
        deltafs_dir *d = NULL;
        forgetful.is_failed = forgetful.is_reported = 0;
        fake_io_begin(&forgetful.io, forgetful_do);
        CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){24, all.rlim_max}) == 0);
        d = unit_create(path, unit_options("partitions", "32", "memory", "8M", "threads", "0", "sync", syncs[i],
                                           "value_size", "8", NULL));
        forgetful.is_next = 1;
        for (uint64_t key = 0; key < 1000; key++)
            CHECK_CALL(d, deltafs_append(d, key, &key, 8), DELTAFS_OK);
        int status = deltafs_epoch_end(d, 0);
        CHECK(deltafs_close(d) != DELTAFS_OK || status != DELTAFS_OK);
        CHECK(forgetful.is_reported);
        CHECK(setrlimit(RLIMIT_NOFILE, &all) == 0);
        CHECK_IS(fake_io_end(&forgetful.io), 0);
        unit_remove(path);
    }
}

/* A log that gets a second name while it is not open is not written to, and the message says why. */
static void test_second_name(void **state)
{
    const char *path = unit_path("second");
    struct rlimit all;
    deltafs_dir *d;

    (void)state;
    CHECK(getrlimit(RLIMIT_NOFILE, &all) == 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){24, all.rlim_max}) == 0);
    d = unit_create(path, unit_options("partitions", "32", "memory", "8M", "value_size", "8", NULL));
    CHECK(link(unit_path("second/10/p00000010.data"), unit_path("name")) == 0);
    for (uint64_t key = 0; key < 1000; key++)
        CHECK_CALL(d, deltafs_append(d, key, &key, 8), DELTAFS_OK);
    CHECK_IS(deltafs_epoch_end(d, 0), DELTAFS_ERR_IO);
    CHECK(strstr(deltafs_errmsg(d), "p00000010.data: has several names (hard links)"));
    deltafs_close(d);
    CHECK(setrlimit(RLIMIT_NOFILE, &all) == 0);
    unit_remove(path);
}

/* No epoch, an empty one, one with one record: of numbers and of bytes. */
static void test_few(void **state)
{
    static const char *const kinds[] = {"u64", "bytes"};
    struct rng r = rng_init(252);

    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (int epochs = 0; epochs < 4; epochs++) {
            const char *path = unit_path("few");
            struct model m = {.is_bytes = kind};
            struct deltafs_stat stat = {.struct_size = sizeof stat};
            deltafs_dir *d = unit_create(path, unit_options("keys", kinds[kind], "partitions", "3", NULL));
            for (int epoch = 0; epoch < epochs; epoch++) {
                if (epoch > 0 && kind == 0)
                    CHECK_CALL(d, model_append(&m, d, UINT64_MAX, (uint32_t)epoch - 1), DELTAFS_OK);
                else if (epoch > 0)
                    CHECK_CALL(d, model_append_bytes(&m, d, "", 1, (uint32_t)epoch - 1), DELTAFS_OK);
                CHECK_CALL(d, deltafs_epoch_end(d, (uint64_t)epoch), DELTAFS_OK);
                model_keep(&m, (uint64_t)epoch);
            }
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
            d = unit_open(path);
            CHECK(deltafs_stat(d, &stat) == DELTAFS_OK && stat.epochs == (uint64_t)epochs && stat.is_closed);
            model_check_all(&m, d, &r);
            model_check_scan(&m, d, NULL);
            model_check_facts(&m, d);
            if (kind)
                model_check_name(&m, d, "other", 5, NULL);
            else
                model_check_key(&m, d, 0, NULL);
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
            unit_remove(path);
            model_fini(&m);
        }
}

struct ordered {
    uint64_t next, others;
    const char *key;
};

static int check_next(const struct deltafs_record *record, void *arg)
{
    struct ordered *o = arg;
    uint64_t value;

    if (record->key_bytes ? memcmp(record->key_bytes, o->key, 3) != 0 : record->key != 1000) {
        o->others++;
        return 0;
    }
    memcpy(&value, record->value, 8);
    CHECK(value == o->next);
    o->next++;
    return 0;
}

/* One key a million times, among others, with so little memory that there are many runs. */
static void test_one_key(void **state)
{
    enum { OFTEN = 1000000, OTHERS = 1000 };
    static const struct {
        const char *keys, *memory;
    } cases[] = {{"u64", "8M"}, {"u64", "64M"}, {"bytes", "16M"}};

    (void)state;
    rng_init(253);
    for (int i = 0; i < 3; i++) {
        const char *path = unit_path("one");
        struct deltafs_memory_stat memory = {.struct_size = sizeof memory};
        struct deltafs_verify_counts verified = {.struct_size = sizeof verified};
        struct ordered o = {.key = "key"};
        deltafs_records *got = NULL;
        int is_bytes = strcmp(cases[i].keys, "bytes") == 0;
        deltafs_dir *d =
            unit_create(path, unit_options("keys", cases[i].keys, "memory", cases[i].memory, "value_size", "8", NULL));
        for (uint64_t k = 0; k < OFTEN; k++) {
            int status = is_bytes ? deltafs_append_bytes(d, "key", 3, &k, 8) : deltafs_append(d, 1000, &k, 8);
            CHECK_CALL(d, status, DELTAFS_OK);
            if (k % (OFTEN / OTHERS) != 0)
                continue;
            uint64_t other = k / (OFTEN / OTHERS) + 500;
            other += other >= 1000;
            CHECK_CALL(d, is_bytes ? deltafs_append_bytes(d, &other, 8, &k, 8) : deltafs_append(d, other, &k, 8),
                       DELTAFS_OK);
        }
        CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
        CHECK_CALL(d, deltafs_memory_stat(d, &memory), DELTAFS_OK);
        CHECK(memory.peak <= memory.limit);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        d = unit_open(path);
        CHECK_CALL(d, is_bytes ? deltafs_get_bytes(d, "key", 3, NULL, &got) : deltafs_get(d, 1000, NULL, &got),
                   DELTAFS_OK);
        CHECK_IS(got->count, OFTEN);
        for (uint64_t k = 0; k < OFTEN; k++)
            check_next(&got->record[k], &o);
        CHECK_IS(o.next, OFTEN);
        deltafs_records_destroy(got);
        o.next = 0;
        CHECK_CALL(d, deltafs_scan(d, NULL, check_next, &o, NULL), DELTAFS_OK);
        CHECK(o.next == OFTEN && o.others == OTHERS);
        CHECK_CALL(d, deltafs_verify(d, NULL, NULL, &verified), DELTAFS_OK);
        CHECK_IS(verified.records, OFTEN + OTHERS);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        unit_remove(path);
    }
}

/* Values from none to the largest, at random, mixed and of each size alone. */
static void test_values(void **state)
{
    static const char *const fixed[] = {"any", "0", "1", "1048575", "1048576", "any"};
    static char names[8][4] = {"a", "bb", "ccc", "d", "e", "f", "g", "h"};
    struct rng r = rng_init(254);

    (void)state;
    for (int i = 0; i < 6; i++) {
        const char *path = unit_path("values");
        int is_bytes = i == 5;
        struct model m = {.is_bytes = is_bytes};
        struct deltafs_memory_stat memory = {.struct_size = sizeof memory};
        deltafs_dir *d = unit_create(path, unit_options("memory", i % 2 ? "32M" : "16M", "value_size", fixed[i], "keys",
                                                        is_bytes ? "bytes" : "u64", NULL));
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            for (int k = 0; k < 40; k++) {
                uint32_t size = i == 0 || i == 5 ? (uint32_t)(rng_below(&r, (1 << 20) - 4) >> rng_below(&r, 21))
                                                 : (uint32_t)atoi(fixed[i]);
                const char *name = names[rng_below(&r, 8)];
                CHECK_CALL(d,
                           is_bytes ? model_append_bytes(&m, d, name, strlen(name), size)
                                    : model_append(&m, d, rng_below(&r, 8), size),
                           DELTAFS_OK);
            }
            CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
            model_keep(&m, epoch);
        }
        CHECK_CALL(d, deltafs_memory_stat(d, &memory), DELTAFS_OK);
        CHECK(memory.peak <= memory.limit);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        d = unit_open(path);
        model_check_all(&m, d, &r);
        model_check_scan(&m, d, NULL);
        model_check_facts(&m, d);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        unit_remove(path);
        model_fini(&m);
    }
}

/* The budget, with every kind of keys, size of values and number of threads: kept, and enough for the work. */
static void test_budget(void **state)
{
    static const char *const memories[] = {"8M", "32M"};
    static const char *const sizes[] = {"any", "0", "100"};
    static uint8_t value[200];
    struct rng r = rng_init(255);

    (void)state;
    for (unsigned i = 0; i < 2 * (KEYS_KINDS + 1) * 3; i++) {
        const char *path = unit_path("budget"), *size = sizes[i / 2 % 3];
        unsigned kind = i / 6;
        int is_bytes = kind == KEYS_KINDS;
        char threads[2] = {(char)('0' + i % 3), '\0'};
        struct deltafs_memory_stat stat = {.struct_size = sizeof stat};
        uint64_t n = i % 2 ? 100000 : 40000, count = 0;
        deltafs_dir *d =
            unit_create(path, unit_options("memory", memories[i % 2], "value_size", size, "keys",
                                           is_bytes ? "bytes" : "u64", "threads", threads, "commit",
                                           i % 5 ? "wait" : "async", "partitions", i % 4 ? "1" : "30", NULL));
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            for (uint64_t k = 0; k < n; k++) {
                uint64_t key = rng_key(&r, is_bytes ? KEYS_SPARSE : (enum key_kind)kind);
                size_t bytes = size[0] == 'a' ? rng_below(&r, 100) : (size_t)atoi(size);
                int status = is_bytes ? deltafs_append_bytes(d, &key, 1 + key % 8, value, bytes)
                                      : deltafs_append(d, key, value, bytes);
                CHECK_CALL(d, status, DELTAFS_OK);
            }
            CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
        }
        CHECK_CALL(d, deltafs_epoch_wait(d), DELTAFS_OK);
        CHECK_CALL(d, deltafs_memory_stat(d, &stat), DELTAFS_OK);
        CHECK(stat.limit == (uint64_t)atoi(memories[i % 2]) << 20 && stat.peak <= stat.limit);
        CHECK(stat.peak > stat.limit / 2); /* nor is it left idle */
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        d = unit_open(path);
        CHECK_CALL(d, deltafs_scan(d, NULL, count_record, &count, NULL), DELTAFS_OK);
        CHECK_IS(count, 2 * n);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        unit_remove(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_epochs),
        cmocka_unit_test(test_few_descriptors),
        cmocka_unit_test(test_close_needs_memory),
        cmocka_unit_test(test_write_back_error),
        cmocka_unit_test(test_second_name),
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_one_key),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_budget),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
