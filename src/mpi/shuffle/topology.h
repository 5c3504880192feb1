/* Topology: which ranks share a node, and a communicator in which those follow one another. */
#ifndef DELTAFS_MPI_TOPOLOGY_H
#define DELTAFS_MPI_TOPOLOGY_H

#include "mpi/agree.h"
#include "mpi/shuffle/layout.h"

struct topology {
    MPI_Comm comm; /* all ranks, in the layout's order; the first stays the first */
    MPI_Comm node; /* those of this rank's node, in the same order */
    uint32_t rank; /* in comm */
    struct layout layout;
    uint64_t memory; /* bytes of a node's memory for each of its ranks, where that is the least */
};

/* Collective over the communicator of `a`, which the topology takes over. Nodes are those of MPI_Comm_split_type.
 * If they are wrong, only speed is lost. The nodes' first ranks exchange how many ranks each node has, and broadcast
 * that within their nodes: this takes 4 bytes for each node for a while. All ranks return the same status, unless MPI
 * fails; call topology_fini in either case. */
int topology_init(struct topology *t, const struct agree *a, struct error *e);
/* Have every rank on a node of its own: where nodes cannot share memory. */
void topology_split(struct topology *t);
/* Collective, unless `is_lost`. */
void topology_fini(struct topology *t, int is_lost);

#endif
