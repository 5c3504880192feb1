/* Atomic mode of a logical file. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "core/logical.h"
#include "unit_help.h"
#include "unit_io.h"
#include "unit_team.h"

/* ---- Writes in between ---- */

/* Two processes write while a third looks: the second one, at LATER, begins when the first one, at FIRST, has ended. */
#define FIRST 100
#define LATER 50

struct writers {
    deltafs_logical *first, *later;
    int is_late; /* they turn to atomic mode only then */
    pthread_t thread;
    atomic_int have_written;
    int failures;
};

static void *write_both(void *arg)
{
    struct writers *w = arg;

    if (w->is_late) {
        w->failures += deltafs_logical_set_atomic(w->first, 1) != DELTAFS_OK;
        w->failures += deltafs_logical_set_atomic(w->later, 1) != DELTAFS_OK;
    }
    w->failures += deltafs_logical_write(w->first, FIRST, "a", 1) != DELTAFS_OK;
    w->failures += deltafs_logical_write(w->later, LATER, "b", 1) != DELTAFS_OK;
    atomic_store(&w->have_written, 1);
    return NULL;
}

/* The reader waits for them no longer than they need, or 0.3 s if it is they who wait. */
static void write_meanwhile(void *arg)
{
    struct writers *w = arg;

    CHECK_IS(pthread_create(&w->thread, NULL, write_both, w), 0);
    for (int i = 0; i < 300 && !atomic_load(&w->have_written); i++)
        usleep(1000);
}

static deltafs_logical *open_writer(const char *path)
{
    deltafs_logical *f;

    CHECK_IS(deltafs_logical_open(path, O_RDWR | O_CREAT, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_write(f, 0, "o", 1), DELTAFS_OK);
    CHECK_IS(deltafs_logical_sync(f), DELTAFS_OK);
    return f;
}

/* What the reader finds. */
struct found {
    uint64_t size, start, end;
    size_t got;
    char bytes[200];
};

enum way { BY_READ, BY_SIZE, BY_NEXT, WAYS };

static void look(deltafs_logical *f, enum way way, struct found *x)
{
    *x = (struct found){0};
    if (way == BY_READ)
        CHECK_IS(deltafs_logical_read(f, 0, x->bytes, sizeof x->bytes, &x->got), DELTAFS_OK);
    else if (way == BY_SIZE)
        CHECK_IS(deltafs_logical_size(f, &x->size), DELTAFS_OK);
    else
        CHECK_IS(deltafs_logical_next(f, LATER + 1, &x->start, &x->end), DELTAFS_OK);
}

/* With the later write alone the file would end behind that. */
static void check_order(const struct found *x, enum way way)
{
    if (way == BY_READ)
        CHECK(x->got == 1 || x->got == FIRST + 1);
    else if (way == BY_SIZE)
        CHECK(x->size == 1 || x->size == FIRST + 1);
    else
        CHECK(x->start == 1 || x->start == FIRST);
}

static void run_between(enum way way, int mode, int is_late)
{
    const char *path = unit_path("between.%d.%d.%d", way, mode, is_late);
    struct writers w = {.is_late = is_late};
    deltafs_logical *f;
    struct found x;

    unit_io_begin();
    w.first = open_writer(path);
    w.later = open_writer(path);
    CHECK_IS(deltafs_logical_open(path, mode, NULL, &f), DELTAFS_OK);
    for (int i = 0; i < 2 && !is_late; i++)
        CHECK_IS(deltafs_logical_set_atomic(i == 0 ? w.first : w.later, 1), DELTAFS_OK);
    CHECK_IS(deltafs_logical_set_atomic(f, 1), DELTAFS_OK);
    /* The first one's log has been read. */
    unit_io_call(OP_OPEN, "s00000001/w00000000.extents", write_meanwhile, &w);
    look(f, way, &x);
    CHECK_IS(pthread_join(w.thread, NULL), 0);
    CHECK_IS(w.failures, 0);
    check_order(&x, way);
    look(f, BY_READ, &x);
    CHECK(x.got == FIRST + 1 && x.bytes[FIRST] == 'a' && x.bytes[LATER] == 'b');
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(w.first), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(w.later), DELTAFS_OK);
    unit_io_end();
}

/* Nobody sees a write without those that had ended before it began. */
static void test_between(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        run_between((enum way)way, O_RDWR, 0);
        run_between((enum way)way, O_RDONLY, 0);
        run_between((enum way)way, O_RDONLY, 1);
    }
}

/* Without locks there is no atomic mode, for readers either; but no lock is needed where nobody has written in it. */
static void test_no_locks(void **state)
{
    const char *path = unit_path("locks");
    deltafs_logical *w, *f;
    uint64_t size;

    (void)state;
    unit_io_begin();
    w = open_writer(path);
    CHECK_IS(deltafs_logical_open(path, O_RDONLY, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_set_atomic(f, 1), DELTAFS_OK);
    CHECK_IS(deltafs_logical_size(f, &size), DELTAFS_OK);
    CHECK(!unit_exists(unit_path("locks/LOCK")));
    CHECK_IS(deltafs_logical_set_atomic(f, 0), DELTAFS_OK);
    unit_io_fail(OP_LOCK, "LOCK", 0, UINT64_MAX, ENOLCK);
    CHECK_IS(deltafs_logical_set_atomic(w, 1), DELTAFS_ERR_IO);
    CHECK(strstr(deltafs_logical_errmsg(w), "must have locks"));
    CHECK_IS(deltafs_logical_set_atomic(f, 1), DELTAFS_ERR_IO);
    CHECK(strstr(deltafs_logical_errmsg(f), "must have locks"));
    unit_io_fail(OP_LOCK, "LOCK", 0, 0, 0);
    CHECK_IS(deltafs_logical_set_atomic(f, 1), DELTAFS_OK);
    unit_io_fail(OP_LOCK, "LOCK", 0, UINT64_MAX, EIO);
    CHECK_IS(deltafs_logical_size(f, &size), DELTAFS_ERR_IO);
    unit_io_fail(OP_LOCK, "LOCK", 0, 0, 0);
    CHECK_IS(deltafs_logical_size(f, &size), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(w), DELTAFS_OK);
    unit_io_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_between), cmocka_unit_test(test_no_locks)};

    return cmocka_run_group_tests_name("atomic mode of a logical file", tests, unit_setup, unit_teardown) == 0 ? 0 : 1;
}
