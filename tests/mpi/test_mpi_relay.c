/* A rank whose storage has stopped hands on what is others'.
 *
 *     test_mpi_relay
 *
 * The shuffle alone, by the routes that have ranks in the middle. A rank's storage takes nothing until all the others
 * have what they send each other, far more than fits on the way, but for what may stand in buffers that are not full.
 * If that rank did not hand it on meanwhile, it would never open: then a deadline makes the test fail. At that time the
 * rank waits to store records of its own, and its neighbour's stand before it in their ring. Each rank is the one in
 * turn. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "directory/format/partition.h"
#include "mpi/shuffle/channel.h"
#include "mpi/shuffle/shuffle.h"
#include "mpi/shuffle/topology.h"
#include "test_mpi_check.h"
#include "test_mpi_nodes.h"

#define MESSAGE   1024 /* bytes */
#define CHUNK     512
#define ITEM      16
#define RANKS_MAX 16
#define KEYS      4   /* of each rank */
#define EARLY     60u /* records for the stalled rank of its neighbour, and of itself: those of two chunks */
#define DEADLINE  60  /* seconds */

/* What ranks see of each other. */
struct board {
    _Atomic uint64_t got[RANKS_MAX]; /* records stored */
    atomic_int is_open;              /* the stalled rank's storage */
    atomic_int is_client_cached;
};

static struct board *board;
static uint64_t keys_of[RANKS_MAX][KEYS];
static struct rank_group *group;
static struct topology topology;
static uint32_t rank, ranks, stalled;
static uint64_t pair;      /* records of one rank for another */
static uint64_t threshold; /* records that a rank must have, but for the stalled one */
static time_t start;
static struct shuffle *shuffle;
static uint64_t next[RANKS_MAX]; /* number of the next record of each rank */

/* Whether the others have their records, or it is too late. */
static int is_open(void)
{
    if (board->is_open)
        return 1;
    for (uint32_t i = 0; i < ranks; i++)
        if (i != stalled && board->got[i] < threshold && time(NULL) < start + DEADLINE)
            return 0;
    for (uint32_t i = 0; i < ranks; i++)
        if (i != stalled && board->got[i] < threshold)
            board->is_client_cached = 1;
    board->is_open = 1;
    return 1;
}

/* Records of one rank come in its order, since they go one way. */
static size_t store(void *arg, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                    size_t value_stride, size_t size)
{
    (void)arg;
    if (rank == stalled && !is_open())
        return 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t v, key;
        memcpy(&v, values + i * value_stride, sizeof v);
        memcpy(&key, keys + i * key_stride, sizeof key);
        uint32_t from = (uint32_t)(v >> 32) % RANKS_MAX;
        CHECK(size == 8 && partition_by_hash(key, ranks) == rank);
        CHECK((uint32_t)v == next[from]);
        next[from]++;
    }
    board->got[rank] += n;
    return n;
}

static void give_way(void *arg)
{
    (void)arg;
    if (!shuffle_progress(shuffle))
        sched_yield();
}

static void put(uint32_t to, uint64_t first, uint64_t n)
{
    for (uint64_t i = first; i < first + n; i++) {
        uint64_t v = (uint64_t)rank << 32 | i;
        shuffle_put(shuffle, 1, (const uint8_t *)&keys_of[to][i % KEYS], 8, (const uint8_t *)&v, 8, 8);
    }
}

/* The same from and to everybody, but for the order. */
static void put_all(int is_neighbour)
{
    uint64_t early = rank == stalled || is_neighbour ? EARLY : 0;

    put(stalled, 0, early);
    for (uint64_t i = 0; i < pair; i += 10)
        for (uint32_t to = 0; to < ranks; to++)
            if (to != stalled)
                put(to, i, 10);
    /* More of them would stand before others' records, in channels that lead to the stalled rank and through it. */
    while (!is_open())
        give_way(NULL);
    put(stalled, early, pair - early);
}

static void choose_keys(void)
{
    uint32_t n[RANKS_MAX] = {0}, full = 0;

    for (uint64_t key = 0; full < ranks; key++) {
        uint32_t owner = partition_by_hash(key, ranks);
        if (n[owner] < KEYS) {
            keys_of[owner][n[owner]++] = key;
            full += n[owner] == KEYS;
        }
    }
}

