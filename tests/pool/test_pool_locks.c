/* Locks of parts of files in a server, against a lock for each byte. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "pool/server/pool_locks.h"

#define FILES   2
#define CLIENTS 3
#define BYTES   24
#define STEPS   30000

static struct pool_locks locks;
static uint8_t oracle[FILES][CLIENTS][BYTES];
static struct error e;

static int is_refused(const struct pool_range *r)
{
    for (uint64_t c = 0; c < CLIENTS; c++)
        for (uint64_t i = r->from; i < r->to; i++) {
            int other = oracle[r->id][c][i];
            if (c != r->client && other && r->lock && (other == POOL_EXCLUSIVE || r->lock == POOL_EXCLUSIVE))
                return 1;
        }
    return 0;
}

static void step(void)
{
    struct pool_range r = {.id = (uint64_t)rand() % FILES, .client = (uint64_t)rand() % CLIENTS};

    if (rand() % 100 == 0) {
        pool_locks_leave(&locks, r.client);
        for (int i = 0; i < FILES; i++)
            memset(oracle[i][r.client], 0, BYTES);
        return;
    }
    r.from = (uint64_t)rand() % BYTES;
    r.to = r.from + 1 + (uint64_t)rand() % (BYTES - r.from);
    r.lock = (enum pool_lock)(rand() % 3);
    const struct pool_range *other = pool_locks_other(&locks, &r);
    assert_int_equal(other != NULL, is_refused(&r));
    if (other) {
        assert_true(other->client != r.client && other->id == r.id);
        assert_int_equal(oracle[r.id][other->client][other->from], other->lock);
        return;
    }
    assert_int_equal(pool_locks_set(&locks, &r, &e), DELTAFS_OK);
    memset(&oracle[r.id][r.client][r.from], (int)r.lock, r.to - r.from);
}

static void test_random(void **state)
{
    (void)state;
    for (int i = 0; i < STEPS; i++)
        step();
    for (uint64_t c = 0; c < CLIENTS; c++)
        pool_locks_leave(&locks, c);
    assert_int_equal(locks.count, 0);
}

static void test_most(void **state)
{
    struct pool_range r = {.id = 1, .client = 1, .lock = POOL_SHARED};
    int status = DELTAFS_OK;
    uint64_t n = 0;

    (void)state;
    for (; n < 20000 && status == DELTAFS_OK; n++) {
        r.from = 2 * n;
        r.to = r.from + 1;
        status = pool_locks_set(&locks, &r, &e);
    }
    assert_int_equal(status, DELTAFS_ERR_NO_SPACE);
    assert_in_range(n, 9900, 10100);
    /* Unlocking the middle of a lock makes one more. */
    r = (struct pool_range){.id = 1, .client = 1, .lock = POOL_UNLOCKED, .from = 0, .to = 1};
    assert_int_equal(pool_locks_set(&locks, &r, &e), DELTAFS_OK);
    r = (struct pool_range){.id = 2, .client = 1, .lock = POOL_SHARED, .from = 0, .to = 9};
    assert_int_equal(pool_locks_set(&locks, &r, &e), DELTAFS_OK);
    r = (struct pool_range){.id = 2, .client = 1, .lock = POOL_UNLOCKED, .from = 4, .to = 5};
    assert_int_equal(pool_locks_set(&locks, &r, &e), DELTAFS_ERR_NO_SPACE);
    r.from = 0;
    assert_int_equal(pool_locks_set(&locks, &r, &e), DELTAFS_OK);
    r = (struct pool_range){.id = 2, .client = 1, .lock = POOL_UNLOCKED, .from = 0, .to = UINT64_MAX};
    assert_int_equal(pool_locks_set(&locks, &r, &e), DELTAFS_OK);
    r = (struct pool_range){.id = 1, .client = 1, .lock = POOL_UNLOCKED, .from = 3, .to = UINT64_MAX};
    assert_int_equal(pool_locks_set(&locks, &r, &e), DELTAFS_OK);
    assert_int_equal(locks.count, 1);
    pool_locks_fini(&locks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_most)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
