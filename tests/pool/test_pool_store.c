/* The store of a server of a pool: names, chunks against an oracle in memory, damage. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "pool/store/pool_store.h"

#define FILE_BYTES (3 * POOL_CHUNK)
#define STEPS      4000

static char folder[] = "/tmp/test_pool_store.XXXXXX";
static char local[64];
static struct error e;

static struct pool_store *create(void)
{
    struct pool_store *s;

    assert_int_equal(pool_store_create(local, 3, &s, &e), DELTAFS_OK);
    return s;
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(local, sizeof local, "%s/local", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(folder); /* nothing is left */
}

static int put(struct pool_store *s, const char *path, uint64_t id, int is_new)
{
    struct pool_name name = {.id = id, .mode = S_IFREG};
    int status = pool_store_put(s, path, strlen(path), &name, is_new, &e);

    if (status == DELTAFS_ERR_EXISTS)
        assert_int_not_equal(name.id, id);
    return status;
}

static uint64_t find(struct pool_store *s, const char *path)
{
    struct pool_name name;
    int status = pool_store_find(s, path, strlen(path), &name, &e);

    return status == DELTAFS_OK ? name.id : 0;
}

static void test_names(void **state)
{
    struct pool_store *s = create();

    (void)state;
    assert_int_equal(put(s, "/a", 1, 1), DELTAFS_OK);
    assert_int_equal(put(s, "/a", 2, 1), DELTAFS_ERR_EXISTS);
    assert_int_equal(put(s, "/a/b", 3, 1), DELTAFS_OK);
    assert_int_equal(put(s, "/a", 4, 0), DELTAFS_OK);
    assert_int_equal(find(s, "/a"), 4);
    assert_int_equal(find(s, "/a/b"), 3);
    assert_int_equal(find(s, "/b"), 0);
    assert_int_equal(pool_store_remove(s, "/a", 2, &e), DELTAFS_OK);
    assert_int_equal(pool_store_remove(s, "/a", 2, &e), DELTAFS_ERR_NOT_FOUND);
    assert_int_equal(find(s, "/a/b"), 3);
    pool_store_destroy(s);
}

/* More names than a transaction has changes, listed in parts; only those of the folder, each once. */
static void test_list(void **state)
{
    enum { NAMES = 3000 };
    struct pool_store *s = create();
    static uint8_t seen[NAMES];
    uint8_t part[1000];
    char path[64], after[POOL_NAME_MAX + 1] = "";
    size_t used = 1, total = 0;

    (void)state;
    for (int i = 0; i < NAMES; i++) {
        snprintf(path, sizeof path, "/folder/%d", i);
        assert_int_equal(put(s, path, (uint64_t)i + 1, 1), DELTAFS_OK);
        snprintf(path, sizeof path, "/other/%d", i);
        assert_int_equal(put(s, path, (uint64_t)i + 1, 1), DELTAFS_OK);
    }
    while (used > 0) {
        assert_int_equal(pool_store_list(s, "/folder", 7, after, strlen(after), part, sizeof part, &used, &e),
                         DELTAFS_OK);
        for (size_t at = 0; at < used; total++) {
            struct pool_entry entry;
            memcpy(&entry, part + at, sizeof entry);
            memcpy(after, part + at + sizeof entry, entry.length);
            after[entry.length] = '\0';
            assert_int_equal(entry.id, (uint64_t)atoi(after) + 1);
            assert_int_equal(seen[atoi(after)]++, 0);
            at += POOL_ENTRY_BYTES(entry.length);
        }
    }
    assert_int_equal(total, NAMES);
    pool_store_destroy(s);
}

static void check(struct pool_store *s, uint64_t id, const uint8_t *oracle, uint64_t offset, size_t n)
{
    static uint8_t bytes[POOL_SLOT_BYTES];

    assert_int_equal(pool_store_read(s, id, offset, bytes, n, &e), DELTAFS_OK);
    assert_memory_equal(bytes, oracle + offset, n);
}

