/* A client's connections to the servers of its node, through which it asks any server of the pool: those of the node
 * directly, and all others through one of the node, its home. */
#ifndef DELTAFS_POOL_LINK_H
#define DELTAFS_POOL_LINK_H

#include <pthread.h>
#include "pool/pool_wire.h"

struct pool_link {
    struct pool_point point;
    uint64_t number; /* of the pool */
    char *nodes;     /* of the servers; POINT_NODE_ROOM bytes each */
    uint32_t servers;
    struct pool_wire *wire; /* one for each server of this node; connected when it is needed */
    uint32_t wires;
    struct pool_wire *home; /* connected, but for a short time */
    uint32_t server;        /* of the home; files have their bytes there if they are stored where they are created */
    int is_local;           /* they are */
    pthread_mutex_t lock;   /* one thread at a time */
    pid_t process;          /* that has connected; a child connects for itself */
};

int pool_link_open(struct pool_link *l, const char *point, struct error *e);
void pool_link_close(struct pool_link *l);

/* Make up to POOL_SLOTS calls at once, and wait until all are answered, at most a minute. An error is one of the
 * connection, or of storage (DELTAFS_ERR_IO, _DAMAGED, _NO_SPACE, _MEMORY; of the first call that has one), and has a
 * message; what else servers answer is in answer.status, also what is no error. */
int pool_link_calls(struct pool_link *l, struct pool_call *calls, size_t n, struct error *e);

/* Whether a server is asked directly, with up to POOL_SLOT_BYTES; else POOL_REMOTE_BYTES. */
int pool_link_is_near(const struct pool_link *l, uint32_t server);

static inline const char *pool_link_node(const struct pool_link *l, uint32_t server)
{
    return l->nodes + (size_t)server * POINT_NODE_ROOM;
}

#endif
