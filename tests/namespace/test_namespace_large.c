/* Files of many chunks that several writers have written parts of: what collections, snapshots, merges and namespaces
 * on top keep of them. */
#include <fcntl.h>
#include "namespace/entry_format.h"
#include "unit_namespace.h"

#define SIZE (5 * CHUNK_SIZE + 1000)

/* What a file is to have. */
struct image {
    size_t size;
    uint8_t bytes[SIZE];
};

static void publish(const char *path, const char *name)
{
    CHECK_IS(deltafs_snapshot_publish(path, named(name)), DELTAFS_OK);
}

static uint64_t collect(const char *path)
{
    struct deltafs_namespace_collected c = {.struct_size = sizeof c};

    CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_OK);
    return c.bytes_after;
}

/* Write random bytes to a file and its image. */
static void write_part(deltafs_namespace *ns, const char *path, struct image *image, struct rng *r, size_t at, size_t n)
{
    deltafs_namespace_file *f;

    rng_fill(r, image->bytes + at, n);
    image->size = at + n > image->size ? at + n : image->size;
    CHECK_IS(deltafs_namespace_file_open(ns, path, O_WRONLY | O_CREAT, 0644, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_write(f, at, image->bytes + at, n), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
}

static void truncate_to(deltafs_namespace *ns, const char *path, struct image *image, size_t size)
{
    CHECK_IS(deltafs_namespace_truncate(ns, path, size), DELTAFS_OK);
    image->size = size;
    memset(image->bytes + size, 0, SIZE - size);
}

static void check_image(deltafs_namespace *ns, const char *path, const struct image *image)
{
    static uint8_t read[SIZE + 1];
    deltafs_namespace_file *f;
    size_t got;

    CHECK_IS(deltafs_namespace_file_open(ns, path, O_RDONLY, 0, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_read(f, 0, read, sizeof read, &got), DELTAFS_OK);
    CHECK_IS(got, image->size);
    CHECK(memcmp(read, image->bytes, got) == 0);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
}

/* The same in a namespace, or in a snapshot. */
static void check_in(const char *where, const char *path, const struct image *image)
{
    deltafs_namespace *ns = open_ns(where, O_RDONLY);

    check_image(ns, path, image);
    close_ns(ns);
}

/* A second writer rewrites parts of a file of the first one. Two snapshots, and the namespace, keep what they have of
 * it while the rest is collected. */
static void collected(void **state)
{
    static struct image first, second, now, other;
    const char *path = unit_path("collected");
    struct rng r = rng_of(1);
    char table[32];

    (void)state;
    deltafs_namespace *ns = new_ns("collected");
    write_part(ns, "/f", &now, &r, 0, SIZE);
    write_part(ns, "/other", &other, &r, 0, SIZE);
    close_ns(ns);
    publish(path, "first");
    first = now;

    ns = open_ns(path, O_RDWR); /* has the first table meanwhile */
    deltafs_namespace *writer = open_ns(path, O_RDWR);
    write_part(writer, "/f", &now, &r, CHUNK_SIZE + 5, 1000);
    write_part(writer, "/f", &now, &r, 3 * CHUNK_SIZE, CHUNK_SIZE);
    close_ns(writer);
    CHECK_IS(deltafs_namespace_unlink(ns, "/other"), DELTAFS_OK);
    close_ns(ns);
    CHECK_IS(count_tables(path, table), 2);
    publish(path, "second");
    second = now;

    ns = open_ns(path, O_RDWR);
    truncate_to(ns, "/f", &now, 3 * CHUNK_SIZE + 7);
    truncate_to(ns, "/f", &now, SIZE); /* with chunks that are not stored */
    write_part(ns, "/f", &now, &r, 10, 10);
    close_ns(ns);
    uint64_t both = collect(path);
    check_in(path, "/f", &now);
    check_in(named("first"), "/f", &first);
    check_in(named("first"), "/other", &other);
    check_in(named("second"), "/f", &second);

    CHECK_IS(deltafs_snapshot_withdraw(named("first")), DELTAFS_OK);
    uint64_t one = collect(path);
    CHECK(one < both - SIZE); /* the other file, and what only the first snapshot had of this one */
    check_in(path, "/f", &now);
    check_in(named("second"), "/f", &second);
    CHECK_IS(deltafs_snapshot_withdraw(named("second")), DELTAFS_OK);
    uint64_t none = collect(path);
    CHECK(none < one - CHUNK_SIZE && none > 3 * CHUNK_SIZE);
    check_in(path, "/f", &now);
}

/* A namespace on top of a snapshot rewrites a part of a file; the rest of it stays in the namespace below. */
static void on_top(void **state)
{
    static struct image below, top;
    const char *path = unit_path("below"), *on[] = {named("below")};
    struct rng r = rng_of(2);
    deltafs_namespace *ns = new_ns("below");

    (void)state;
    write_part(ns, "/f", &below, &r, 0, SIZE);
    close_ns(ns);
    publish(path, "below");
    top = below;
    CHECK_IS(deltafs_namespace_open_view(unit_path("top"), O_RDWR | O_CREAT | O_EXCL, 1, on, DELTAFS_SNAPSHOT_ERROR,
                                         NULL, &ns),
             DELTAFS_OK);
    write_part(ns, "/f", &top, &r, 2 * CHUNK_SIZE - 100, 200);
    CHECK_IS(deltafs_namespace_rename(ns, "/f", "/moved"), DELTAFS_OK);
    close_ns(ns);
    publish(unit_path("top"), "top");

    ns = open_ns(path, O_RDWR);
    write_part(ns, "/f", &below, &r, 0, SIZE);
    close_ns(ns);
    CHECK_IS(deltafs_snapshot_withdraw(named("below")), DELTAFS_OK);
    collect(path);
    collect(unit_path("top"));
    check_in(path, "/f", &below);
    check_in(unit_path("top"), "/moved", &top);
    check_in(named("top"), "/moved", &top);
}

/* Two namespaces that both have a file of this name. */
static void merged(void **state)
{
    static const int policies[] = {DELTAFS_SNAPSHOT_FIRST, DELTAFS_SNAPSHOT_LAST, DELTAFS_SNAPSHOT_NEWEST};
    static struct image image[2], own[2];
    const char *const inputs[] = {named("m0"), named("m1")};
    struct rng r = rng_of(3);

    (void)state;
    for (int i = 0; i < 2; i++) {
        deltafs_namespace *ns = new_ns(i == 0 ? "n0" : "n1");
        write_part(ns, "/f", &image[i], &r, 0, SIZE);
        write_part(ns, "/f", &image[i], &r, CHUNK_SIZE, 100);
        write_part(ns, i == 0 ? "/own0" : "/own1", &own[i], &r, 0, 2 * CHUNK_SIZE);
        close_ns(ns);
        publish(unit_path("n%d", i), i == 0 ? "m0" : "m1");
    }
    for (int i = 0; i < 3; i++) {
        const char *name = named(i == 0 ? "first" : i == 1 ? "last" : "newest");
        CHECK_IS(deltafs_snapshot_merge(2, inputs, policies[i], name), DELTAFS_OK);
        check_in(name, "/f", &image[i > 0]);
        check_in(name, "/own0", &own[0]);
        check_in(name, "/own1", &own[1]);
    }
    deltafs_snapshot_paths *paths;
    const char *path;
    unsigned differ = 0;
    CHECK_IS(deltafs_snapshot_diff_open(inputs[0], named("last"), &paths), DELTAFS_OK);
    for (; deltafs_snapshot_paths_next(paths, &path) == DELTAFS_OK && path; differ++)
        CHECK(strcmp(path, "/f") == 0 || strcmp(path, "/own1") == 0);
    CHECK_IS(differ, 2);
    CHECK_IS(deltafs_snapshot_paths_close(paths), DELTAFS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(collected), cmocka_unit_test(on_top), cmocka_unit_test(merged)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
