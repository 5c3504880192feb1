/* Containers of logical files and their sessions. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "store/session.h"
#include "store/store_format.h"
#include "unit_help.h"
#include "unit_io.h"

static struct io io;

static int open_it(struct container *c, const char *name, int flags, int *is_new, struct error *e)
{
    return container_open(c, &io, unit_path("%s", name), flags, 0, is_new, e);
}

static void test_life(void **state)
{
    struct container c;
    struct session s, *list;
    struct error e;
    size_t n;
    int is_new;
    char kind;

    (void)state;
    CHECK_IS(open_it(&c, "life", O_RDONLY, &is_new, &e), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(open_it(&c, "life", O_CREAT | O_EXCL, &is_new, &e), DELTAFS_OK);
    CHECK(is_new);
    CHECK_IS(container_kind(&io, unit_path("life"), &kind, &e), DELTAFS_OK);
    CHECK_IS(kind, 'f');
    CHECK_IS(session_list(&c, &io, &list, &n, &e), DELTAFS_OK);
    CHECK_IS(n, 0);
    free(list);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_IS(session_claim(&c, &io, 100 * i + 1, 10 + i, "", 0, &s, &e), DELTAFS_OK);
        CHECK_IS(s.number, i);
        if (i == 1)
            CHECK_IS(session_close(&c, &io, &s, 50, 77, 4711, 0, &e), DELTAFS_OK);
        for (uint32_t w = 0; w < s.writers; w += 50) {
            char *path = session_log_path(&c, &s, w, LOG_KIND_FRAMES);
            unit_save(path, "x", 1);
            free(path);
        }
    }
    CHECK_IS(session_list(&c, &io, &list, &n, &e), DELTAFS_OK);
    CHECK_IS(n, 3);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t *writer;
        CHECK(list[i].number == i && list[i].writers == 100 * i + 1 && list[i].order == 10 + i);
        CHECK_IS(list[i].is_closed, i == 1);
        CHECK_IS(session_logs(&c, &io, &list[i], LOG_KIND_FRAMES, &writer, &n, &e), DELTAFS_OK);
        CHECK_IS(n, 2 * i + 1);
        for (uint32_t k = 0; k < n; k++)
            CHECK_IS(writer[k], 50 * k);
        free(writer);
    }
    CHECK(list[1].logs == 50 && list[1].last_order == 77 && list[1].size == 4711);
    CHECK(list[0].buckets == 0 && list[2].buckets == 4);
    CHECK_IS(session_remove(&c, &io, &list[1], &e), DELTAFS_OK);
    free(list);
    CHECK_IS(session_list(&c, &io, &list, &n, &e), DELTAFS_OK);
    CHECK_IS(n, 2);
    free(list);
    container_fini(&c);
    CHECK_IS(container_remove(&io, unit_path("life"), &e), DELTAFS_OK);
    CHECK(!unit_exists(unit_path("life")));
    CHECK_IS(container_remove(&io, unit_path("life"), &e), DELTAFS_ERR_NOT_FOUND);
}

static int setup(void **state)
{
    io = io_default();
    return unit_setup(state);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
    };

    return cmocka_run_group_tests(tests, setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