/* Random writes, reads and cuts of two files. */
static void test_bytes(void **state)
{
    struct pool_store *s = create();
    static uint8_t oracle[2][FILE_BYTES], bytes[POOL_SLOT_BYTES];
    struct pool_status status;

    (void)state;
    srand(7);
    for (int step = 0; step < STEPS; step++) {
        int file = rand() % 2, kind = rand() % 20;
        uint64_t offset = (uint64_t)rand() % FILE_BYTES;
        size_t most = POOL_CHUNK - offset % POOL_CHUNK, n = 1 + (size_t)rand() % (kind % 2 ? 9000 : POOL_SLOT_BYTES);
        if (kind % 3 == 0) {
            offset -= offset % POOL_BLOCK;
            n = (n + POOL_BLOCK - 1) / POOL_BLOCK * POOL_BLOCK;
        }
        n = n < most ? n : most;
        if (kind == 0) {
            memset(oracle[file] + offset, 0, FILE_BYTES - offset);
            assert_int_equal(pool_store_cut(s, 10 + (uint64_t)file, offset, NULL, &e), DELTAFS_OK);
        } else if (kind < 10) {
            memset(bytes, step % 251 + 1, n);
            memcpy(oracle[file] + offset, bytes, n);
            assert_int_equal(pool_store_write(s, 10 + (uint64_t)file, offset, bytes, n, &e), DELTAFS_OK);
        } else {
            check(s, 10 + (uint64_t)file, oracle[file], offset, n);
        }
    }
    for (int file = 0; file < 2; file++) {
        for (uint64_t offset = 0; offset < FILE_BYTES; offset += POOL_SLOT_BYTES)
            check(s, 10 + (uint64_t)file, oracle[file], offset, POOL_SLOT_BYTES);
        assert_int_equal(pool_store_cut(s, 10 + (uint64_t)file, 0, NULL, &e), DELTAFS_OK);
    }
    pool_store_status(s, &status);
    assert_int_equal(status.bytes, 0);
    pool_store_destroy(s);
}

/* A long file is removed in several parts. */
static void test_long(void **state)
{
    struct pool_store *s = create();
    struct pool_status status;
    int is_more = 0;

    (void)state;
    for (uint64_t i = 0; i < POOL_CUT_CHUNKS + 2; i++)
        assert_int_equal(pool_store_write(s, 1, i * POOL_CHUNK, "x", 1, &e), DELTAFS_OK);
    assert_int_equal(pool_store_cut(s, 1, POOL_CHUNK, &is_more, &e), DELTAFS_OK);
    assert_int_equal(is_more, 1);
    pool_store_status(s, &status);
    assert_int_equal(status.bytes, 2 * POOL_BLOCK);
    assert_int_equal(pool_store_cut(s, 1, POOL_CHUNK, &is_more, &e), DELTAFS_OK);
    assert_int_equal(is_more, 0);
    pool_store_status(s, &status);
    assert_int_equal(status.bytes, POOL_BLOCK);
    pool_store_destroy(s);
}

/* A place that is used again shows nothing of what it had. */
static void test_reuse(void **state)
{
    struct pool_store *s = create();
    static const uint8_t zeros[2 * POOL_BLOCK];
    uint8_t bytes[2 * POOL_BLOCK];

    (void)state;
    memset(bytes, 'x', sizeof bytes);
    assert_int_equal(pool_store_write(s, 1, 0, bytes, sizeof bytes, &e), DELTAFS_OK);
    assert_int_equal(pool_store_cut(s, 1, 0, NULL, &e), DELTAFS_OK);
    assert_int_equal(pool_store_write(s, 2, 100, "y", 1, &e), DELTAFS_OK);
    assert_int_equal(pool_store_read(s, 2, 0, bytes, sizeof bytes, &e), DELTAFS_OK);
    assert_int_equal(bytes[100], 'y');
    bytes[100] = 0;
    assert_memory_equal(bytes, zeros, sizeof bytes);
    pool_store_destroy(s);
}

