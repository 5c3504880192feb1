#include <stdlib.h>
#include "mpi/shuffle/layout.h"

struct layout layout_even(uint32_t ranks, uint32_t per_node)
{
    return (struct layout){.ranks = ranks, .nodes = ranks / per_node + (ranks % per_node > 0), .even = per_node};
}

/* Whether all nodes but the last have as many ranks as the first, and the last no more. */
static int layout_is_even(const uint32_t *sizes, uint32_t nodes)
{
    for (uint32_t i = 1; i + 1 < nodes; i++)
        if (sizes[i] != sizes[0])
            return 0;
    return sizes[nodes - 1] <= sizes[0];
}

int layout_init(struct layout *l, const uint32_t *sizes, uint32_t nodes, struct error *e)
{
    size_t n = (size_t)nodes + 1;
    uint32_t ranks = 0;

    for (uint32_t i = 0; i < nodes; i++)
        ranks += sizes[i];
    if (layout_is_even(sizes, nodes)) {
        *l = layout_even(ranks, sizes[0]);
        return DELTAFS_OK;
    }
    *l = (struct layout){.ranks = ranks, .nodes = nodes, .first = malloc(n * sizeof *l->first)};
    if (!l->first)
        return error_no_memory(e, n * sizeof *l->first, "the nodes of the job");
    l->first[0] = 0;
    for (uint32_t i = 0; i < nodes; i++)
        l->first[i + 1] = l->first[i] + sizes[i];
    return DELTAFS_OK;
}

void layout_fini(struct layout *l)
{
    free(l->first);
    *l = (struct layout){0};
}

uint64_t layout_memory(const struct layout *l)
{
    return l->first ? ((uint64_t)l->nodes + 1) * sizeof *l->first : 0;
}

uint32_t layout_node(const struct layout *l, uint32_t rank)
{
    uint32_t low = 0, high = l->nodes;

    if (!l->first)
        return rank / l->even;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (l->first[middle] <= rank)
            low = middle;
        else
            high = middle;
    }
    return low;
}
