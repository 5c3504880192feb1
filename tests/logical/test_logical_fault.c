/* Each file operation of each rank fails once, while several ranks (threads) write a logical file together, and while
 * another process has added to it: collective calls return the same status on all ranks, none waits for ever, the
 * handle can be closed, what a later call says went well is there, and what was there before is intact. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "unit_blocks.h"
#include "unit_help.h"
#include "unit_kth.h"
#include "unit_team.h"

#define RANKS     3
#define OUTSIDE   (BLOCKS - 2) /* blocks from here on are written by another process */
#define CALLS_MAX 32
#define SECONDS   60 /* for one history; then it hangs */

struct fault {
    const char *path, *index;
    int is_atomic, errnum;
    uint32_t rank; /* that fails, */
    uint64_t k;    /* at this operation */
};

struct part {
    const struct fault *fault;
    struct unit_member member;
    struct unit_blocks *blocks; /* of all; each rank its own */
    pthread_t thread;
    deltafs_logical *f;
    int status[CALLS_MAX]; /* of collective calls */
    size_t calls;
    char wrong[1000];
    int line;
};

static int is_own(const struct part *p, size_t i)
{
    return i < OUTSIDE && i % RANKS == p->member.rank;
}

static int note(struct part *p, int status)
{
    if (p->calls == CALLS_MAX)
        abort();
    return p->status[p->calls++] = status;
}

static int part_open(struct part *p, int flags)
{
    struct collective group = unit_team_group(&p->member);
    deltafs_options *o = unit_options("sync", "commit", "extents", p->fault->index, "memory", "8M", NULL);
    struct error e = {0};

    int status = note(p, deltafs_private_logical_open_group(p->fault->path, flags, o, &group, &p->f, &e));
    deltafs_options_destroy(o);
    return status;
}

/* Those of this rank that are not certain have what was written last, if that went well. */
static void part_write(struct part *p, uint32_t version)
{
    for (size_t i = 0; i < BLOCKS; i++)
        if (is_own(p, i) && unit_blocks_write(p->blocks, p->f, i, version) != DELTAFS_OK)
            unit_blocks_note(p->blocks, i, p->blocks->block[i].version[0]);
}

/* All that was written before it is there afterwards, of all ranks, and of the others. */
static int part_sync(struct part *p)
{
    int status = note(p, deltafs_logical_sync(p->f));
    uint8_t bytes[BLOCK_SIZE];
    size_t got;

    unit_team_wait(&p->member);
    for (size_t i = 0; i < BLOCKS && status == DELTAFS_OK; i++) {
        if (deltafs_logical_read(p->f, i * BLOCK_SIZE, bytes, BLOCK_SIZE, &got) != DELTAFS_OK)
            continue;
        PART_CHECK(p, got == BLOCK_SIZE);
        PART_CHECK(p, unit_blocks_match(p->blocks, i, bytes));
    }
    unit_team_wait(&p->member);
    return status;
}

static int is_certain(const struct part *p, size_t i)
{
    const struct unit_block *x = &p->blocks->block[i];
    uint32_t last = x->version[x->count - 1];

    /* A write that failed is followed by what was certain before. */
    return x->count == 1 || last != x->version[0];
}

static void part_settle(struct part *p)
{
    for (size_t i = 0; i < BLOCKS; i++)
        if (is_own(p, i) && is_certain(p, i))
            unit_blocks_settle(p->blocks, i);
}

/* Another process writes and closes. Only rank 0 calls it; nothing fails. */
static void outside(struct part *p, uint32_t version)
{
    deltafs_options *o = unit_options("sync", "none", NULL);
    deltafs_logical *f;
    int is_failing = p->fault->rank == 0;

    unit_team_wait(&p->member);
    if (p->member.rank == 0) {
        unit_kth_count(0);
        PART_CHECK(p, deltafs_logical_open(p->fault->path, O_WRONLY, o, &f) == DELTAFS_OK);
        for (size_t i = OUTSIDE; i < BLOCKS; i++) {
            PART_CHECK(p, unit_blocks_write(p->blocks, f, i, version) == DELTAFS_OK);
            unit_blocks_settle(p->blocks, i);
        }
        PART_CHECK(p, deltafs_logical_close(f) == DELTAFS_OK);
        unit_kth_count(is_failing);
    }
    deltafs_options_destroy(o);
    unit_team_wait(&p->member);
}

static void part_atomic(struct part *p)
{
    int status = note(p, deltafs_logical_set_atomic(p->f, 1));

    if (status == DELTAFS_OK)
        part_write(p, 30);
    unit_team_wait(&p->member);
    if (status == DELTAFS_OK && part_sync(p) == DELTAFS_OK)
        part_settle(p);
    outside(p, 31);
    note(p, deltafs_logical_set_atomic(p->f, 0));
}

/* Cut the file, and make it as long again; whichever of it fails. */
static void part_resize(struct part *p)
{
    size_t half = BLOCKS / 2;

    int status = note(p, deltafs_logical_truncate(p->f, half * BLOCK_SIZE));
    for (size_t i = half; i < BLOCKS; i++)
        if (is_own(p, i) || (i >= OUTSIDE && p->member.rank == 0)) {
            unit_blocks_note(p->blocks, i, 0);
            /* What the other process wrote since the last sync may come before or after. */
            if (status == DELTAFS_OK && i < OUTSIDE)
                unit_blocks_settle(p->blocks, i);
        }
    note(p, deltafs_logical_extend(p->f, BLOCKS * BLOCK_SIZE));
    unit_team_wait(&p->member);
}

