/* What servers of a pool publish on their nodes. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "pool/pool_point.h"

static char folder[] = "/tmp/test_pool_point.XXXXXX";
static struct error e;

/* Names of nodes can have 64 bytes. */
static void test_nodes(void **state)
{
    char nodes[3][POINT_NODE_ROOM] = {"a", "", "b"}, *back;
    struct pool_point p;
    uint64_t number;
    uint32_t servers;

    (void)state;
    memset(nodes[1], 'x', 64);
    assert_int_equal(setenv("DELTAFS_POOL_DIR", folder, 1), 0);
    assert_int_equal(pool_point_init(&p, "/pool", 1, &e), DELTAFS_OK);
    assert_int_equal(pool_point_publish(&p, 17, nodes[0], 3, &e), DELTAFS_OK);
    assert_int_equal(pool_point_read(&p, &number, &back, &servers, &e), DELTAFS_OK);
    assert_int_equal(number, 17);
    assert_int_equal(servers, 3);
    assert_memory_equal(back, nodes, sizeof nodes);
    free(back);
    pool_point_unpublish(&p);
    assert_int_equal(pool_point_read(&p, &number, &back, &servers, &e), DELTAFS_ERR_NOT_FOUND);
    pool_point_remove(&p);
    pool_point_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nodes)};

    if (!mkdtemp(folder))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed || rmdir(folder) != 0;
}
