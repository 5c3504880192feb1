#include "mpi/agree.h"
#include "mpi/locality.h"
#include "mpi/topology.h"

/* The ranks that share this one's node. */
static int topology_find_node(struct topology *t, MPI_Comm comm, uint32_t nodes)
{
    MPI_Comm share = comm;
    int rank, ranks, code = MPI_SUCCESS;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    if (nodes > 0)
        code = MPI_Comm_split(comm, (int)((uint64_t)rank * nodes / (uint64_t)ranks), rank, &share);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_split_type(share, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &t->node);
    if (share != comm && share != MPI_COMM_NULL)
        MPI_Comm_free(&share);
    return code;
}

/* Put ranks of one package and NUMA domain beside one another, those of the first rank first: it stays the first. */
static int topology_order_node(struct topology *t)
{
    int domain = locality_domain(), differ, size, rank, code;
    int range[2] = {domain, -domain}, first = domain;
    MPI_Comm ordered;

    MPI_Comm_size(t->node, &size);
    MPI_Comm_rank(t->node, &rank);
    if (size == 1)
        return MPI_SUCCESS;
    code = MPI_Allreduce(MPI_IN_PLACE, range, 2, MPI_INT, MPI_MAX, t->node);
    differ = range[0] != -range[1];
    if (code == MPI_SUCCESS && differ)
        code = MPI_Bcast(&first, 1, MPI_INT, 0, t->node);
    if (code != MPI_SUCCESS || !differ)
        return code;
    code = MPI_Comm_split(t->node, 0, domain >= first ? domain - first : domain - first + LOCALITY_DOMAINS, &ordered);
    if (code == MPI_SUCCESS) {
        MPI_Comm_free(&t->node);
        t->node = ordered;
    }
    return code;
}

/* All nodes' sizes, in the order of their first ranks, and which is this rank's. The first ranks know; they tell the
 * others. */
static int topology_find_sizes(struct topology *t, MPI_Comm comm, uint32_t *sizes, uint32_t *nodes, uint32_t *own)
{
    MPI_Comm firsts = MPI_COMM_NULL;
    int rank, local, size, code, v[2] = {0, 0};

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_rank(t->node, &local);
    MPI_Comm_size(t->node, &size);
    code = MPI_Comm_split(comm, local == 0 ? 0 : MPI_UNDEFINED, rank, &firsts);
    if (code == MPI_SUCCESS && local == 0) {
        MPI_Comm_rank(firsts, &v[0]);
        MPI_Comm_size(firsts, &v[1]);
    }
    if (code == MPI_SUCCESS)
        code = MPI_Bcast(v, 2, MPI_INT, 0, t->node);
    *own = (uint32_t)v[0];
    *nodes = (uint32_t)v[1];
    if (code == MPI_SUCCESS && local == 0) {
        uint32_t mine = (uint32_t)size;
        code = MPI_Allgather(&mine, 1, MPI_UINT32_T, sizes, 1, MPI_UINT32_T, firsts);
    }
    if (code == MPI_SUCCESS)
        code = MPI_Bcast(sizes, v[1], MPI_UINT32_T, 0, t->node);
    if (firsts != MPI_COMM_NULL)
        MPI_Comm_free(&firsts);
    return code;
}

/* A communicator in the layout's order: the same one where that is so already. */
static int topology_order(struct topology *t, MPI_Comm comm)
{
    int rank, code, is_other;

    MPI_Comm_rank(comm, &rank);
    is_other = (uint32_t)rank != t->rank;
    code = MPI_Allreduce(MPI_IN_PLACE, &is_other, 1, MPI_INT, MPI_MAX, comm);
    t->comm = comm;
    if (code != MPI_SUCCESS || !is_other)
        return code;
    code = MPI_Comm_split(comm, 0, (int)t->rank, &t->comm);
    MPI_Comm_free(&comm);
    return code;
}

int topology_init(struct topology *t, MPI_Comm comm, uint32_t nodes, uint32_t *sizes, struct error *e)
{
    uint32_t count = 0, own = 0;
    int local = 0, status = DELTAFS_OK, ranks;

    *t = (struct topology){.comm = comm, .node = MPI_COMM_NULL};
    MPI_Comm_size(comm, &ranks);
    if (ranks == 1) {
        t->layout = layout_even(1, 1);
        return DELTAFS_OK;
    }
    int code = topology_find_node(t, comm, nodes);
    if (code == MPI_SUCCESS)
        code = topology_order_node(t);
    if (code == MPI_SUCCESS)
        code = topology_find_sizes(t, comm, sizes, &count, &own);
    if (code == MPI_SUCCESS) {
        status = layout_init(&t->layout, sizes, count, e);
        MPI_Comm_rank(t->node, &local);
        for (uint32_t i = 0; i < own; i++)
            t->rank += sizes[i];
        t->rank += (uint32_t)local;
        code = topology_order(t, comm);
    }
    if (code != MPI_SUCCESS)
        return agree_mpi_error(e, code, "find out which ranks share a node");
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