/* Records that may stand in buffers that are not full, of all ranks together. */
static uint64_t count_standing(const struct router *r)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < ranks; i++)
        for (int stage = 0; stage < STAGES; stage++)
            n += router_peers(r, i, (enum router_stage)stage) * (MESSAGE / ITEM);
    return n;
}

static void open_shuffle(const struct plan *plan, int cache)
{
    struct shuffle_config config = {.plan = plan,
                                    .rank = rank,
                                    .ranks = ranks,
                                    .comm = group->comm,
                                    .cache = cache,
                                    .value_size = 8,
                                    .store = store,
                                    .wait = give_way};
    struct error e;

    CHECK(shuffle_create(&config, &shuffle, &e) == DELTAFS_OK);
    CHECK(shuffle_share(shuffle, topology.node, &e) == DELTAFS_OK);
    check_require();
}

/* One round. */
static void run(const struct plan *p)
{
    const struct layout *l = &topology.layout;
    struct shuffle_stat before, after;
    uint64_t relayed = 0;
    int is_neighbour = rank != stalled && layout_node(l, rank) == layout_node(l, stalled);

    check_about("route %s, %u nodes, rank %u stalls", plan_route_name(p->router.kind), l->nodes, stalled);
    board->got[rank] = 0;
    board->is_open = board->is_client_cached = 0;
    memset(next, 0, sizeof next);
    start = time(NULL);
    check_require();
    shuffle_get_stat(shuffle, &before);
    put_all(is_neighbour);
    shuffle_get_stat(shuffle, &after);
    shuffle_end(shuffle);
    CHECK(!board->is_client_cached);
    for (uint32_t i = 0; i < ranks; i++)
        CHECK(next[i] == pair);
    for (int i = 0; i < STAGES; i++)
        relayed += after.records[i] - before.records[i];
    /* More than its own: so the test tests something. */
    if (rank == stalled && router_peers(&p->router, rank, STAGE_NET) > 0)
        CHECK(relayed > pair * (ranks - 1));
    check_require();
    shuffle_begin(shuffle);
}

static void no_wait(void *arg)
{
    (void)arg;
}

/* `cache`: that all ranks share; 0: none. */
static void test_route(enum router_kind kind, uint32_t nodes, int cache)
{
    struct error e;

    CHECK(mpi_group_create(MPI_COMM_WORLD, sizeof *group, no_wait, &group, &e) == DELTAFS_OK);
    pretend_nodes((int)nodes);
    if (!CHECK(topology_init(&topology, group, &e) == DELTAFS_OK))
        return;
    rank = (uint32_t)group->rank;
    struct plan plan = {.router = router_make(kind, &topology.layout, 1),
                        .message = MESSAGE,
                        .buffers = PLAN_BUFFERS_MIN,
                        .chunk = CHUNK,
                        .partitions = ranks};
    uint64_t standing = count_standing(&plan.router);
    pair = (standing / 10 + 100) * 20;
    threshold = pair * (ranks - 1) - standing;
    open_shuffle(&plan, cache);
    for (stalled = 0; stalled < ranks; stalled++)
        run(&plan);
    stalled = ranks; /* nobody */
    shuffle_wind_up(shuffle);
    check_require();
    shuffle_destroy(shuffle);
    topology_fini(&topology, 0);
    mpi_group_destroy(group);
}

int main(int argc, char **argv)
{
    MPI_Win window;
    MPI_Aint bytes;
    int unit;

    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    ranks = (uint32_t)check_ranks;
    if (!CHECK(ranks >= 4 && ranks <= RANKS_MAX))
        return check_end();
    bytes = check_rank == 0 ? (MPI_Aint)sizeof *board : 0;
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &board, &window);
    MPI_Win_shared_query(window, 0, &bytes, &unit, &board);
    choose_keys();
    test_route(ROUTER_3HOP, 2, 0);
    test_route(ROUTER_3HOP, ranks / 2, 1);
    test_route(ROUTER_GRID, ranks / 2, 1);
    MPI_Win_free(&window);
    check_about("at the end");
    return check_end();
}
