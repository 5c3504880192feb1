#include "base/simd_stream.h"
#include "mpi/shuffle/channel.h"
#include "mpi/shuffle/plan.h"

#define PEERS_FEW    16u
#define MESSAGE_MIN  1024u
#define MESSAGE_GOOD 8192u /* shorter ones cost too much each: another route is better */
#define MESSAGE_AUTO (32u << 10)
#define MESSAGE_LONG (512u << 10) /* measured, over TCP: 3 to 10 % faster than 256 KiB; 1 MiB gains nothing */
#define CHUNK_MAX    (64u << 10)
#define CHUNK_MIN    512u
#define TABLE_MOST   (1u << 16) /* partitions: a table is to stay in the caches */

#define BUDGET_SHARE 8           /* the shuffle gets at most 1/8 of a process' memory */
#define BUDGET_GOOD  (12u << 20) /* bytes; with more it would not be faster: it takes them only if it must */

uint64_t plan_budget(uint64_t memory)
{
    return memory / BUDGET_SHARE;
}

uint64_t plan_ring(const struct plan *p)
{
    return RING_HEADER + (uint64_t)PLAN_CHUNKS * p->chunk;
}

int plan_has_table(const struct plan *p)
{
    return p->partitions <= TABLE_MOST;
}

static uint64_t plan_channel(const struct plan *p, enum router_stage stage)
{
    if (!stage_is_net(stage))
        return CHANNEL_BYTES + plan_ring(p) + p->chunk + 2 * sizeof(void *); /* where the rings are */
    /* A request for each buffer, for credits in and out; what MPI_Testsome says of each; messages. */
    return CHANNEL_BYTES + sizeof(struct link_channel) + (2 * p->buffers + 2) * LINK_REQUEST +
           2 * p->buffers * (uint64_t)p->message;
}

/* A message's bytes in whole lines. */
static uint32_t plan_message(uint64_t bytes)
{
    return (uint32_t)(bytes / STREAM_LINE * STREAM_LINE);
}

/* What does not depend on the number of channels. */
static uint64_t plan_fixed(const struct plan *p)
{
    uint64_t table = plan_has_table(p) ? (uint64_t)p->partitions * sizeof(uint16_t) : 0;

    return OWN_BYTES + RING_LINE + layout_memory(&p->router.layout) + table;
}

uint64_t plan_bytes(const struct plan *p, uint32_t rank)
{
    uint64_t n = plan_fixed(p);

    for (enum router_stage i = 0; i < STAGES; i++)
        n += router_peers(&p->router, rank, i) * plan_channel(p, i);
    return n;
}

/* What the channels between nodes, or those within, take of a rank that has the most of all. */
static uint64_t plan_most(const struct plan *p, int of_net)
{
    uint64_t n = 0;

    for (enum router_stage i = 0; i < STAGES; i++)
        if (stage_is_net(i) == of_net)
            n += router_most_peers(&p->router, i) * plan_channel(p, i);
    return n;
}

uint64_t plan_most_bytes(const struct plan *p)
{
    return plan_fixed(p) + plan_most(p, 1) + plan_most(p, 0);
}

/* As many pairs for two nodes as leave every rank with a few peers elsewhere: they spare hops, and share the work. */
static uint32_t plan_pairs(const struct router *r)
{
    uint32_t nodes = r->layout.nodes, size = r->layout.ranks / nodes, most = router_most_pairs(r->kind, &r->layout);
    uint64_t n = nodes > 1 ? (uint64_t)PEERS_FEW * size / (nodes - 1) : 1;

    return n <= 1 ? 1 : n < most ? (uint32_t)n : most;
}

/* Halve what takes the most, until all is within `most` bytes: first the number of pairs and of a channel's buffers,
 * and chunks while they are longer than half a message, then messages and chunks. Returns whether it is. */
