#include <stdlib.h>
#include <unistd.h>
#include "mpi/shuffle/topology.h"

static uint64_t node_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

/* The same waits, among a part of the ranks. */
static struct agree part_of(const struct agree *a, MPI_Comm comm)
{
    struct agree part = *a;

    part.comm = comm;
    MPI_Comm_rank(comm, &part.rank);
    MPI_Comm_size(comm, &part.ranks);
    return part;
}

/* What the first rank of a node finds out for all of it. */
struct nodes {
    uint32_t count, own; /* number of this one, by the nodes' first ranks */
};

/* Number the nodes. *firsts is a communicator of their first ranks, MPI_COMM_NULL on others. */
static int nodes_number(struct nodes *nodes, const struct agree *a, const struct agree *node, MPI_Comm *firsts,
                        struct error *e)
{
    int code = MPI_Comm_split(a->comm, node->rank == 0 ? 0 : MPI_UNDEFINED, a->rank, firsts);

    if (code != MPI_SUCCESS)
        return agree_mpi_error(e, code, "number the nodes");
    if (*firsts != MPI_COMM_NULL) {
        struct agree all = part_of(a, *firsts);
        *nodes = (struct nodes){(uint32_t)all.ranks, (uint32_t)all.rank};
    }
    return agree_broadcast(node, nodes, sizeof *nodes, e);
}

/* How many ranks each node has. */
static int nodes_gather(uint32_t *sizes, const struct nodes *nodes, const struct agree *a, const struct agree *node,
                        MPI_Comm firsts, struct error *e)
{
    uint32_t own = (uint32_t)node->ranks;
    MPI_Request request;

    if (firsts != MPI_COMM_NULL) {
        int code = MPI_Iallgather(&own, sizeof own, MPI_BYTE, sizes, sizeof own, MPI_BYTE, firsts, &request);
        if (code != MPI_SUCCESS)
            return agree_mpi_error(e, code, "tell the other nodes");
        if (agree_wait(a, &request, "tell the other nodes", e) != DELTAFS_OK)
            return e->status;
    }
    return agree_broadcast(node, sizes, (int)(nodes->count * sizeof *sizes), e);
}

/* Make the layout, and find this rank's place in it. */
static int topology_lay_out(struct topology *t, const struct agree *a, struct error *e)
{
    const struct agree node = part_of(a, t->node);
    MPI_Comm firsts = MPI_COMM_NULL;
    struct nodes nodes = {0};
    struct error own = {0};
    int status = nodes_number(&nodes, a, &node, &firsts, e);

    if (status != DELTAFS_OK)
        return status;
    uint32_t *sizes = malloc(nodes.count * sizeof *sizes);
    if (!sizes)
        error_no_memory(&own, nodes.count * sizeof *sizes, "the nodes of the job");
    status = agree_status(a, &own);
    if (status == DELTAFS_OK)
        status = nodes_gather(sizes, &nodes, a, &node, firsts, &own);
    if (firsts != MPI_COMM_NULL)
        MPI_Comm_free(&firsts);
    if (status == DELTAFS_OK) {
        t->rank = (uint32_t)node.rank;
        for (uint32_t i = 0; i < nodes.own; i++)
            t->rank += sizes[i];
        own.status = layout_init(&t->layout, sizes, nodes.count, &own);
        status = agree_status(a, &own);
    }
    free(sizes);
    if (status != DELTAFS_OK)
        *e = own;
    return status;
}

/* A communicator in the layout's order: the same one where that is so already. And the least memory of all. */
static int topology_order(struct topology *t, const struct agree *a, struct error *e)
{
    uint64_t least[] = {t->memory, t->rank == (uint32_t)a->rank};
    MPI_Comm ordered;
    int status = agree_reduce(a, least, 2, MPI_MIN, e);

    t->memory = least[0];
    if (status != DELTAFS_OK || least[1])
        return status;
    int code = MPI_Comm_split(a->comm, 0, (int)t->rank, &ordered);
    if (code != MPI_SUCCESS)
        return agree_mpi_error(e, code, "order the ranks");
    MPI_Comm_free(&t->comm);
    t->comm = ordered;
    return DELTAFS_OK;
}

int topology_init(struct topology *t, const struct agree *a, struct error *e)
{
    int ranks = 1;

    *t = (struct topology){.comm = a->comm, .node = MPI_COMM_NULL};
    t->layout = layout_even(1, 1);
    if (a->ranks > 1) {
        int code = MPI_Comm_split_type(a->comm, MPI_COMM_TYPE_SHARED, a->rank, MPI_INFO_NULL, &t->node);
        if (code != MPI_SUCCESS)
            return agree_mpi_error(e, code, "find out which ranks share a node");
        MPI_Comm_set_errhandler(t->node, MPI_ERRORS_RETURN);
        MPI_Comm_size(t->node, &ranks);
    }
    t->memory = node_memory() / (uint32_t)ranks;
    if (a->ranks == 1)
        return DELTAFS_OK;
    int status = topology_lay_out(t, a, e);
    if (status == DELTAFS_OK)
        status = topology_order(t, a, e);
    MPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(t->node, MPI_ERRORS_RETURN);
    return status;
}

void topology_split(struct topology *t)
{
    uint32_t ranks = t->layout.ranks;

    layout_fini(&t->layout);
    t->layout = layout_even(ranks, 1);
}

void topology_fini(struct topology *t, int is_lost)
{
    layout_fini(&t->layout);
    if (is_lost)
        return;
    if (t->node != MPI_COMM_NULL)
        MPI_Comm_free(&t->node);
    if (t->comm != MPI_COMM_NULL)
        MPI_Comm_free(&t->comm);
}
