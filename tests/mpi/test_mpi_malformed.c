/* Messages that no rank of ours sends: those who get them say so, and all rounds end.
 *
 *     test_mpi_malformed
 *
 * Three ranks on two nodes, by the route 3hop. The one on a node of its own has no shuffle: it makes up messages for
 * the relay of the other two, with records for the third rank, and ends its round. Meanwhile the relay has a long value
 * of its own for that one. Then, with values of one size and by two routes, it makes up records that have gone astray.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/coding.h"
#include "directory/format/partition.h"
#include "mpi/shuffle/channel.h"
#include "mpi/shuffle/shuffle.h"
#include "mpi/shuffle/topology.h"
#include "test_mpi_check.h"
#include "test_mpi_nodes.h"

enum { RANKS = 3, FORGER = 2, MESSAGE = 1024, CHUNK = 512, VALUE = 4000, SHORT = 8, DEADLINE = 20 };

/* An item that cannot be right, with `size` bytes; or the first piece of a value for the relay itself, and a second one
 * that says that the value has `second` bytes. */
struct forgery {
    uint32_t value_size, offset, size;
    const char *says; /* at the relay */
    uint32_t second;
};

static const struct forgery forgeries[] = {
    {8, 8, 0, "cannot be right", 0},   {8, 0, 0, "cannot be right", 0},       {8, 9, 1, "cannot be right", 0},
    {8, 4, 8, "cannot be right", 0},   {8, 0, 700, "cannot be right", 0},     {2u << 20, 0, 8, "cannot be right", 0},
    {1000, 0, 100, "amid a value", 0}, {150, 0, 100, "does not follow", 600},
};
#define FORGERIES ((uint32_t)(sizeof forgeries / sizeof forgeries[0]))

static struct rank_group *group;
static struct topology topology;
static struct shuffle *shuffle;
static uint32_t relay;
static uint64_t keys_of[RANKS];
static size_t stored;
static time_t start;

static size_t store(void *arg, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                    size_t value_stride, size_t size)
{
    (void)arg;
    (void)keys;
    (void)key_stride;
    (void)values;
    (void)value_stride;
    (void)size;
    stored += n;
    return n;
}

static void give_way(void *arg)
{
    (void)arg;
    if (shuffle_progress(shuffle))
        return;
    if (time(NULL) > start + DEADLINE) {
        CHECK(!"waits for ever");
        shuffle_kill(shuffle);
    }
    sched_yield();
}

static void choose_keys(void)
{
    uint32_t found = 0;

    for (uint64_t key = 0; found < (1u << RANKS) - 1; key++) {
        uint32_t owner = partition_by_hash(key, RANKS);
        keys_of[owner] = key;
        found |= 1u << owner;
    }
}

/* ---- The forger ---- */

/* An item that says it has `size` bytes of a value, and has `n`. Returns how many bytes it takes. */
static uint32_t forge_item(uint8_t *to, const uint64_t *key, uint32_t value_size, uint32_t offset, uint32_t size,
                           uint32_t n)
{
    memcpy(to, key, 8);
    put_u32(to + 8, value_size);
    put_u32(to + 12, offset);
    put_u32(to + 16, size);
    return ITEM_HEADER + n;
}

static void forge(const struct forgery *f, uint32_t round)
{
    uint8_t m[MESSAGE] = {0};
    uint32_t n = f->size < MESSAGE / 2 ? f->size : MESSAGE / 2, used = MESSAGE_HEADER;

    used += forge_item(m + used, &keys_of[f->second > 0 ? relay : 1 - relay], f->value_size, f->offset, f->size, n);
    if (f->second > 0)
        used += forge_item(m + used, &keys_of[relay], f->second, n, f->second - n, f->second - n);
    put_u32(m, round);
    put_u32(m + 8, used);
    put_u32(m + 12, f->offset + f->size == f->value_size || f->second > 0);
    put_u16(m + 16, MESSAGE_END);
    MPI_Send(m, (int)used, MPI_BYTE, (int)relay, MPI_TAG_RECORDS + STAGE_NET, group->comm);
}

