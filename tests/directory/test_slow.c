/* Questions to slow storage: the leaves of all epochs are begun at once, also in a process that has only opened the
 * directory. */
#include <unistd.h>
#include "fake_io.h"
#include "unit_help.h"

#define EPOCHS 5

static struct {
    struct fake_io fake;
    unsigned read_us, advised;
} storage;

static ssize_t storage_do(struct fake_call *c)
{
    if (c->op == FAKE_ADVISE)
        storage.advised++;
    if (c->op == FAKE_READ)
        usleep(storage.read_us);
    return fake_do(c);
}

static void test_first_question(void **state)
{
    const char *path = unit_path("slow");
    struct deltafs_records *records;

    (void)state;
    fake_io_begin(&storage.fake, storage_do);
    fake_io_has_all(&storage.fake);
    deltafs_dir *d = unit_create(path, unit_options(NULL, NULL));
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        for (uint64_t key = 0; key < 10; key++)
            CHECK_CALL(d, deltafs_append(d, key, "value", 5), DELTAFS_OK);
        CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    storage.read_us = 1000;
    d = unit_open(path);
    CHECK_CALL(d, deltafs_get(d, 3, NULL, &records), DELTAFS_OK);
    CHECK_IS(records->count, EPOCHS);
    CHECK_IS(storage.advised, EPOCHS); /* a leaf of each, the first one too; the blocks are near, and one read */
    deltafs_records_destroy(records);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(fake_io_end(&storage.fake), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_first_question)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
