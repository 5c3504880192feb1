/* Topology: which ranks share a node, and an order of the ranks in which those follow one another. */
#ifndef DELTAFS_MPI_TOPOLOGY_H
#define DELTAFS_MPI_TOPOLOGY_H

#include "mpi/rank_group.h"
#include "mpi/shuffle/layout.h"

struct topology {
    MPI_Comm node; /* the ranks of this rank's node, in the layout's order */
    struct layout layout;
    uint64_t memory; /* bytes of a node's memory for each of its ranks, where that is the least */
};

/* Collective: find the nodes, and give the group a communicator in the layout's order; the first rank stays the first.
 * Nodes are those of MPI_Comm_split_type. If they are wrong, only speed is lost. The nodes' first ranks exchange how
 * many ranks each node has, and broadcast that within their nodes: this takes 4 bytes for each node for a while. Call
 * topology_fini, even after an error. */
int topology_init(struct topology *t, struct rank_group *g, struct error *e);
/* Have every rank on a node of its own: where nodes cannot share memory. */
void topology_split(struct topology *t);
/* Collective, unless `is_lost`. */
void topology_fini(struct topology *t, int is_lost);

#endif
