/* Calls of namespaces and snapshots while there is no memory: they return DELTAFS_ERR_MEMORY, and what was there stays.
 */
#include <fcntl.h>
#include "namespace/entry_format.h"
#include "unit_memory.h"
#include "unit_namespace.h"

/* ---- Files ---- */

static void check_bytes(deltafs_namespace_file *f, const uint8_t *bytes, size_t size)
{
    static uint8_t read[3 * CHUNK_SIZE + 1];
    size_t got;

    CHECK_IS(deltafs_namespace_file_read(f, 0, read, sizeof read, &got), DELTAFS_OK);
    CHECK_IS(got, size);
    CHECK(memcmp(read, bytes, size) == 0);
}

/* What a write or a truncation could not change stays as it was. (A chunk that was to be replaced read as zeros then;
 * and if a file could not be shortened, changed chunks behind its new end were lost.) */
static void files(void **state)
{
    static uint8_t bytes[3 * CHUNK_SIZE], other[CHUNK_SIZE];
    struct rng r = rng_of(4);
    deltafs_namespace *ns = new_ns("files");
    deltafs_namespace_file *f;

    (void)state;
    rng_fill(&r, bytes, sizeof bytes);
    CHECK_IS(deltafs_namespace_file_open(ns, "/f", O_RDWR | O_CREAT, 0600, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_write(f, 0, bytes, sizeof bytes), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    for (int is_write = 0; is_write < 2; is_write++) {
        CHECK_IS(deltafs_namespace_file_open(ns, "/f", O_RDWR, 0, &f), DELTAFS_OK);
        rng_fill(&r, bytes + 2 * CHUNK_SIZE, CHUNK_SIZE);
        CHECK_IS(deltafs_namespace_file_write(f, 2 * CHUNK_SIZE, bytes + 2 * CHUNK_SIZE, CHUNK_SIZE), DELTAFS_OK);
        unit_memory_fail_large(CHUNK_SIZE / 2);
        int status = is_write ? deltafs_namespace_file_write(f, 0, other, sizeof other)
                              : deltafs_namespace_file_truncate(f, CHUNK_SIZE * 7 / 4);
        unit_memory_end();
        CHECK_IS(status, UNIT_MEMORY_FAILS ? DELTAFS_ERR_MEMORY : DELTAFS_OK);
        if (status != DELTAFS_OK)
            check_bytes(f, bytes, sizeof bytes);
        CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    }
    close_ns(ns);
}

/* ---- Snapshots ---- */

static int has_snapshot(const char *name)
{
    deltafs_snapshot *s = NULL;
    int status = deltafs_snapshot_open(named(name), &s);

    CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND);
    deltafs_snapshot_close(s);
    return status == DELTAFS_OK;
}

static int publish(void)
{
    return deltafs_snapshot_publish(unit_path("ns"), named("new"));
}

static int merge(void)
{
    const char *const inputs[] = {named("one"), named("two")};

    return deltafs_snapshot_merge(2, inputs, DELTAFS_SNAPSHOT_FIRST, named("new"));
}

/* One allocation after the other fails: there is a snapshot if the call says so, and otherwise no pin is left. (What
 * the name of a registry took was freed twice.) */
static void fail_each(int (*call)(void), unsigned pins)
{
    const char *path = unit_path("ns");
    int has_failed = 1;

    for (uint64_t k = 0; has_failed; k++) {
        unit_memory_fail_at(k);
        int status = call();
        has_failed = unit_memory_end();
        CHECK(status == DELTAFS_OK || (has_failed && status == DELTAFS_ERR_MEMORY));
        CHECK(status != DELTAFS_OK || has_snapshot("new"));
        if (has_snapshot("new"))
            CHECK_IS(deltafs_snapshot_withdraw(named("new")), DELTAFS_OK);
        CHECK_IS(count_names(path, "PIN."), pins);
    }
}

static void snapshots(void **state)
{
    deltafs_namespace *ns = new_ns("ns");

    (void)state;
    put_file(ns, "/file", "text");
    close_ns(ns);
    fail_each(publish, 0);
    CHECK_IS(deltafs_snapshot_publish(unit_path("ns"), named("one")), DELTAFS_OK);
    CHECK_IS(deltafs_snapshot_publish(unit_path("ns"), named("two")), DELTAFS_OK);
    fail_each(merge, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files), cmocka_unit_test(snapshots)};

    return cmocka_run_group_tests(tests, setup_unsynced, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
