/* The flusher: what was handed over is written, and an error of a write reaches a caller that drains, also where
 * another hands over more meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "io/flusher.h"
#include "unit_help.h"
#include "unit_io.h"

#define CAPACITY 4096u
#define FAULTS   1000

static struct flusher *flusher;
static atomic_uint drains, errors;
static atomic_int is_over;

/* Drains, as a worker does at the ends of epochs, until there is nothing more to come. */
static void *drain_on(void *arg)
{
    struct error e;

    (void)arg;
    while (!is_over) {
        int status = flusher_drain(flusher, &e);
        errors += status == DELTAFS_ERR_IO;
        drains++;
        if (status == DELTAFS_OK && (drains & 15) == 0)
            sched_yield();
    }
    return NULL;
}

/* Each write fails: one of the drains that end after it has its error. */
static void test_errors_of_another(void **state)
{
    const char *path = unit_path("file");
    struct memory memory = {.limit = 1 << 20};
    struct io_file file;
    struct error e;
    uint8_t *buffer;
    pthread_t thread;

    (void)state;
    unit_io_begin();
    struct io io = io_default();
    CHECK_IS(io_file_open(&io, path, O_RDWR | O_CREAT, &file, &e), DELTAFS_OK);
    CHECK_IS(flusher_create(CAPACITY, 2, &memory, &flusher, &e), DELTAFS_OK);
    CHECK_IS(memory_take(&memory, CAPACITY, "a buffer", &buffer, &e), DELTAFS_OK);
    memset(buffer, 1, CAPACITY);
    unit_io_fail(OP_WRITE, "file", 0, UINT64_MAX, EIO);
    CHECK_IS(pthread_create(&thread, NULL, drain_on, NULL), 0);
    int are_lost = 0;
    for (int i = 0; i < FAULTS && !are_lost; i++) {
        unsigned before = errors;
        buffer = flusher_write(flusher, &file, 0, buffer, 0, 16, NULL);
        memset(buffer, 1, CAPACITY);
        /* The second drain from here on begins after the write was handed over. */
        for (unsigned from = drains; drains - from < 3;)
            sched_yield();
        are_lost = errors == before;
    }
    is_over = 1;
    CHECK_IS(pthread_join(thread, NULL), 0);
    CHECK(!are_lost);
    CHECK_IS(flusher_drain(flusher, &e), DELTAFS_OK);
    memory_give(&memory, buffer, CAPACITY);
    flusher_destroy(flusher);
    CHECK_IS(memory.used, 0);
    unit_io_fail(OP_WRITE, "file", 0, 0, 0);
    CHECK_IS(io_file_close(&file, &e), DELTAFS_OK);
    unit_io_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_of_another),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