/* A message in the short form that ends the round: with the records of `n` keys, at most two, and bytes beyond them. */
static void forge_short(uint32_t to, const uint64_t *keys, uint32_t n, uint32_t beyond)
{
    uint8_t m[MESSAGE_HEADER + 3 * (8 + SHORT)] = {0};
    uint32_t used = MESSAGE_HEADER + n * (8u + SHORT) + beyond;

    put_u32(m + 8, used);
    put_u32(m + 12, n);
    put_u16(m + 16, MESSAGE_END);
    for (uint32_t i = 0; i < n; i++)
        memcpy(m + MESSAGE_HEADER + i * (8 + SHORT), &keys[i], 8);
    MPI_Send(m, (int)used, MPI_BYTE, (int)to, MPI_TAG_RECORDS + STAGE_NET, group->comm);
}

/* Take in a rank's mark, and what credits have come. */
static void drain(uint32_t from)
{
    uint8_t m[MESSAGE] = {0}, credits[4];
    int has_come = 0;

    for (start = time(NULL); !has_come && time(NULL) <= start + DEADLINE; sched_yield())
        MPI_Iprobe((int)from, MPI_TAG_RECORDS + STAGE_NET, group->comm, &has_come, MPI_STATUS_IGNORE);
    if (!CHECK(has_come))
        return;
    MPI_Recv(m, MESSAGE, MPI_BYTE, (int)from, MPI_TAG_RECORDS + STAGE_NET, group->comm, MPI_STATUS_IGNORE);
    CHECK(get_u16(m + 16) & MESSAGE_END);
    while (has_come) {
        MPI_Iprobe((int)from, MPI_TAG_CREDITS + STAGE_NET, group->comm, &has_come, MPI_STATUS_IGNORE);
        if (has_come)
            MPI_Recv(credits, 4, MPI_BYTE, (int)from, MPI_TAG_CREDITS + STAGE_NET, group->comm, MPI_STATUS_IGNORE);
    }
}

/* One credit back for the mark, so that the relay has one in every round. */
static void give_credit(void)
{
    uint8_t credit[4];

    put_u32(credit, 1);
    MPI_Send(credit, 4, MPI_BYTE, (int)relay, MPI_TAG_CREDITS + STAGE_NET, group->comm);
}

/* ---- The others ---- */

static void open_shuffle(const struct plan *plan, int64_t value_size)
{
    struct shuffle_config config = {.plan = plan,
                                    .rank = (uint32_t)group->rank,
                                    .ranks = RANKS,
                                    .comm = group->comm,
                                    .value_size = value_size,
                                    .store = store,
                                    .wait = give_way};
    struct error e;

    CHECK(shuffle_create(&config, &shuffle, &e) == DELTAFS_OK);
    CHECK(shuffle_share(shuffle, topology.node, &e) == DELTAFS_OK);
}

static void take_part(const struct forgery *f)
{
    static uint8_t value[VALUE];
    struct error e = {0};

    start = time(NULL);
    stored = 0;
    if ((uint32_t)group->rank == relay) {
        /* What is forged comes first. */
        while (shuffle_take_error(shuffle, &e) == DELTAFS_OK && time(NULL) < start + DEADLINE)
            give_way(NULL);
        CHECK(e.status == DELTAFS_ERR_MPI && strstr(e.text, f->says));
        shuffle_put(shuffle, 1, (const uint8_t *)&keys_of[1 - relay], 8, value, VALUE, VALUE);
        CHECK(shuffle_progress(shuffle)); /* a rank that only sends is not idle */
    }
    shuffle_end(shuffle);
    shuffle_take_error(shuffle, &e);
    CHECK((uint32_t)group->rank == relay || stored == 1 || e.status == DELTAFS_ERR_MPI);
}

/* The relay gets a record of a rank, and so many bytes beyond it. Where it must look at all records, one of its own
 * comes first: if ranks have several partitions, or if records are placed not by their hash but `by` their keys, from 0
 * on. */