static int plan_fit(struct plan *p, uint64_t message, uint64_t most)
{
    uint64_t fixed = plan_fixed(p);

    p->message = plan_message(message);
    p->buffers = PLAN_BUFFERS_MAX;
    p->router.pairs = plan_pairs(&p->router);
    p->chunk = CHUNK_MAX;
    for (;;) {
        uint64_t net = plan_most(p, 1), inside = plan_most(p, 0);
        if (fixed + net + inside <= most)
            return 1;
        int can_chunk = inside > 0 && p->chunk / 2 >= CHUNK_MIN, can_message = net > 0 && p->message / 2 >= MESSAGE_MIN;
        int can_count = net > 0 && p->buffers / 2 >= PLAN_BUFFERS_MIN, is_long = p->chunk > p->message / 2;
        int can_pair = p->router.pairs > 1, is_last = !can_chunk && !can_message && !can_count;
        if (is_last && !can_pair)
            return 0;
        if (can_pair && (net >= inside || is_last))
            p->router.pairs /= 2;
        else if (can_count && (net >= inside || !can_chunk || !is_long))
            p->buffers /= 2;
        else if (can_chunk && (!can_message || is_long || inside >= net))
            p->chunk /= 2;
        else
            p->message = plan_message(p->message / 2);
    }
}

const char *plan_route_name(enum router_kind kind)
{
    static const char *const names[] = {
        [ROUTER_AUTO] = "auto", [ROUTER_DIRECT] = "direct", [ROUTER_3HOP] = "3hop", [ROUTER_GRID] = "grid"};

    return names[kind];
}

static int plan_refuse(const struct plan *p, const struct plan_options *wanted, struct error *e)
{
    const struct layout *l = &p->router.layout;
    uint64_t least = plan_most_bytes(p);

    return error_set(e, DELTAFS_ERR_MEMORY,
                     "option memory: %llu bytes are left for sending and receiving, and route=%s takes %llu at least "
                     "for %u ranks on %u nodes; give more memory%s",
                     (unsigned long long)wanted->memory, plan_route_name(p->router.kind), (unsigned long long)least,
                     l->ranks, l->nodes, wanted->kind == ROUTER_AUTO ? "" : ", or route=auto");
}

/* The fewest hops whose messages are long enough; else the longest messages; if nothing fits, what takes least. Returns
 * whether it is within `most` bytes. */
static int plan_choose(struct plan *p, const struct layout *l, const struct plan_options *wanted, uint64_t most)
{
    static const enum router_kind kinds[] = {ROUTER_DIRECT, ROUTER_3HOP, ROUTER_GRID};
    uint64_t message = wanted->message > 0 ? wanted->message : MESSAGE_AUTO;
    uint64_t good = message < MESSAGE_GOOD ? plan_message(message) : MESSAGE_GOOD;
    struct plan best = {0}, next = {.partitions = wanted->partitions};
    int fits = 0;

    for (int i = 0; i < 3; i++) {
        if (wanted->kind != ROUTER_AUTO && wanted->kind != kinds[i])
            continue;
        next.router = router_make(kinds[i], l, 1);
        int next_fits = plan_fit(&next, message, most);
        if (best.message == 0 || next_fits > fits || (next_fits && next.message > best.message) ||
            (!fits && plan_most_bytes(&next) < plan_most_bytes(&best))) {
            best = next;
            fits = next_fits;
        }
        if (fits && best.message >= good)
            break;
    }
    *p = best;
    return fits;
}

/* Longer messages, where all else has the most that it can have. Two buffers of a length are better than four of half
 * that length: what MPI sends and does for each message comes half as often. */
static void plan_lengthen(struct plan *p, uint64_t most)
{
    if (p->message < MESSAGE_AUTO || p->chunk < CHUNK_MAX || p->buffers < PLAN_BUFFERS_MAX ||
        p->router.pairs < plan_pairs(&p->router))
        return;
    for (struct plan next = *p; 2 * next.message <= MESSAGE_LONG; *p = next) {
        next.message *= 2;
        if (plan_most_bytes(&next) > most && next.buffers / 2 >= PLAN_BUFFERS_MIN)
            next.buffers /= 2;
        if (plan_most_bytes(&next) > most)
            return;
    }
}

int plan_make(struct plan *p, const struct layout *l, const struct plan_options *wanted, struct error *e)
{
    uint64_t good = wanted->memory < BUDGET_GOOD ? wanted->memory : BUDGET_GOOD;
    int fits = plan_choose(p, l, wanted, good);

    if (fits && wanted->message == 0)
        plan_lengthen(p, good);
    if (!fits && wanted->memory > BUDGET_GOOD)
        fits = plan_choose(p, l, wanted, wanted->memory);
    return fits ? DELTAFS_OK : plan_refuse(p, wanted, e);
}
