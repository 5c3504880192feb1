/* The power goes at each operation of a short history of a logical file with sync=commit: whatever a
 * deltafs_logical_sync that returned has covered is read back exactly, what was written later is old or new, whether or
 * not the file was closed. Only where something was written later may it be damaged: its extents can have reached the
 * disk, and its bytes not. With sync=close the same holds of what a close has covered. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include "torture_io.h"
#include "unit_blocks.h"
#include "unit_help.h"
#include "unit_team.h"

struct crash {
    const char *path;
    struct unit_blocks blocks;
    uint64_t size[64]; /* that the file may have; the last is what was set last */
    size_t sizes;
    uint32_t version;
};

static void note_size(struct crash *c, uint64_t size)
{
    c->size[c->sizes++] = size;
}

static int write_some(struct crash *c, deltafs_logical *f, size_t from, size_t to)
{
    int status = DELTAFS_OK;

    for (size_t i = from; i < to; i++) {
        int one = unit_blocks_write(&c->blocks, f, i, ++c->version);
        status = status == DELTAFS_OK ? one : status;
        if ((i + 1) * BLOCK_SIZE > c->size[c->sizes - 1])
            note_size(c, (i + 1) * BLOCK_SIZE);
    }
    return status;
}

/* A sync covers what its handle has written. */
static void settle(struct crash *c, size_t from)
{
    for (size_t i = from; i < BLOCKS; i++)
        unit_blocks_settle(&c->blocks, i);
    c->size[0] = c->size[c->sizes - 1];
    c->sizes = 1;
}

static void sync_from(struct crash *c, deltafs_logical *f, size_t from)
{
    if (deltafs_logical_sync(f) == DELTAFS_OK)
        settle(c, from);
}

static void truncate_to(struct crash *c, deltafs_logical *f, size_t blocks)
{
    deltafs_logical_truncate(f, blocks * BLOCK_SIZE);
    note_size(c, blocks * BLOCK_SIZE);
    for (size_t i = blocks; i < BLOCKS; i++)
        unit_blocks_note(&c->blocks, i, 0);
}

static deltafs_options *options(void)
{
    return unit_options("sync", "commit", "memory", "8M", NULL);
}

/* One process: written, in atomic mode too, cut, and closed; then opened once more. */
static void history_alone(struct crash *c)
{
    deltafs_options *o = options();
    deltafs_logical *f = NULL;

    if (deltafs_logical_open(c->path, O_RDWR, o, &f) == DELTAFS_OK) {
        write_some(c, f, 0, 8);
        sync_from(c, f, 0);
        deltafs_logical_set_atomic(f, 1);
        write_some(c, f, 4, 8);
        sync_from(c, f, 0);
        write_some(c, f, 6, 12);
        deltafs_logical_set_atomic(f, 0);
        truncate_to(c, f, 10);
        sync_from(c, f, 0);
        write_some(c, f, 8, 20);
        deltafs_logical_close(f);
    }
    if (deltafs_logical_open(c->path, O_WRONLY, o, &f) == DELTAFS_OK) {
        write_some(c, f, 18, BLOCKS);
        sync_from(c, f, 18);
        write_some(c, f, 0, 2);
        deltafs_logical_close(f);
    }
    deltafs_options_destroy(o);
}

/* Truncated to nothing, and written again: what was there is removed. */
static void history_anew(struct crash *c)
{
    deltafs_options *o = options();
    deltafs_logical *f = NULL;

    if (deltafs_logical_open(c->path, O_RDWR, o, &f) == DELTAFS_OK) {
        truncate_to(c, f, 0);
        write_some(c, f, 0, 5);
        sync_from(c, f, 0);
        write_some(c, f, 3, 9);
        deltafs_logical_close(f);
    }
    deltafs_options_destroy(o);
}

/* Opened, written and closed, with and without the index in one file, and never synced; with sync=close each close is
 * as good as a sync. */
static void history_closed(struct crash *c, const char *sync)
{
    static const char *const index[] = {"parallel", "flatten", "parallel"};

    for (size_t i = 0; i < 3; i++) {
        deltafs_options *o = unit_options("sync", sync, "extents", index[i], "memory", "8M", NULL);
        deltafs_logical *f = NULL;
        if (deltafs_logical_open(c->path, i == 1 ? O_RDWR : O_WRONLY, o, &f) == DELTAFS_OK) {
            int status = write_some(c, f, 5 * i, 5 * i + 9);
            if (deltafs_logical_close(f) == DELTAFS_OK && status == DELTAFS_OK && strcmp(sync, "close") == 0)
                settle(c, 0);
        }
        deltafs_options_destroy(o);
    }
}

