/* Routing: from where a record is, which rank it goes to next, and in which stage. Pure arithmetic, no MPI: the same
 * code answers for one rank of a running job and for any rank of an imagined one.
 *
 * A way goes through some of five stages, in their order:
 *
 *     OUT   within the node, to the rank that stands for the node that comes next
 *     VIA   over the network, to a node on the way (grid)
 *     MID   within that node, to the rank that stands for the next (grid)
 *     NET   over the network, to the destination's node; in a direct route, to the destination itself
 *     IN    within the node, to the destination
 *
 *     direct   NET or IN: every rank sends to every other. 1 hop.
 *     3hop     OUT NET IN: for two nodes, one rank at either end stands for the other; a node's ranks share the other
 *              nodes evenly. At most 3 hops; a rank has (nodes - 1) / (ranks of its node) peers elsewhere. (Zheng et
 *              al., SC'18.) Where nodes are few, two of them have several such pairs of ranks; a rank that is the end
 *              of one uses that, which saves the first hop.
 *     grid     OUT VIA MID NET IN: nodes in a grid of about square shape, first along the row, then along the column;
 *              nodes of one row or column have pairs as above. At most 5 hops, and about 2 sqrt(nodes) / (ranks of its
 *              node) peers elsewhere.
 *
 * Every stage has links of its own. What a rank holds of one stage waits for later stages only, and the last for its
 * own storage, which waits for nobody: so no ring of ranks can wait for one another. */
#ifndef DELTAFS_MPI_ROUTER_H
#define DELTAFS_MPI_ROUTER_H

#include "mpi/shuffle/layout.h"

enum router_kind { ROUTER_AUTO, ROUTER_DIRECT, ROUTER_3HOP, ROUTER_GRID };

enum router_stage { STAGE_OUT, STAGE_VIA, STAGE_MID, STAGE_NET, STAGE_IN, STAGES };

struct router {
    enum router_kind kind; /* not auto */
    struct layout layout;  /* borrowed */
    uint32_t columns;      /* of the grid */
    uint32_t pairs;        /* of ranks that stand for two nodes */
};

struct router_hop {
    uint32_t rank;
    enum router_stage stage;
};

struct router router_make(enum router_kind kind, const struct layout *l, uint32_t pairs);

/* How many pairs two nodes can have at most. */
uint32_t router_most_pairs(enum router_kind kind, const struct layout *l);

/* Whether links of a stage go between nodes. */
static inline int stage_is_net(enum router_stage stage)
{
    return stage == STAGE_VIA || stage == STAGE_NET;
}

/* Whether the route has a stage at all. */
int router_has_stage(const struct router *r, enum router_stage stage);

/* Where a record at `rank` goes next on its way to `destination`, another rank. `came` is the stage by which it came
 * to `rank`; STAGE_OUT also for one that begins there. */
struct router_hop router_next(const struct router *r, uint32_t rank, enum router_stage came, uint32_t destination);

/* How many ranks `rank` has links to and from in a stage, and the i-th of them. If a is a peer of b, b is one of a. */
uint32_t router_peers(const struct router *r, uint32_t rank, enum router_stage stage);
uint32_t router_peer(const struct router *r, uint32_t rank, enum router_stage stage, uint32_t i);
/* Which of them `peer` is. */
uint32_t router_peer_index(const struct router *r, uint32_t rank, enum router_stage stage, uint32_t peer);

/* The most peers that any rank has in a stage. */
uint32_t router_most_peers(const struct router *r, enum router_stage stage);
/* The most hops of any way; no way has more, but if some nodes have fewer ranks, all may have less. */
uint32_t router_hops(const struct router *r);

#endif
