/* Containers and sessions under failures: whatever fails, nothing is half there, and it can be finished or removed. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "logical/format/session.h"
#include "unit_container.h"
#include "unit_kth.h"

static struct io io;

static int faulty_life(struct io *faulty, const char *volumes)
{
    struct container c;
    struct session s, *list;
    struct error e;
    size_t n;
    int status = container_open(&c, faulty, unit_path("fault"), O_CREAT, 1, &e);

    if (status == DELTAFS_OK)
        status = session_create(&c, faulty, 130, 1, volumes, 1, &s, &e);
    if (status == DELTAFS_OK)
        status = session_sync_folder(&c, faulty, &s, 129, &e);
    if (status == DELTAFS_OK)
        status = session_close(&c, faulty, &s, 3, 4, 5, 1, &e);
    if (status == DELTAFS_OK)
        status = session_list(&c, faulty, &list, &n, &e);
    if (status == DELTAFS_OK) {
        CHECK(n == 1 && list[0].is_closed);
        free(list);
    }
    container_fini(&c);
    return status;
}

/* Whatever fails, it is an error; no session is half there, a second attempt goes well, and it can all be removed. */
static void test_faults(void **state)
{
    char volumes[600];
    struct container c;
    struct session s;
    struct error e;
    size_t n;
    int goes_on = 1;

    (void)state;
    snprintf(volumes, sizeof volumes, "%s:%s", unit_path("v1"), unit_path("v2"));
    CHECK(mkdir(unit_path("v1"), 0777) == 0 && mkdir(unit_path("v2"), 0777) == 0);
    for (uint64_t k = 0; goes_on; k++) {
        struct io faulty;
        unit_kth_begin(&faulty, k, EIO);
        int status = faulty_life(&faulty, k % 2 ? "" : volumes), has_failed = unit_kth_end();
        /* Nothing hangs on some of them: on closing what was read, on removing the name that a link has replaced. */
        CHECK(status == DELTAFS_OK || (has_failed && status == DELTAFS_ERR_IO));
        CHECK_IS(unit_container_open(&c, "fault", O_CREAT, &e), DELTAFS_OK);
        CHECK_IS(unit_session_list(&c, &s, &n, &e), DELTAFS_OK);
        CHECK(n <= 1 && (n == 0 || s.writers == 130));
        unit_session_make(&c, 10, volumes, &s);
        container_fini(&c);
        CHECK_IS(container_remove(&io, unit_path("fault"), &e), DELTAFS_OK);
        CHECK_IS(unit_count_entries(unit_path("v1")) + unit_count_entries(unit_path("v2")), 2);
        goes_on = has_failed || k % 2;
    }
}

/* Removal that fails can be gone on with, under the name that the message says. */
static void test_remove_faults(void **state)
{
    struct container c;
    struct session s;
    struct error e;
    int goes_on = 1;

    (void)state;
    for (uint64_t k = 0; goes_on; k++) {
        struct io faulty;
        char hidden[600];
        unit_container_make("gone", &c);
        unit_session_make(&c, 5, "", &s);
        unit_session_make(&c, 100, unit_path("v1"), &s);
        container_fini(&c);
        unit_kth_begin(&faulty, k, EIO);
        int status = container_remove(&faulty, unit_path("gone"), &e);
        goes_on = unit_kth_end();
        CHECK(status == DELTAFS_OK || (goes_on && status == DELTAFS_ERR_IO));
        if (status == DELTAFS_OK) {
            CHECK_IS(unit_count_entries(unit_path("v1")), 1);
            CHECK(!unit_exists(unit_path("gone")));
            continue;
        }
        if (!unit_exists(unit_path("gone"))) {
            const char *at = strstr(e.text, ".deltafs-removed-");
            CHECK(at);
            snprintf(hidden, sizeof hidden, "%s/%.*s", unit_folder, 17 + 36, at);
        } else {
            snprintf(hidden, sizeof hidden, "%s", unit_path("gone"));
        }
        status = container_remove(&io, hidden, &e);
        /* But for the manifest it was empty already. */
        CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND);
        unit_remove(hidden);
        CHECK_IS(unit_count_entries(unit_path("v1")), 1);
    }
}

/* If the removal of a session ends early, the session still counts and is whole, or is known to be removed as long as
 * it has logs; and the next one that comes by removes the rest. */
static void test_remove_session_faults(void **state)
{
    int goes_on = 1, before = 0, remains = 0;
    struct container c;
    struct session s, now;
    struct error e;

    (void)state;
    unit_container_make("short", &c);
    for (uint64_t k = 0; goes_on || k % 2; k++) {
        struct io faulty;
        uint32_t *writer = NULL;
        size_t n = 0;
        int is_removed;
        unit_session_make(&c, 7, k % 2 ? unit_path("v1") : "", &s);
        unit_kth_begin(&faulty, k / 2, EIO);
        int status = session_remove(&c, &faulty, s.number, 1, &e);
        goes_on = unit_kth_end();
        CHECK_IS(status, goes_on ? DELTAFS_ERR_IO : DELTAFS_OK);
        int read = session_read(&c, &io, s.number, &now, &e);
        CHECK_IS(session_is_removed(&c, &io, s.number, &is_removed, &e), DELTAFS_OK);
        if (!is_removed && unit_exists(unit_path("short/s%08x", s.number)))
            CHECK_IS(session_guess(&c, &io, s.number, &now, &writer, &n, &e), DELTAFS_OK);
        CHECK(read == DELTAFS_OK ? n == 3 : read == DELTAFS_ERR_NOT_FOUND && (is_removed || n == 0));
        CHECK(read != DELTAFS_OK || !is_removed);
        before += read == DELTAFS_OK;
        remains += is_removed;
        free(writer);
        if (session_remove(&c, &io, s.number, 1, &e) != DELTAFS_OK)
            fail_msg("operation %llu: %s", (unsigned long long)k, e.text);
        CHECK_IS(unit_count_entries(unit_path("short")), 2);
        CHECK_IS(unit_count_entries(unit_path("v1")), 1);
    }
    CHECK(before > 0 && remains > 0);
    container_fini(&c);
    CHECK_IS(container_remove(&io, unit_path("short"), &e), DELTAFS_OK);
}

static int setup(void **state)
{
    io = io_default();
    return unit_setup(state);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_remove_faults),
        cmocka_unit_test(test_remove_session_faults),
    };

    return cmocka_run_group_tests(tests, setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
