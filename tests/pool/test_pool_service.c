/* Requests to servers of a pool, by hand: in orders that processes meet rarely. Two servers, without MPI. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "pool/pool_path.h"
#include "pool/server/pool_service.h"

static char folder[] = "/tmp/test_pool_service.XXXXXX";
static struct pool_service service[2];
static struct pool_answer answer;
static uint8_t out[POOL_SLOT_BYTES];

static int setup(void **state)
{
    struct error e;
    char local[64];

    (void)state;
    if (!mkdtemp(folder))
        return -1;
    for (uint32_t i = 0; i < 2; i++) {
        snprintf(local, sizeof local, "%s/%u", folder, i);
        service[i] = (struct pool_service){.server = i, .servers = 2};
        if (pool_store_create(local, i, &service[i].store, &e) != DELTAFS_OK ||
            pool_service_begin(&service[i], &e) != DELTAFS_OK)
            return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        pool_store_destroy(service[i].store);
    return rmdir(folder);
}

static int ask(uint32_t server, struct pool_request r, const char *path)
{
    r.bytes = (uint32_t)strlen(path);
    pool_service_do(&service[server], &r, path, out, &answer);
    return answer.status;
}

static uint32_t owner(const char *path)
{
    return pool_owner(path, strlen(path), 2);
}

/* A new name below `above` that is on this server. */
static const char *name_on(uint32_t server, const char *above)
{
    static char path[4][64];
    static int next, i;
    char *p = path[next++ % 4];

    do
        snprintf(p, sizeof path[0], "%s/%d", above, i++);
    while (owner(p) != server);
    return p;
}

static int create(const char *path, mode_t mode, uint64_t id, uint32_t generation)
{
    const struct pool_request r = {.op = POOL_CREATE,
                                   .mode = mode,
                                   .flags = id != 0 ? POOL_HAS_FOLDER : 0,
                                   .folder = id,
                                   .generation = generation};

    return ask(owner(path), r, path);
}

/* A server becomes a member; returns the generation. */
static uint32_t member(const char *path, uint32_t server, uint32_t over)
{
    const struct pool_request r = {.op = POOL_REGISTER, .value = server, .generation = over};

    assert_int_equal(ask(owner(path), r, path), DELTAFS_OK);
    return answer.attributes.generation;
}

static int forget(uint32_t server, const char *path, uint64_t id, uint32_t generation)
{
    const struct pool_request r = {.op = POOL_FORGET, .id = id, .generation = generation};

    return ask(server, r, path);
}

/* A folder on server 0; its number. */
static uint64_t make_folder(const char *path)
{
    assert_int_equal(create(path, S_IFDIR | 0700, 0, 0), DELTAFS_OK);
    return answer.attributes.id;
}

/* An entry on a server that is no member is refused until it is one. */
static void test_members(void **state)
{
    const char *path = name_on(0, "");
    uint64_t id = make_folder(path);
    const char *entry = name_on(1, path);

    (void)state;
    assert_int_equal(create(entry, S_IFREG, 0, 0), POOL_NEEDS_FOLDER);
    uint32_t generation = member(path, 1, 0);
    assert_int_equal(create(entry, S_IFREG, id, generation), DELTAFS_OK);
    assert_int_equal(create(entry, S_IFREG, 0, 0), DELTAFS_ERR_EXISTS);
    assert_int_equal(forget(1, path, id, generation), DELTAFS_ERR_NOT_EMPTY);
    /* Of a folder that is a file, or is not there, nobody becomes a member. */
    const struct pool_request r = {.op = POOL_REGISTER};
    assert_int_equal(ask(owner(entry), r, entry), DELTAFS_ERR_NOT_FOLDER);
    assert_int_equal(ask(0, r, name_on(0, "/none")), DELTAFS_ERR_NOT_FOUND);
}

/* A server has forgotten a folder, and a request to forget it that is older comes late. What was registered before must
 * not be taken: the folder may be gone by now, and the entry could never be reached. */
static void test_late_forget(void **state)
{
    const char *path = name_on(0, "");
    uint64_t id = make_folder(path);
    const char *entry = name_on(1, path);
    uint32_t first = member(path, 1, 0);

    (void)state;
    assert_int_equal(forget(1, path, id, first), DELTAFS_OK);
    assert_int_equal(create(entry, S_IFREG, id, first), POOL_NEEDS_FOLDER);
    assert_int_equal(answer.value, first);
    uint32_t second = member(path, 1, first);
    assert_int_not_equal(first, second);
    assert_int_equal(forget(1, path, id, second), DELTAFS_OK);
    assert_int_equal(forget(1, path, id, first), DELTAFS_OK);
    assert_int_equal(create(entry, S_IFREG, id, second), POOL_NEEDS_FOLDER);
}

