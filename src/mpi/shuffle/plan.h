/* How much memory the shuffle takes: sizes of buffers for a layout, a route and a budget. Pure arithmetic, no MPI: a
 * job takes what this says, and the tables of deltafs-performance(7) for a million ranks come from here too.
 *
 * A rank has a channel to and one from each peer of each stage. Over the network each direction of a channel has
 * buffers of its own, of one message each: one that fills, others that are on their way, and as many that are received
 * into, which are the sender's credits. Within a node a channel is a ring of chunks in memory that the ranks share, in
 * the segment of the one who receives; and one more chunk, of the one who sends, that fills where they are far apart.
 *
 * Sizes are the same on all ranks, as the rank with the most channels can afford them. */
#ifndef DELTAFS_MPI_PLAN_H
#define DELTAFS_MPI_PLAN_H

#include "mpi/shuffle/router.h"

/* direct, 3hop, grid, auto. */
const char *plan_route_name(enum router_kind kind);

struct plan_options {
    enum router_kind kind;
    uint64_t memory;     /* bytes that a rank may use for all this */
    uint64_t message;    /* bytes of a message between nodes, at most; 0: 32 KiB, and up to 512 KiB where nothing else
                          * but the number of buffers gets less for it. Tests and the benchmark set it. */
    uint32_t partitions; /* of the directory */
};

struct plan {
    struct router router;
    uint32_t message; /* bytes, in whole lines */
    uint32_t buffers; /* of a network channel in each direction */
    uint32_t chunk;   /* bytes */
    uint32_t partitions;
};

#define PLAN_BUFFERS_MIN 2 /* one fills while the other is under way */
#define PLAN_BUFFERS_MAX 4
#define PLAN_CHUNKS      3 /* of a ring */

/* Choose. DELTAFS_ERR_MEMORY if nothing fits. The plan refers to the layout. */
int plan_make(struct plan *p, const struct layout *l, const struct plan_options *wanted, struct error *e);

/* Bytes that `rank` takes. */
uint64_t plan_bytes(const struct plan *p, uint32_t rank);

/* The most that any rank takes. */
uint64_t plan_most_bytes(const struct plan *p);

/* What of a process' memory the shuffle may use. */
uint64_t plan_budget(uint64_t memory);

#define PLAN_MEMORY_AUTO_MAX (1u << 30) /* bytes that a process takes at most if nobody says how much */

uint64_t plan_ring(const struct plan *p);

/* Whether a rank has a table of where each partition's records go next. If not, it computes that for each record. */
int plan_has_table(const struct plan *p);

#endif