static void stray(const struct plan *plan, const struct partitioner *by, uint32_t owner, uint32_t beyond,
                  const char *says)
{
    const uint64_t keys[] = {by ? relay : keys_of[relay], by ? owner : keys_of[owner]};
    const char *placed = !by ? "hash" : by->pivots ? "pivots" : "a function";
    uint32_t n = by || plan->partitions > RANKS ? 2 : 1;
    struct error e = {0};

    check_about("route %s, %u partitions by %s, a record of rank %u", plan_route_name(plan->router.kind),
                plan->partitions, placed, owner);
    start = time(NULL);
    stored = 0;
    if ((uint32_t)group->rank != FORGER)
        open_shuffle(plan, SHORT);
    if (shuffle && by)
        shuffle_place(shuffle, by);
    check_require();
    if ((uint32_t)group->rank == FORGER) {
        forge_short(relay, keys + 2 - n, n, beyond);
        drain(relay);
        if (plan->router.kind == ROUTER_DIRECT) {
            forge_short(1 - relay, NULL, 0, 0);
            drain(1 - relay);
        }
    } else {
        shuffle_end(shuffle);
        int status = shuffle_take_error(shuffle, &e);
        CHECK((uint32_t)group->rank == relay ? status == DELTAFS_ERR_MPI && strstr(e.text, says)
                                             : status == DELTAFS_OK);
        CHECK(stored == ((uint32_t)group->rank == relay && owner == relay));
    }
    MPI_Barrier(group->comm);
    shuffle_destroy(shuffle);
    shuffle = NULL;
    check_require();
}

static uint32_t key_is_partition(uint64_t key, uint32_t partitions, void *arg)
{
    (void)arg;
    return (uint32_t)(key % partitions);
}

static void no_wait(void *arg)
{
    (void)arg;
}

int main(int argc, char **argv)
{
    const uint64_t pivots[RANKS - 1] = {1, 2};
    const struct partitioner by_pivots = {.partitions = RANKS, .pivots = pivots};
    const struct partitioner by_function = {.partitions = RANKS, .fn = key_is_partition};
    struct error e;

    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!CHECK(check_ranks == RANKS))
        return check_end();
    CHECK(mpi_group_create(MPI_COMM_WORLD, sizeof *group, no_wait, &group, &e) == DELTAFS_OK);
    pretend_nodes(2);
    CHECK(topology_init(&topology, group, &e) == DELTAFS_OK && layout_size(&topology.layout, 0) == 2);
    check_require();
    struct plan plan = {.router = router_make(ROUTER_3HOP, &topology.layout, 1),
                        .message = MESSAGE,
                        .buffers = PLAN_BUFFERS_MIN,
                        .chunk = CHUNK,
                        .partitions = RANKS};
    relay = router_peers(&plan.router, 0, STAGE_NET) > 0 ? 0 : 1;
    choose_keys();
    if ((uint32_t)group->rank != FORGER)
        open_shuffle(&plan, -1);
    check_require();
    for (uint32_t i = 0; i < FORGERIES; i++) {
        const struct forgery *f = &forgeries[i];
        check_about("size %u, piece of %u at %u", f->value_size, f->size, f->offset);
        if ((uint32_t)group->rank == FORGER) {
            forge(f, i);
            drain(relay);
            give_credit();
        } else {
            take_part(f);
        }
        check_require();
        if ((uint32_t)group->rank != FORGER)
            shuffle_begin(shuffle);
    }
    MPI_Barrier(group->comm);
    shuffle_destroy(shuffle);
    shuffle = NULL;
    stray(&plan, NULL, FORGER, 0, "should not have come here");
    plan.router = router_make(ROUTER_DIRECT, &topology.layout, 1);
    stray(&plan, NULL, 1 - relay, 0, "another rank owns");
    stray(&plan, NULL, FORGER, 0, "another rank owns");
    stray(&plan, NULL, relay, 3, "as many records as it says");
    stray(&plan, &by_pivots, 1 - relay, 0, "another rank owns");
    stray(&plan, &by_function, 1 - relay, 0, "another rank owns");
    plan.partitions = 2 * RANKS;
    stray(&plan, NULL, 1 - relay, 0, "another rank owns");
    topology_fini(&topology, 0);
    mpi_group_destroy(group);
    check_about("at the end");
    return check_end();
}
