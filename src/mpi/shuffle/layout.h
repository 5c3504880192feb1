/* Which ranks share a node. Ranks are numbered so that those of a node follow one another (topology.h sees to that), so
 * a layout is no more than where each node begins. Pure arithmetic, no MPI. */
#ifndef DELTAFS_MPI_LAYOUT_H
#define DELTAFS_MPI_LAYOUT_H

#include <stdint.h>
#include "base/error.h"

struct layout {
    uint32_t ranks, nodes;
    uint32_t even;   /* ranks of every node but the last, which may have fewer; 0: they differ */
    uint32_t *first; /* of each node its first rank, and the number of ranks; NULL where they are even */
};

/* `ranks` ranks, `per_node` on each node and what is left on the last. Takes no memory. */
struct layout layout_even(uint32_t ranks, uint32_t per_node);
/* From the nodes' sizes, none of which is 0. */
int layout_init(struct layout *l, const uint32_t *sizes, uint32_t nodes, struct error *e);
void layout_fini(struct layout *l);

uint64_t layout_memory(const struct layout *l);
uint32_t layout_node(const struct layout *l, uint32_t rank);

static inline uint32_t layout_first(const struct layout *l, uint32_t node)
{
    if (l->first)
        return l->first[node];
    return node < l->nodes ? node * l->even : l->ranks;
}

static inline uint32_t layout_size(const struct layout *l, uint32_t node)
{
    return layout_first(l, node + 1) - layout_first(l, node);
}

#endif
