/* Ranks of one machine on several nodes. A program that is linked with this has an MPI_Comm_split_type of its own, so
 * that nothing of the library is different for it. */
#ifndef TEST_MPI_NODES_H
#define TEST_MPI_NODES_H

/* From here on the ranks of a communicator are on so many nodes, and ranks of one node follow one another. 0: where
 * they are. At the start, as the environment variable DELTAFS_TEST_NODES has it, or 0. All ranks must call it. */
void pretend_nodes(int nodes);

#endif