/* A folder is not removed if a server has become a member since the list of members was read. */
static void test_remove(void **state)
{
    const char *path = name_on(0, "");
    uint64_t id = make_folder(path);
    const struct pool_request members = {.op = POOL_MEMBERS};
    struct pool_request r = {.op = POOL_RMDIR, .id = id};

    (void)state;
    assert_int_equal(ask(0, members, path), DELTAFS_OK);
    r.generation = answer.attributes.generation;
    r.value = answer.value;
    member(path, 1, 0);
    assert_int_equal(ask(0, r, path), POOL_HAS_CHANGED);
    assert_int_equal(ask(0, members, path), DELTAFS_OK);
    r.value = answer.value;
    assert_int_equal(ask(0, r, path), DELTAFS_OK);
    assert_int_equal(ask(0, r, path), DELTAFS_ERR_NOT_FOUND);
}

static uint64_t append(uint64_t id, uint64_t size)
{
    assert_int_equal(ask(0, (struct pool_request){.op = POOL_APPEND, .id = id, .size = size}, ""), DELTAFS_OK);
    return answer.value;
}

/* What is appended by several processes gets places of its own, which are in the file when they are written. */
/* A name whose file was removed by another name can be removed, and created. */
static void test_dangling(void **state)
{
    const char *path = name_on(0, "");
    const struct pool_request create = {.op = POOL_CREATE, .mode = S_IFREG | 0600},
                              unlink = {.op = POOL_UNLINK, .flags = POOL_HAS_INODE};

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask(0, create, path), DELTAFS_OK);
        uint64_t id = answer.attributes.id;
        assert_int_equal(ask(0, (struct pool_request){.op = POOL_REMOVE, .id = id}, ""), DELTAFS_OK);
        assert_int_equal(ask(0, (struct pool_request){.op = POOL_LOOKUP}, path), DELTAFS_ERR_NOT_FOUND);
        if (i > 0) {
            assert_int_equal(ask(0, create, path), DELTAFS_OK);
            assert_true(answer.attributes.id != id);
            assert_int_equal(ask(0, (struct pool_request){.op = POOL_LOOKUP}, path), DELTAFS_OK);
        }
        assert_int_equal(ask(0, unlink, path), DELTAFS_OK);
        assert_int_equal(ask(0, unlink, path), DELTAFS_ERR_NOT_FOUND);
    }
}

/* Locks go with the file. */
static void test_locked(void **state)
{
    const char *path = name_on(0, "");

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask(0, (struct pool_request){.op = POOL_CREATE, .mode = S_IFREG | 0600}, path), DELTAFS_OK);
        const struct pool_request lock = {
            .op = POOL_LOCK, .id = answer.attributes.id, .value = 7, .mode = POOL_EXCLUSIVE, .size = 100};
        assert_int_equal(ask(0, lock, ""), DELTAFS_OK);
        assert_int_equal(service[0].locks.count, 1);
        assert_int_equal(ask(0, (struct pool_request){.op = POOL_UNLINK, .flags = POOL_HAS_INODE}, path), DELTAFS_OK);
        assert_int_equal(service[0].locks.count, 0);
    }
}

static void test_append(void **state)
{
    struct pool_request r = {.op = POOL_STAT};

    (void)state;
    assert_int_equal(create(name_on(0, ""), S_IFREG | 0600, 0, 0), DELTAFS_OK);
    uint64_t id = r.id = answer.attributes.id;
    assert_int_equal(append(id, 10), 0);
    assert_int_equal(append(id, 20), 10);
    assert_int_equal(ask(0, r, ""), DELTAFS_OK);
    assert_int_equal(answer.attributes.size, 0);
    r = (struct pool_request){.op = POOL_GROW, .id = id, .size = 40};
    assert_int_equal(ask(0, r, ""), DELTAFS_OK);
    assert_int_equal(append(id, 1), 40);
    r = (struct pool_request){.op = POOL_TRUNCATE, .id = id, .size = 5};
    assert_int_equal(ask(0, r, ""), DELTAFS_OK);
    assert_int_equal(append(id, 1), 5);
    r = (struct pool_request){.op = POOL_APPEND, .id = id, .size = POOL_FILE_MAX};
    assert_int_equal(ask(0, r, ""), DELTAFS_ERR_TOO_LARGE);
}

