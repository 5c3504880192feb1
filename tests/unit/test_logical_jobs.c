/* A logical file that several jobs have open at once, each with a handle of its own: what one of them removes, and what
 * it makes anew, as the others see it. */
#include <fcntl.h>
#include "core/logical.h"
#include "store/store_format.h"
#include "unit_help.h"

#define PAGE 4096

static deltafs_logical *open_it(const char *path, int flags)
{
    deltafs_options *o = unit_options(NULL);
    deltafs_logical *f;

    CHECK_IS(deltafs_logical_open(path, flags, o, &f), DELTAFS_OK);
    deltafs_options_destroy(o);
    return f;
}

#define CHECK_FILE(f, call, want)                                                                                      \
    do {                                                                                                               \
        int check_status = (call);                                                                                     \
        if (check_status != (want))                                                                                    \
            fail_msg("%s is %d, not %d: %s", #call, check_status, (want), deltafs_logical_errmsg(f));                  \
    } while (0)

static void write_page(deltafs_logical *f, int page, char byte)
{
    char bytes[PAGE];

    memset(bytes, byte, sizeof bytes);
    CHECK_FILE(f, deltafs_logical_write(f, (uint64_t)page * PAGE, bytes, sizeof bytes), DELTAFS_OK);
}

/* The file has as many pages as `want` has characters, each of that character. */
static void check_pages(deltafs_logical *f, const char *want)
{
    char bytes[PAGE];
    uint64_t size;
    size_t got;

    CHECK_FILE(f, deltafs_logical_size(f, &size), DELTAFS_OK);
    CHECK_IS(size, strlen(want) * PAGE);
    for (size_t i = 0; want[i]; i++) {
        CHECK_FILE(f, deltafs_logical_read(f, i * PAGE, bytes, sizeof bytes, &got), DELTAFS_OK);
        CHECK_IS(got, PAGE);
        for (size_t k = 0; k < PAGE; k++)
            CHECK_IS(bytes[k], want[i]);
    }
}

static void sync_it(deltafs_logical *f)
{
    CHECK_FILE(f, deltafs_logical_sync(f), DELTAFS_OK);
}

static void close_it(deltafs_logical *f)
{
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
}

static void check_fresh(const char *path, const char *want)
{
    deltafs_logical *f = open_it(path, O_RDONLY);

    check_pages(f, want);
    CHECK_FILE(f, deltafs_logical_verify(f, NULL, NULL, NULL), DELTAFS_OK);
    close_it(f);
}

/* ---- Numbers of sessions ---- */

/* A truncation by a job whose session is older than those that it makes superfluous. Their numbers were claimed again:
 * a reader knew them as closed, and never looked at the new sessions. */
static void test_truncated_by_older(void **state)
{
    const char *path = unit_path("older");
    deltafs_logical *old = open_it(path, O_RDWR | O_CREAT), *new, *reader;

    (void)state;
    write_page(old, 0, 'a');
    sync_it(old);
    new = open_it(path, O_RDWR);
    write_page(new, 0, 'b');
    close_it(new);
    reader = open_it(path, O_RDONLY);
    check_pages(reader, "b");
    sync_it(old);
    CHECK_FILE(old, deltafs_logical_truncate(old, 0), DELTAFS_OK);
    new = open_it(path, O_RDWR);
    write_page(new, 0, 'c');
    close_it(new);
    sync_it(reader);
    check_pages(reader, "c");
    close_it(reader);
    close_it(old);
    check_fresh(path, "c");
}

/* The same, and the reader had read a part of the removed session's logs, and had one of them open: it went on behind
 * that in the new ones, and took old bytes for new. */
static void test_truncated_while_read(void **state)
{
    const char *path = unit_path("while");
    deltafs_logical *old = open_it(path, O_RDWR | O_CREAT), *new, *reader;

    (void)state;
    write_page(old, 0, 'a');
    sync_it(old);
    new = open_it(path, O_RDWR);
    write_page(new, 0, 'b');
    sync_it(new);
    write_page(new, 1, 'b');
    sync_it(new);
    reader = open_it(path, O_RDONLY);
    check_pages(reader, "bb");
    write_page(new, 2, 'b');
    close_it(new);
    sync_it(old);
    CHECK_FILE(old, deltafs_logical_truncate(old, 0), DELTAFS_OK);
    new = open_it(path, O_RDWR);
    for (int i = 0; i < 3; i++) {
        write_page(new, i, 'c');
        sync_it(new);
    }
    sync_it(reader);
    check_pages(reader, "ccc");
    close_it(reader);
    close_it(new);
    close_it(old);
    check_fresh(path, "ccc");
    /* Who comes later removes what was kept. */
    new = open_it(path, O_RDWR | O_TRUNC);
    CHECK(unit_exists(unit_path("while/s00000003")));
    for (int i = 0; i < 3; i++)
        CHECK(!unit_exists(unit_path("while/s0000000%d", i)));
    close_it(new);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_truncated_by_older),
                                       cmocka_unit_test(test_truncated_while_read)};

    return cmocka_run_group_tests_name("jobs of a logical file", tests, unit_setup, unit_teardown) == 0 ? 0 : 1;
}