static void history_closed_only(struct crash *c)
{
    history_closed(c, "commit");
}

static void history_closed_synced(struct crash *c)
{
    history_closed(c, "close");
}

struct rank {
    struct crash *crash;
    struct unit_member member;
};

/* Two ranks, each every other block, whose logs are in folders on a volume. */
static void *run_rank(void *arg)
{
    struct rank *r = arg;
    struct crash *c = r->crash;
    struct collective group = unit_team_group(&r->member);
    deltafs_options *o = unit_options("sync", "commit", "memory", "8M", "volumes", unit_path("volume"), NULL);
    deltafs_logical *f;
    struct error e = {0};

    for (uint32_t round = 0; round < 2; round++) {
        if (deltafs_private_logical_open_group(c->path, O_RDWR, o, &group, &f, &e) != DELTAFS_OK)
            break;
        for (uint32_t k = 0; k < 3; k++) {
            for (size_t i = r->member.rank; i < BLOCKS; i += 2)
                unit_blocks_write(&c->blocks, f, i, 100 + round * 10 + k);
            unit_team_wait(&r->member);
            int status = k < 2 ? deltafs_logical_sync(f) : deltafs_logical_close(f);
            unit_team_wait(&r->member);
            if (status == DELTAFS_OK && k < 2 && r->member.rank == 0)
                settle(c, 0);
            unit_team_wait(&r->member);
        }
    }
    deltafs_options_destroy(o);
    return NULL;
}

