#include <unistd.h>
#include "mpi/shuffle/topology.h"

static uint64_t node_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

/* How many ranks each node has, and last, the number of this one: the nodes' first ranks exchange it. If there is one
 * node, all ranks know that. */
static void topology_count(struct rank_group *g, struct rank_group *node, struct bytes *sizes, struct error *e)
{
    const uint32_t own = (uint32_t)node->ranks, first = 0;
    MPI_Comm comm;

    if (node->ranks == g->ranks) {
        bytes_append(sizes, &own, sizeof own, e);
        bytes_append(sizes, &first, sizeof first, e);
        return;
    }
    int code = MPI_Comm_split(g->comm, node->rank == 0 ? 0 : MPI_UNDEFINED, g->rank, &comm);

    if (code != MPI_SUCCESS) {
        mpi_group_fail(g, code, "number the nodes", e);
        return;
    }
    if (comm != MPI_COMM_NULL) {
        struct rank_group firsts = mpi_group_part(g, comm);
        const uint32_t number = (uint32_t)firsts.rank;
        if (mpi_gather(&firsts, &own, sizeof own, sizes, e) == DELTAFS_OK)
            bytes_append(sizes, &number, sizeof number, e);
        mpi_group_end_part(g, &firsts);
        MPI_Comm_free(&comm);
    }
    mpi_broadcast_bytes(node, sizes, e);
}

static int topology_lay_out(struct topology *t, struct rank_group *g, uint32_t *rank, struct error *e)
{
    struct rank_group node = mpi_group_part(g, t->node);
    struct bytes sizes = {{0}, 0};

    topology_count(g, &node, &sizes, e);
    mpi_group_end_part(g, &node);
    if (e->status == DELTAFS_OK) {
        const uint32_t *size = (const uint32_t *)(void *)sizes.buffer.bytes;
        uint32_t nodes = (uint32_t)(sizes.used / sizeof *size) - 1;
        *rank = (uint32_t)node.rank;
        for (uint32_t i = 0; i < size[nodes]; i++)
            *rank += size[i];
        layout_init(&t->layout, size, nodes, e);
    }
    buffer_fini(&sizes.buffer);
    return mpi_agree(g, e);
}

/* A communicator in the layout's order, where that is another one. And the least memory of all. */
static int topology_order(struct topology *t, struct rank_group *g, uint32_t rank, struct error *e)
{
    uint64_t least[] = {t->memory, rank == (uint32_t)g->rank};
    MPI_Comm ordered;
    int status = mpi_reduce(g, least, 2, MPI_MIN, e);

    t->memory = least[0];
    if (status != DELTAFS_OK || least[1])
        return status;
    int code = MPI_Comm_split(g->comm, 0, (int)rank, &ordered);
    if (code != MPI_SUCCESS)
        return mpi_group_fail(g, code, "order the ranks", e);
    MPI_Comm_free(&g->comm);
    g->comm = ordered;
    g->rank = (int)rank;
    return DELTAFS_OK;
}

int topology_init(struct topology *t, struct rank_group *g, struct error *e)
{
    uint32_t rank = 0;
    int ranks;

    *t = (struct topology){.node = MPI_COMM_NULL, .layout = layout_even(1, 1), .memory = node_memory()};
    e->status = DELTAFS_OK;
    if (g->ranks == 1)
        return DELTAFS_OK;
    int code = MPI_Comm_split_type(g->comm, MPI_COMM_TYPE_SHARED, g->rank, MPI_INFO_NULL, &t->node);
    if (code != MPI_SUCCESS)
        return mpi_group_fail(g, code, "find out which ranks share a node", e);
    MPI_Comm_size(t->node, &ranks);
    t->memory /= (uint32_t)ranks;
    int status = topology_lay_out(t, g, &rank, e);
    return status == DELTAFS_OK ? topology_order(t, g, rank, e) : status;
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
    if (t->node != MPI_COMM_NULL && !is_lost)
        MPI_Comm_free(&t->node);
}