static int write_byte(uint32_t server, uint64_t id, uint64_t offset, uint32_t flags)
{
    return ask(server, (struct pool_request){.op = POOL_WRITE, .flags = flags, .id = id, .offset = offset}, "x");
}

/* A client is killed after the first request that truncates a large file: nothing old is behind the end. */
static void test_truncate(void **state)
{
    struct pool_request r = {.op = POOL_TRUNCATE};
    uint64_t last = POOL_CUT_CHUNKS * (uint64_t)POOL_CHUNK;

    (void)state;
    assert_int_equal(create(name_on(0, ""), S_IFREG | 0600, 0, 0), DELTAFS_OK);
    r.id = answer.attributes.id;
    for (uint64_t i = 0; i <= last; i += POOL_CHUNK)
        assert_int_equal(write_byte(0, r.id, i, POOL_HAS_INODE), DELTAFS_OK);
    assert_int_equal(ask(0, r, ""), POOL_HAS_CHANGED);
    assert_int_equal(ask(0, (struct pool_request){.op = POOL_STAT, .id = r.id}, ""), DELTAFS_OK);
    assert_int_equal(answer.attributes.size, last + 1);
    assert_int_equal(ask(0, r, ""), DELTAFS_OK);
    assert_int_equal(answer.value, last + 1);
    out[0] = 'y';
    assert_int_equal(ask(0, (struct pool_request){.op = POOL_READ, .id = r.id, .offset = last, .size = 1}, ""),
                     DELTAFS_OK);
    assert_int_equal(out[0], 0);
}

/* Bytes come to a server after it has removed the file. */
static void test_late_write(void **state)
{
    const struct pool_request cut = {.op = POOL_CUT, .id = 9};
    struct pool_request removed = cut;

    (void)state;
    removed.flags = POOL_IS_REMOVED;
    assert_int_equal(ask(1, cut, ""), DELTAFS_OK);
    assert_int_equal(write_byte(1, 9, 0, 0), DELTAFS_OK);
    assert_int_equal(ask(1, removed, ""), DELTAFS_OK);
    assert_int_equal(write_byte(1, 9, 0, 0), DELTAFS_ERR_NOT_FOUND);
    assert_int_equal(write_byte(1, 10, 0, 0), DELTAFS_OK);
}

/* Requests that no client of ours makes. */
static void test_malformed(void **state)
{
    static const char *const paths[] = {"", "a", "/a/", "//", "/a//b", "/.", "/a/..", "/a/../b"};
    struct pool_request r = {.op = POOL_LOOKUP};

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_int_equal(ask(0, r, paths[i]), DELTAFS_ERR_INVALID);
    for (r.op = POOL_OPS; r.op < POOL_OPS + 3; r.op++)
        assert_int_equal(ask(0, r, "/a"), DELTAFS_ERR_INVALID);
    assert_int_equal(create(name_on(0, ""), S_IFIFO, 0, 0), DELTAFS_ERR_INVALID);
    r = (struct pool_request){.op = POOL_READ, .size = POOL_SLOT_BYTES + 1};
    assert_int_equal(ask(0, r, ""), DELTAFS_ERR_INVALID);
    r = (struct pool_request){.op = POOL_READ, .size = 2, .offset = POOL_CHUNK - 1};
    assert_int_equal(ask(0, r, ""), DELTAFS_ERR_INVALID);
    r = (struct pool_request){.op = POOL_WRITE, .offset = UINT64_MAX - 5};
    assert_int_equal(ask(0, r, "bytes"), DELTAFS_ERR_INVALID);
    r = (struct pool_request){.op = POOL_GROW, .size = UINT64_MAX};
    assert_int_equal(ask(0, r, ""), DELTAFS_ERR_TOO_LARGE);
    r = (struct pool_request){.op = POOL_SYMLINK}; /* no target */
    assert_int_equal(ask(0, r, name_on(0, "")), DELTAFS_ERR_INVALID);
    r = (struct pool_request){.op = POOL_REGISTER, .value = 2};
    assert_int_equal(ask(0, r, "/"), DELTAFS_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),  cmocka_unit_test(test_late_forget), cmocka_unit_test(test_remove),
        cmocka_unit_test(test_append),   cmocka_unit_test(test_dangling),    cmocka_unit_test(test_locked),
        cmocka_unit_test(test_truncate), cmocka_unit_test(test_late_write),  cmocka_unit_test(test_malformed)};

    return cmocka_run_group_tests(tests, setup, teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
