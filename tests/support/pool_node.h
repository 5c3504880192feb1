/* A pool's nodes are names of hosts: on one machine, a process that may have a name of its own is on a node of its own.
 */
#ifndef TESTS_POOL_NODE_H
#define TESTS_POOL_NODE_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* From now on this process, and what it starts, is on the node "node.N", as tests/support/pool-node puts servers there.
 */
static inline void pool_node_enter(int n)
{
    char name[32];

    snprintf(name, sizeof name, "node.%d", n);
    if (unshare(CLONE_NEWUTS) == 0 && sethostname(name, strlen(name)) == 0)
        return;
    perror("to be on a node of its own");
    exit(EXIT_FAILURE);
}

#endif
