#include <string.h>
#include <unistd.h>
#include "mpi/locality.h"
#include "mpi/topology.h"

/* What each rank tells all others. */
struct fact {
    uint32_t first;  /* the first rank of its node, by which all know the node */
    uint32_t domain; /* in the node; that of its first rank is 0 */
    uint32_t memory; /* MiB of the node */
};

_Static_assert(sizeof(struct fact) + 2 * sizeof(uint32_t) == TOPOLOGY_SCRATCH, "each rank's share");

/* The ranks that share this one's node. */
static int topology_find_node(struct topology *t, const struct agree *a, uint32_t nodes)
{
    MPI_Comm share = a->comm;
    int code = MPI_SUCCESS;

    if (nodes > 0)
        code = MPI_Comm_split(a->comm, (int)((uint64_t)a->rank * nodes / (uint64_t)a->ranks), a->rank, &share);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_split_type(share, MPI_COMM_TYPE_SHARED, a->rank, MPI_INFO_NULL, &t->node);
    if (share != a->comm && share != MPI_COMM_NULL)
        MPI_Comm_free(&share);
    return code;
}

static uint32_t node_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (uint32_t)((uint64_t)pages * (uint64_t)page >> 20) : 0;
}

/* The first rank of this one's node. */
static int topology_find_first(const struct topology *t, const struct agree *a, uint32_t *first)
{
    MPI_Group all, node;
    int zero = 0, rank = 0, code = MPI_Comm_group(a->comm, &all);

    if (code != MPI_SUCCESS)
        return code;
    code = MPI_Comm_group(t->node, &node);
    if (code == MPI_SUCCESS) {
        code = MPI_Group_translate_ranks(node, 1, &zero, all, &rank);
        MPI_Group_free(&node);
    }
    MPI_Group_free(&all);
    *first = (uint32_t)rank;
    return code;
}

/* Number the nodes by their first ranks, and count their ranks. `number` is by first rank. Domains begin anew with that
 * of the node's first rank, so that this one stays the first. Returns the number of nodes. */
static uint32_t facts_count(struct fact *fact, uint32_t ranks, uint32_t *number, uint32_t *sizes)
{
    uint32_t nodes = 0;

    memset(sizes, 0, ranks * sizeof *sizes);
    for (uint32_t i = 0; i < ranks; i++) {
        if (fact[i].first == i)
            number[i] = nodes++;
        sizes[number[fact[i].first]]++;
    }
    for (uint32_t i = ranks; i-- > 0;)
        fact[i].domain = (fact[i].domain + LOCALITY_DOMAINS - fact[fact[i].first].domain) % LOCALITY_DOMAINS;
    return nodes;
}

/* Whether rank i comes before rank k in the layout. */
static int fact_is_before(const struct fact *fact, const uint32_t *number, uint32_t i, uint32_t k)
{
    uint32_t a = number[fact[i].first], b = number[fact[k].first];

    return a != b ? a < b : fact[i].domain != fact[k].domain ? fact[i].domain < fact[k].domain : i < k;
}

/* Whether the order of all ranks, or of those of one node, is another than that of the layout. */
static int facts_differ(const struct fact *fact, const uint32_t *number, uint32_t ranks, const uint32_t *first)
{
    uint32_t last = ranks;

    for (uint32_t i = 0; i < ranks; i++) {
        if (first && fact[i].first != *first)
            continue;
        if (last < ranks && fact_is_before(fact, number, i, last))
            return 1;
        last = i;
    }
    return 0;
}

/* Communicators in the layout's order: the same ones where that is so already. */
static int topology_order(struct topology *t, const struct agree *a, const struct fact *fact, const uint32_t *number)
{
    uint32_t ranks = (uint32_t)a->ranks, first = fact[a->rank].first;
    MPI_Comm old = t->comm, ordered;
    int code = MPI_SUCCESS;

    t->rank = 0;
    for (uint32_t i = 0; i < ranks; i++)
        t->rank += (uint32_t)fact_is_before(fact, number, i, (uint32_t)a->rank);
    if (facts_differ(fact, number, ranks, &first)) {
        code = MPI_Comm_split(t->node, 0, (int)t->rank, &ordered);
        if (code == MPI_SUCCESS) {
            MPI_Comm_free(&t->node);
            t->node = ordered;
        }
    }
    if (code == MPI_SUCCESS && facts_differ(fact, number, ranks, NULL)) {
        code = MPI_Comm_split(old, 0, (int)t->rank, &ordered);
        if (code == MPI_SUCCESS) {
            t->comm = ordered;
            MPI_Comm_free(&old);
        }
    }
    return code;
}

static void topology_share_memory(struct topology *t, const struct fact *fact, const uint32_t *number,
                                  const uint32_t *sizes)
{
    for (uint32_t i = 0; i < t->layout.ranks; i++) {
        uint64_t share = ((uint64_t)fact[i].memory << 20) / sizes[number[fact[i].first]];
        if (i == 0 || share < t->memory)
            t->memory = share;
    }
}

int topology_init(struct topology *t, const struct agree *a, uint32_t nodes, void *scratch, struct error *e)
{
    uint32_t ranks = (uint32_t)a->ranks, *number, *sizes, count;
    struct fact *fact = scratch, own = {.domain = (uint32_t)locality_domain()};
    MPI_Request request;

    /* The shares that are taken for nodes may all be on one. */
    own.memory = nodes > 0 ? node_memory() / nodes : node_memory();
    *t = (struct topology){.comm = a->comm, .node = MPI_COMM_NULL};
    t->layout = layout_even(1, 1);
    t->memory = (uint64_t)own.memory << 20;
    if (ranks == 1)
        return DELTAFS_OK;
    number = (uint32_t *)(fact + ranks);
    sizes = number + ranks;
    int code = topology_find_node(t, a, nodes), status = DELTAFS_OK;
    if (code == MPI_SUCCESS)
        code = topology_find_first(t, a, &own.first);
    if (code == MPI_SUCCESS)
        code = MPI_Iallgather(&own, sizeof own, MPI_BYTE, fact, sizeof own, MPI_BYTE, a->comm, &request);
    if (code == MPI_SUCCESS && agree_wait(a, &request, "tell the other ranks", e) != DELTAFS_OK)
        return e->status;
    if (code == MPI_SUCCESS) {
        count = facts_count(fact, ranks, number, sizes);
        status = layout_init(&t->layout, sizes, count, e);
        topology_share_memory(t, fact, number, sizes);
        code = topology_order(t, a, fact, number);
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