static void test_damage(void **state)
{
    struct pool_store *s = create();
    uint8_t bytes[2 * POOL_BLOCK];
    char path[96];

    (void)state;
    memset(bytes, 'x', sizeof bytes);
    assert_int_equal(pool_store_write(s, 1, 0, bytes, sizeof bytes, &e), DELTAFS_OK);
    snprintf(path, sizeof path, "%s/bytes.0", local);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "y", 1, POOL_BLOCK + 5), 1);
    close(fd);
    assert_int_equal(pool_store_read(s, 1, 0, bytes, POOL_BLOCK, &e), DELTAFS_OK);
    assert_int_equal(pool_store_read(s, 1, 0, bytes, sizeof bytes, &e), DELTAFS_ERR_DAMAGED);
    /* Part of a damaged block cannot be replaced; all of it can. */
    assert_int_equal(pool_store_write(s, 1, POOL_BLOCK, bytes, 10, &e), DELTAFS_ERR_DAMAGED);
    assert_int_equal(pool_store_write(s, 1, POOL_BLOCK, bytes, POOL_BLOCK, &e), DELTAFS_OK);
    assert_int_equal(pool_store_read(s, 1, 0, bytes, sizeof bytes, &e), DELTAFS_OK);
    pool_store_destroy(s);
}

/* A folder with something in it is left alone. */
static void test_folder(void **state)
{
    struct pool_store *s = create(), *other;

    (void)state;
    assert_int_equal(pool_store_create(local, 3, &other, &e), DELTAFS_ERR_EXISTS);
    assert_int_equal(put(s, "/a", 1, 1), DELTAFS_OK);
    pool_store_destroy(s);
    assert_int_equal(mkdir(local, 0700), 0);
    s = create();
    pool_store_destroy(s);
    assert_int_equal(rmdir(local), 0); /* it was there before */
}

static pthread_barrier_t both;

static void *create_beside(void *out)
{
    struct pool_store *s = NULL;
    struct error why;

    pthread_barrier_wait(&both);
    int status = pool_store_create(local, 4, &s, &why);
    pthread_barrier_wait(&both);
    pool_store_destroy(s);
    *(int *)out = status;
    return NULL;
}

/* Two servers begin with one empty folder: one of them gets it. */
static void test_shared_folder(void **state)
{
    pthread_t thread[2];
    int status[2];

    (void)state;
    pthread_barrier_init(&both, NULL, 2);
    for (int round = 0; round < 20; round++) {
        assert_int_equal(mkdir(local, 0700), 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, create_beside, &status[i]), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(thread[i], NULL);
        assert_int_equal(status[0] == DELTAFS_OK, status[1] == DELTAFS_ERR_EXISTS);
        assert_int_equal(status[1] == DELTAFS_OK, status[0] == DELTAFS_ERR_EXISTS);
        assert_int_equal(rmdir(local), 0);
    }
    pthread_barrier_destroy(&both);
}

/* A file system of a few MiB, which only this process sees; returns whether there can be one. */
static int mount_small(const char *size)
{
    char options[32];

    snprintf(options, sizeof options, "size=%s", size);
    return unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && mount("none", folder, "tmpfs", 0, options) == 0;
}

/* A write that fails half way does not make a damaged block, which it did not reach, a valid one. */
static void test_half(void **state)
{
    enum { BEFORE = 20 };
    static uint8_t bytes[8 * POOL_BLOCK];
    const off_t at = (off_t)BEFORE * POOL_CHUNK;
    struct rlimit limit, most;
    struct pool_store *s = create();
    char path[100];

    (void)state;
    memset(bytes, 'a', sizeof bytes);
    for (uint64_t i = 0; i <= BEFORE; i++) /* the last one is behind the end of all other files of the store */
        assert_int_equal(pool_store_write(s, 1, i * POOL_CHUNK, bytes, sizeof bytes, &e), DELTAFS_OK);
    snprintf(path, sizeof path, "%s/bytes.0", local);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "y", 1, at + 6 * POOL_BLOCK), 1);
    close(fd);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    most = limit;
    most.rlim_cur = (rlim_t)at + 4 * POOL_BLOCK;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &most);
    memset(bytes, 'b', sizeof bytes);
    int status = pool_store_write(s, 1, BEFORE * (uint64_t)POOL_CHUNK, bytes, sizeof bytes, &e);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_not_equal(status, DELTAFS_OK);
    for (uint64_t i = 0; i < 8; i++) {
        status = pool_store_read(s, 1, BEFORE * (uint64_t)POOL_CHUNK + i * POOL_BLOCK, bytes, POOL_BLOCK, &e);
        assert_int_equal(status, i == 6 ? DELTAFS_ERR_DAMAGED : DELTAFS_OK);
        if (i != 6)
            assert_int_equal(bytes[POOL_BLOCK - 1], i < 4 ? 'b' : 'a');
    }
    pool_store_destroy(s);
}

