#include "mpi/router.h"

int router_next_hop(const struct router *r, int rank, int destination)
{
    (void)r;
    (void)rank;
    return destination;
}

int router_peers(const struct router *r, int rank)
{
    (void)rank;
    return r->ranks - 1;
}
