/* Collection frees what it should and keeps what it must: several writers, each with a table, overwrite files again and
 * again; snapshots are published and withdrawn, tables compacted, and all is collected. After each collection every
 * snapshot has its bytes, and the data of each table has the chunks that a view has, and at most a quarter more. */
#include <errno.h>
#include <fcntl.h>
#include "namespace/namespace.h"
#include "namespace/table_data.h"
#include "unit_io.h"
#include "unit_namespace.h"

#define WRITERS   3
#define FILES     6
#define SNAPSHOTS 3
#define ROUNDS    40
#define SIZE_MOST 600000 /* three chunks, and the list of them */

/* What a file has follows from a number. */
struct view {
    int is_there;
    uint64_t file[FILES]; /* its numbers */
};

static struct view now, snapshot[SNAPSHOTS];
static struct entry_id needed[(SNAPSHOTS + 1) * FILES * 4];
static size_t needs;

static size_t fill(uint64_t number, uint8_t *bytes)
{
    struct rng r = rng_of(number);
    size_t size = number % 4 == 0 ? SIZE_MOST : 10 + number % 50;

    rng_fill(&r, bytes, size);
    return size;
}

static const char *name_of(char text[8], size_t i)
{
    snprintf(text, 8, "/f%zu", i);
    return text;
}

static const char *snapshot_name(size_t i)
{
    return unit_path("registry@s%zu", i);
}

static void write_file(deltafs_namespace *ns, size_t i, uint64_t number)
{
    static uint8_t bytes[SIZE_MOST];
    char name[8];
    size_t size = fill(number, bytes);
    deltafs_namespace_file *f;

    CHECK_IS(deltafs_namespace_file_open(ns, name_of(name, i), O_WRONLY | O_CREAT | O_TRUNC, 0644, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_write(f, 0, bytes, size), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    now.file[i] = number;
}

/* They have it open at the same time; of a file that two have written, the later is the newer. */
static void write_round(struct rng *r, const char *path, uint64_t round)
{
    deltafs_namespace *ns[WRITERS];

    for (size_t i = 0; i < WRITERS; i++)
        ns[i] = open_ns(path, O_RDWR);
    for (uint64_t i = 0; i < 4; i++)
        write_file(ns[rng_below(r, WRITERS)], rng_below(r, FILES), round * 4 + i + 1);
    for (size_t i = 0; i < WRITERS; i++)
        close_ns(ns[i]);
}

static int add_place(void *arg, const struct entry_id *place, struct error *e)
{
    (void)arg;
    (void)e;
    for (size_t i = 0; i < needs; i++)
        if (id_is_same(&needed[i], place))
            return DELTAFS_OK;
    needed[needs++] = *place;
    return DELTAFS_OK;
}

/* All files of a view have their bytes; adds where these are. */
static void check_view(const char *path, const struct view *v)
{
    static uint8_t want[SIZE_MOST], bytes[SIZE_MOST + 1];
    deltafs_namespace *ns = open_ns(path, O_RDONLY);
    deltafs_namespace_file *f;
    struct found found;
    char name[8];
    size_t got;

    for (size_t i = 0; i < FILES; i++) {
        size_t size = fill(v->file[i], want);
        CHECK_IS(deltafs_namespace_file_open(ns, name_of(name, i), O_RDONLY, 0, &f), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_read(f, 0, bytes, sizeof bytes, &got), DELTAFS_OK);
        CHECK(got == size && memcmp(bytes, want, size) == 0);
        CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
        CHECK_IS(walk_to_existing(ns, &ns->walk, name, 0, &found), DELTAFS_OK);
        CHECK_IS(tables_each_place(&ns->tables, &found.inode, add_place, NULL, &ns->error), DELTAFS_OK);
    }
    close_ns(ns);
}

static void check_data(const char *path, uint64_t table)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    char data[PATH_ROOM];
    deltafs_dir *d = NULL;
    uint64_t count = 0;
    int status = deltafs_open(table_path(data, path, table, TABLE_DATA), NULL, &d);

    for (size_t i = 0; i < needs; i++)
        count += needed[i].table == table;
    CHECK(status == DELTAFS_OK || (status == DELTAFS_ERR_NOT_FOUND && count == 0));
    if (status != DELTAFS_OK)
        return;
    CHECK_IS(deltafs_stat(d, &stat), DELTAFS_OK);
    CHECK(count > 0 && stat.records >= count);
    CHECK(stat.records - count <= stat.records / 4);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void check_all(const char *path)
{
    uint64_t *number = NULL;
    struct io io = io_default();
    struct error e;
    size_t count = 0;

    needs = 0;
    CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
    check_view(path, &now);
    for (size_t i = 0; i < SNAPSHOTS; i++)
        if (snapshot[i].is_there)
            check_view(snapshot_name(i), &snapshot[i]);
    CHECK_IS(tables_list(&io, path, &number, &count, &e), DELTAFS_OK);
    for (size_t i = 0; i < count; i++)
        check_data(path, number[i]);
    free(number);
    CHECK_IS(deltafs_namespace_verify(path, NULL, NULL, NULL), DELTAFS_OK);
}

static void publish_or_withdraw(struct rng *r, const char *path)
{
    size_t i = (size_t)rng_below(r, SNAPSHOTS);

    if (snapshot[i].is_there) {
        CHECK_IS(deltafs_snapshot_withdraw(snapshot_name(i)), DELTAFS_OK);
        snapshot[i].is_there = 0;
    } else {
        CHECK_IS(deltafs_snapshot_publish(path, snapshot_name(i)), DELTAFS_OK);
        snapshot[i] = now;
        snapshot[i].is_there = 1;
    }
}

static void frees_and_keeps(void **state)
{
    const char *path = unit_path("ns");
    struct rng r = rng_init(1);
    deltafs_namespace *ns = new_ns("ns");

    (void)state;
    for (size_t i = 0; i < FILES; i++)
        write_file(ns, i, 1000 + i);
    close_ns(ns);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (rng_below(&r, 3) > 0)
            write_round(&r, path, round);
        if (rng_below(&r, 2) == 0)
            publish_or_withdraw(&r, path);
        if (rng_below(&r, 5) == 0)
            CHECK_IS(deltafs_namespace_compact(path, NULL), DELTAFS_OK);
        if (rng_below(&r, 2) == 0)
            check_all(path);
    }
    for (size_t i = 0; i < SNAPSHOTS; i++)
        if (snapshot[i].is_there)
            CHECK_IS(deltafs_snapshot_withdraw(snapshot_name(i)), DELTAFS_OK);
    memset(snapshot, 0, sizeof snapshot);
    check_all(path);
}

/* ---- What keeps a collection from its end ---- */

/* A file that stays, and one whose bytes are to be collected. */
static const char *new_garbage(const char *name)
{
    const char *path = unit_path("%s", name);
    deltafs_namespace *ns = new_ns(name);

    write_file(ns, 0, 4);
    close_ns(ns);
    make_epochs(path);
    ns = open_ns(path, O_RDWR);
    write_file(ns, 1, 8);
    CHECK_IS(deltafs_namespace_unlink(ns, "/f1"), DELTAFS_OK);
    write_file(ns, 2, 1);
    close_ns(ns);
    make_epochs(path);
    return path;
}

/* A deltafs_damage_fn. */
static void find_name(int status, const char *message, void *is_named)
{
    (void)status;
    *(int *)is_named |= strstr(message, ":/f0: ") != NULL;
}

/* With a chunk that is lost there is a way out, which the message names. */
static void lost_chunk(void **state)
{
    const char *path = new_garbage("lost");
    struct deltafs_namespace_collected c = {.struct_size = sizeof c};
    deltafs_namespace *ns;
    int is_named = 0;
    char name[32];

    (void)state;
    CHECK_IS(count_tables(path, name), 1);
    unit_poke(unit_path("lost/%s" TABLE_DATA "/00/p00000000.data", name), 1000, 0xff);
    unit_poke(unit_path("lost/%s" TABLE_DATA "/00/p00000000.data", name), 1001, 0);
    for (int i = 0; i < 2; i++) {
        CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_ERR_DAMAGED);
        assert_non_null(strstr(deltafs_errmsg(NULL), "'deltafs verify "));
        assert_non_null(strstr(deltafs_errmsg(NULL), "names the file: remove it"));
    }
    CHECK_IS(deltafs_namespace_verify(path, find_name, &is_named, NULL), DELTAFS_ERR_DAMAGED);
    CHECK(is_named);
    ns = open_ns(path, O_RDWR);
    CHECK_IS(deltafs_namespace_unlink(ns, "/f0"), DELTAFS_OK);
    close_ns(ns);
    CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_OK);
    CHECK(c.bytes_after < 10000);
    CHECK_IS(deltafs_namespace_verify(path, NULL, NULL, NULL), DELTAFS_OK);
}