/* When storage is full, calls fail, and nothing that is stored is lost; when files are removed, there is room again. */
static void test_full(void **state)
{
    static uint8_t bytes[POOL_SLOT_BYTES];
    struct pool_store *s;
    char path[64];
    uint64_t id = 0, names = 0;
    int status = DELTAFS_OK;

    (void)state;
    if (!mount_small("40m"))
        skip();
    s = create();
    while (status == DELTAFS_OK) {
        memset(bytes, (int)++id, sizeof bytes);
        status = pool_store_write(s, id, 0, bytes, sizeof bytes, &e);
    }
    assert_int_equal(status, DELTAFS_ERR_NO_SPACE);
    for (status = DELTAFS_OK; status == DELTAFS_OK; names++) {
        snprintf(path, sizeof path, "/%llu", (unsigned long long)names);
        status = put(s, path, names + 1, 1);
    }
    assert_int_equal(status, DELTAFS_ERR_NO_SPACE);
    for (uint64_t i = 1; i < id; i++) {
        assert_int_equal(pool_store_read(s, i, 0, bytes, sizeof bytes, &e), DELTAFS_OK);
        assert_int_equal(bytes[sizeof bytes - 1], (uint8_t)i);
    }
    for (uint64_t i = 1; i < id; i++)
        assert_int_equal(pool_store_cut(s, i, 0, NULL, &e), DELTAFS_OK);
    for (uint64_t i = 0; i + 1 < names; i++) {
        snprintf(path, sizeof path, "/%llu", (unsigned long long)i);
        assert_int_equal(find(s, path), i + 1);
        assert_int_equal(pool_store_remove(s, path, strlen(path), &e), DELTAFS_OK);
    }
    assert_int_equal(pool_store_write(s, 1, 0, bytes, sizeof bytes, &e), DELTAFS_OK);
    assert_int_equal(put(s, "/a", 1, 1), DELTAFS_OK);
    pool_store_destroy(s);
    umount(folder);
}

/* When there is no room for the record of a chunk, what the chunk has is as before. */
static void test_full_records(void **state)
{
    static uint8_t bytes[POOL_SLOT_BYTES], back[POOL_BLOCK];
    struct pool_store *s;
    char path[POOL_NAME_MAX + 1];
    uint64_t id = 0;
    int status = DELTAFS_OK;

    (void)state;
    if (!mount_small("40m"))
        skip();
    s = create();
    memset(bytes, 'a', sizeof bytes);
    while (status == DELTAFS_OK)
        status = pool_store_write(s, ++id, 0, bytes, sizeof bytes, &e);
    status = DELTAFS_OK;
    for (int i = 0; status == DELTAFS_OK; i++) {
        snprintf(path, sizeof path, "/%0200d", i);
        status = put(s, path, 1, 0); /* also of what is kept for changes */
    }
    assert_int_equal(status, DELTAFS_ERR_NO_SPACE);
    memset(bytes, 'b', sizeof bytes);
    assert_int_equal(pool_store_write(s, 1, 0, bytes, POOL_BLOCK, &e), DELTAFS_ERR_NO_SPACE);
    assert_int_equal(pool_store_read(s, 1, 0, back, sizeof back, &e), DELTAFS_OK);
    assert_int_equal(back[0], 'a');
    pool_store_destroy(s);
    umount(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names), cmocka_unit_test(test_list),         cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_long),  cmocka_unit_test(test_reuse),        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_half),  cmocka_unit_test(test_folder),       cmocka_unit_test(test_shared_folder),
        cmocka_unit_test(test_full),  cmocka_unit_test(test_full_records),
    };

    return cmocka_run_group_tests(tests, setup, teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
