/* The order of ranks that the library makes of what MPI says of nodes.
 *
 *     test_mpi_topology NODES ORDER    NODES: of pretend_nodes; ORDER: the ranks of the world in the library's order,
 *                                      as "0,2,1,3", with a '|' between nodes
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "mpi/shuffle/topology.h"
#include "test_mpi_check.h"
#include "test_mpi_nodes.h"

#define TEXT_MAX 256

/* The order as text. */
static void describe(const struct topology *t, MPI_Comm comm, char text[TEXT_MAX])
{
    int *world = calloc((size_t)check_ranks, sizeof *world);
    size_t at = 0;

    MPI_Allgather(&check_rank, 1, MPI_INT, world, 1, MPI_INT, comm);
    for (uint32_t i = 0; i < t->layout.ranks && at < TEXT_MAX; i++) {
        uint32_t node = layout_node(&t->layout, i);
        const char *between = i == 0 ? "" : layout_first(&t->layout, node) == i ? "|" : ",";
        at += (size_t)snprintf(text + at, TEXT_MAX - at, "%s%d", between, world[i]);
    }
    free(world);
}

static void no_wait(void *arg)
{
    (void)arg;
}

int main(int argc, char **argv)
{
    struct topology t;
    struct error e = {0};
    char text[TEXT_MAX] = "";
    struct rank_group *group;
    int rank, local;

    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!CHECK(argc == 3))
        return check_end();
    CHECK(mpi_group_create(MPI_COMM_WORLD, sizeof *group, no_wait, &group, &e) == DELTAFS_OK);
    pretend_nodes(atoi(argv[1]));
    CHECK(topology_init(&t, group, &e) == DELTAFS_OK);
    check_require();
    describe(&t, group->comm, text);
    check_about("'%s' instead of '%s'", text, argv[2]);
    CHECK(strcmp(text, argv[2]) == 0);
    MPI_Comm_rank(group->comm, &rank);
    CHECK(rank == group->rank);
    if (check_ranks > 1) {
        MPI_Comm_rank(t.node, &local);
        CHECK(layout_first(&t.layout, layout_node(&t.layout, (uint32_t)rank)) + (uint32_t)local == (uint32_t)rank);
    }
    topology_fini(&t, 0);
    mpi_group_destroy(group);
    return check_end();
}