static void *part_run(void *arg)
{
    struct part *p = arg;

    unit_kth_count(p->member.rank == p->fault->rank);
    if (part_open(p, O_RDWR) != DELTAFS_OK)
        return NULL;
    part_write(p, 10);
    if (part_sync(p) == DELTAFS_OK)
        part_settle(p);
    part_write(p, 11);
    outside(p, 12);
    if (part_sync(p) == DELTAFS_OK)
        part_settle(p);
    outside(p, 13);
    if (p->fault->is_atomic)
        part_atomic(p);
    part_resize(p);
    part_write(p, 40);
    if (part_sync(p) == DELTAFS_OK)
        part_settle(p);
    part_write(p, 50);
    if (note(p, deltafs_logical_close(p->f)) == DELTAFS_OK)
        part_settle(p);
    return NULL;
}

static void make(const char *path, struct unit_blocks *b)
{
    deltafs_logical *f;
    deltafs_options *o = unit_options("extents", "flatten", NULL);

    unit_blocks_init(b);
    for (int k = 0; k < 2; k++) {
        CHECK_IS(deltafs_logical_open(path, O_RDWR | O_CREAT, o, &f), DELTAFS_OK);
        for (size_t i = 0; i < BLOCKS; i++) {
            CHECK_IS(unit_blocks_write(b, f, i, 1 + (uint32_t)k), DELTAFS_OK);
            unit_blocks_settle(b, i);
        }
        CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    }
    deltafs_options_destroy(o);
}

/* Nothing fails any more. Bytes of a write that failed may be there or not, but not in part; no others may be. */
static void check(const struct fault *x, const struct unit_blocks *b)
{
    uint8_t bytes[BLOCK_SIZE];
    uint64_t size;
    size_t got;
    deltafs_logical *f;

    CHECK_IS(deltafs_logical_open(x->path, O_RDONLY, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_size(f, &size), DELTAFS_OK);
    CHECK(size <= BLOCKS * BLOCK_SIZE && size >= BLOCKS / 2 * BLOCK_SIZE);
    for (size_t i = 0; i < BLOCKS; i++) {
        memset(bytes, 0, sizeof bytes);
        CHECK_IS(deltafs_logical_read(f, i * BLOCK_SIZE, bytes, BLOCK_SIZE, &got), DELTAFS_OK);
        if (!unit_blocks_match(b, i, bytes))
            fail_msg("index %s, atomic %d, rank %u, operation %llu, errno %d: block %zu is wrong", x->index,
                     x->is_atomic, x->rank, (unsigned long long)x->k, x->errnum, i);
    }
    CHECK_IS(deltafs_logical_verify(f, NULL, NULL, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
}

/* Returns whether the operation was reached. */
static int run(const struct fault *x)
{
    static struct part part[RANKS];
    struct unit_team team;
    struct unit_blocks blocks;

    unit_remove(x->path);
    make(x->path, &blocks);
    unit_team_init(&team, RANKS);
    unit_kth_begin_default(x->k, x->errnum);
    alarm(SECONDS);
    for (uint32_t i = 0; i < RANKS; i++) {
        part[i] = (struct part){.fault = x, .member = {&team, i}, .blocks = &blocks};
        CHECK_IS(pthread_create(&part[i].thread, NULL, part_run, &part[i]), 0);
    }
    for (uint32_t i = 0; i < RANKS; i++)
        pthread_join(part[i].thread, NULL);
    alarm(0);
    unit_team_fini(&team);
    int is_reached = unit_kth_end();
    for (uint32_t i = 0; i < RANKS; i++) {
        if (part[i].wrong[0] || part[i].calls != part[0].calls ||
            memcmp(part[i].status, part[0].status, part[0].calls * sizeof(int)) != 0)
            fail_msg("index %s, atomic %d, rank %u, operation %llu, errno %d: rank %u, line %d: %s", x->index,
                     x->is_atomic, x->rank, (unsigned long long)x->k, x->errnum, i, part[i].line,
                     part[i].wrong[0] ? part[i].wrong : "calls return something else than on rank 0");
        for (size_t c = 0; c < part[i].calls && !is_reached; c++)
            CHECK_IS(part[i].status[c], DELTAFS_OK);
    }
    check(x, &blocks);
    return is_reached;
}

static void run_all(const char *index, int is_atomic, uint64_t step)
{
    struct fault x = {.path = unit_path("file"), .index = index, .is_atomic = is_atomic};
    int is_reached = 1;

    /* Ranks but the first are alike. */
    for (x.rank = 0; x.rank < RANKS - 1; x.rank++, is_reached = 1)
        for (x.k = 0; is_reached; x.k += step) {
            x.errnum = x.k % 2 ? ENOSPC : EIO;
            is_reached = run(&x);
        }
}

static void test_parallel(void **state)
{
    (void)state;
    run_all("parallel", 0, 1);
}

static void test_flatten(void **state)
{
    (void)state;
    run_all("flatten", 0, 1);
}

static void test_atomic(void **state)
{
    (void)state;
    run_all("parallel", 1, 13);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parallel), cmocka_unit_test(test_flatten),
                                       cmocka_unit_test(test_atomic)};

    return cmocka_run_group_tests_name("faults of a logical file", tests, unit_setup, unit_teardown) == 0 ? 0 : 1;
}