/* While it works it renews its lease, and stops when that cannot be written. */
static void renews(void **state)
{
    const char *path = new_garbage("renews");
    uint64_t k = 0;
    int status;

    (void)state;
    setenv("DELTAFS_LEASE", "1", 1);
    do {
        unit_io_begin();
        unit_io_fail(OP_WRITE, "/renews/LEASE", k++, 1, EIO);
        status = deltafs_namespace_collect(path, NULL);
        CHECK(status == DELTAFS_OK || (status == DELTAFS_ERR_IO && unit_io_failures() == 1));
        unit_io_fail(OP_WRITE, "/renews/LEASE", 0, 0, EIO);
        unit_io_end();
    } while (status != DELTAFS_OK);
    unsetenv("DELTAFS_LEASE");
    CHECK(k > 4); /* taking it, for each name, each chunk, each table */
    CHECK_IS(deltafs_namespace_verify(path, NULL, NULL, NULL), DELTAFS_OK);
}

/* What a killed compaction has left. */
static void old_compaction(void **state)
{
    const char *path = new_garbage("old");
    const char *aside = unit_path("old/.COMPACTED.01234567-89ab-cdef-0123-456789abcdef");

    (void)state;
    unit_save(aside, "half", 4);
    CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
    CHECK(!unit_exists(aside));
    CHECK_IS(deltafs_namespace_compact(path, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
    CHECK(unit_exists(unit_path("old/COMPACTED")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(frees_and_keeps), cmocka_unit_test(lost_chunk),
                                       cmocka_unit_test(renews), cmocka_unit_test(old_compaction)};

    return cmocka_run_group_tests(tests, setup_unsynced, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
