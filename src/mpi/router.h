/* Routing: from where a record is, which rank it goes to next. Pure arithmetic, no MPI: the same code answers for one
 * rank of a running job and for any rank of an imagined one. */
#ifndef DELTAFS_MPI_ROUTER_H
#define DELTAFS_MPI_ROUTER_H

enum router_kind {
    ROUTER_DIRECT, /* one hop: every rank sends to every other */
};

struct router {
    enum router_kind kind;
    int ranks;
};

/* The rank that a record at `rank` goes to next on its way to `destination`; the destination itself at the end. */
int router_next_hop(const struct router *r, int rank, int destination);

/* How many ranks `rank` sends to. */
int router_peers(const struct router *r, int rank);

#endif