static void history_of_two(struct crash *c)
{
    struct unit_team team;
    struct rank rank[2];
    pthread_t thread[2];

    unit_team_init(&team, 2);
    for (uint32_t i = 0; i < 2; i++) {
        rank[i] = (struct rank){c, {&team, i}};
        CHECK_IS(pthread_create(&thread[i], NULL, run_rank, &rank[i]), 0);
    }
    for (uint32_t i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    unit_team_fini(&team);
}

static void note_repair(int status, const char *message, void *arg)
{
    (void)status;
    *(int *)arg |= strstr(message, "s00000000/SESSION: is missing") != NULL;
}

/* The first session is there, or its removal is told from a loss. */
static void check_removal(const struct crash *c, uint64_t k, uint64_t seed)
{
    int is_missed = 0;

    /* Of a later one it may find a bucket whose folder on the volume the crash has taken. */
    const struct deltafs_repair_options dry = {.struct_size = sizeof dry, .dry_run = 1};
    deltafs_logical_repair(c->path, &dry, note_repair, &is_missed);
    if (is_missed)
        fail_msg("operation %llu, seed %llu: repair brings a removed session back", (unsigned long long)k,
                 (unsigned long long)seed);
}

static void check(const struct crash *c, uint64_t k, uint64_t seed)
{
    deltafs_logical *f = NULL;
    uint8_t bytes[BLOCK_SIZE];
    uint64_t size;
    size_t got, is_size = 0;

    check_removal(c, k, seed);
    int status = deltafs_logical_open(c->path, O_RDONLY, NULL, &f);
    /* The disk has the record of a session that was never synced, and nothing else of it: a repair accepts the loss. */
    if (status == DELTAFS_ERR_DAMAGED && strstr(deltafs_errmsg(NULL), "MANIFEST says")) {
        CHECK(!strstr(deltafs_errmsg(NULL), "s00000000"));
        CHECK_IS(deltafs_logical_repair(c->path, NULL, NULL, NULL), DELTAFS_OK);
        status = deltafs_logical_open(c->path, O_RDONLY, NULL, &f);
    }
    if (status != DELTAFS_OK)
        fail_msg("operation %llu, seed %llu: it cannot be opened: %s", (unsigned long long)k, (unsigned long long)seed,
                 deltafs_errmsg(NULL));
    CHECK_IS(deltafs_logical_size(f, &size), DELTAFS_OK);
    for (size_t i = 0; i < c->sizes; i++)
        is_size |= size == c->size[i];
    if (!is_size)
        fail_msg("operation %llu, seed %llu: size %llu", (unsigned long long)k, (unsigned long long)seed,
                 (unsigned long long)size);
    for (size_t i = 0; i < BLOCKS; i++) {
        memset(bytes, 0, sizeof bytes);
        status = deltafs_logical_read(f, i * BLOCK_SIZE, bytes, BLOCK_SIZE, &got);
        if (status == DELTAFS_ERR_DAMAGED && !unit_blocks_is_settled(&c->blocks, i))
            continue;
        if (status != DELTAFS_OK || !unit_blocks_match(&c->blocks, i, bytes))
            fail_msg("operation %llu, seed %llu: block %zu: %s", (unsigned long long)k, (unsigned long long)seed, i,
                     status != DELTAFS_OK ? deltafs_errmsg(NULL) : "wrong");
    }
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    /* Whoever comes next can write. */
    CHECK_IS(deltafs_logical_open(c->path, O_RDWR, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_write(f, 5, "abc", 3), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_open(c->path, O_RDONLY, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_read(f, 5, bytes, 3, &got), DELTAFS_OK);
    CHECK(memcmp(bytes, "abc", 3) == 0);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
}

static int run(void (*history)(struct crash *), uint64_t k, uint64_t seed)
{
    static struct crash c;
    deltafs_logical *f;
    deltafs_options *o = options();

    c = (struct crash){.path = unit_path("file"), .sizes = 1};
    unit_remove(c.path);
    unit_remove(unit_path("volume"));
    CHECK_IS(mkdir(unit_path("volume"), 0777), 0);
    unit_blocks_init(&c.blocks);
    /* What is there before is durable. */
    CHECK_IS(deltafs_logical_open(c.path, O_RDWR | O_CREAT, o, &f), DELTAFS_OK);
    write_some(&c, f, 0, BLOCKS);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    deltafs_options_destroy(o);
    settle(&c, 0);
    torture_io_begin(TORTURE_CRASH, k, seed);
    history(&c);
    int has_failed = torture_io_has_failed();
    CHECK_IS(torture_io_open_files(), 0);
    torture_io_lose_power();
    torture_io_end();
    check(&c, k, seed);
    return has_failed;
}

/* `seeds`: of what gets lost, for each operation. */
static void run_all(void (*history)(struct crash *), uint64_t seeds)
{
    int has_failed = 1;

    for (uint64_t k = 0; has_failed; k++)
        for (uint64_t seed = 0; seed < seeds; seed++)
            has_failed = run(history, k, unit_seed + 1000 * k + seed);
}

static void test_alone(void **state)
{
    (void)state;
    run_all(history_alone, 2);
}

static void test_anew(void **state)
{
    (void)state;
    run_all(history_anew, 4);
}

static void test_closed(void **state)
{
    (void)state;
    run_all(history_closed_only, 8);
    run_all(history_closed_synced, 2);
}

static void test_two(void **state)
{
    (void)state;
    run_all(history_of_two, 1);
}

/* Make a file, and write nothing. Whether it must be there after a crash. */
static int create(const char *path, const char *sync, int *is_closed)
{
    deltafs_options *o = unit_options("sync", sync, NULL);
    deltafs_logical *f;
    int is_sure = 0;

    *is_closed = 0;
    if (deltafs_logical_open(path, O_RDWR | O_CREAT | O_EXCL, o, &f) == DELTAFS_OK) {
        is_sure = strcmp(sync, "commit") == 0 && deltafs_logical_sync(f) == DELTAFS_OK;
        *is_closed = deltafs_logical_close(f) == DELTAFS_OK;
        is_sure |= strcmp(sync, "close") == 0 && *is_closed;
    }
    deltafs_options_destroy(o);
    return is_sure;
}

/* A file that was made and synced is there, though nothing was written to it. */
static void test_created(void **state)
{
    static const char *const sync[] = {"commit", "close"};
    const char *path = unit_path("created");
    int goes_on = 1, is_closed, sure = 0;
    deltafs_logical *f;

    (void)state;
    for (uint64_t k = 0; goes_on; k++) {
        goes_on = 0;
        for (uint64_t i = 0; i < 8; i++) {
            unit_remove(path);
            torture_io_begin(TORTURE_CRASH, k, unit_seed + 1000 * k + i);
            int is_sure = create(path, sync[i % 2], &is_closed);
            int has_failed = torture_io_has_failed();
            goes_on |= has_failed;
            CHECK_IS(torture_io_open_files(), 0);
            torture_io_lose_power();
            torture_io_end();
            CHECK(has_failed || (is_sure && is_closed));
            sure += is_sure;
            int status = deltafs_logical_open(path, O_RDONLY, NULL, &f);
            CHECK(status == DELTAFS_OK || (!is_sure && status == DELTAFS_ERR_NOT_FOUND));
            if (status == DELTAFS_OK)
                CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
        }
    }
    CHECK(sure > 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone), cmocka_unit_test(test_anew),
                                       cmocka_unit_test(test_closed), cmocka_unit_test(test_two),
                                       cmocka_unit_test(test_created)};

    return cmocka_run_group_tests_name("crashes of a logical file", tests, unit_setup, unit_teardown) == 0 ? 0 : 1;
}
