/* A client's connection to the server of its node, through which it asks any server of the pool. */
#ifndef DELTAFS_POOL_LINK_H
#define DELTAFS_POOL_LINK_H

#include <pthread.h>
#include "pool/pool_point.h"
#include "pool/pool_ring.h"

struct pool_link {
    struct pool_point point;
    char *nodes; /* of the servers; POINT_NODE_ROOM bytes each */
    uint32_t server, servers;
    int is_local;         /* files are stored where they are created */
    pthread_mutex_t lock; /* one thread at a time */
    pid_t process;        /* that has connected; a child connects for itself */
    int socket, event;    /* -1: not connected */
    struct pool_shared *shared;
    uint32_t asked, seen; /* requests; answers */
    uint32_t vain;        /* waits that do not spin */
};

/* A request and its answer. */
struct pool_call {
    struct pool_request request;
    const void *in; /* the request's bytes */
    void *out;      /* what the answer's bytes are copied to, at most `room`; NULL: they are not needed */
    size_t room;
    struct pool_answer answer;
};

int pool_link_open(struct pool_link *l, const char *point, struct error *e);
void pool_link_close(struct pool_link *l);

/* Make up to POOL_SLOTS calls at once, and wait until all are answered, at most a minute. An error is one of the
 * connection, or of storage (DELTAFS_ERR_IO, _DAMAGED, _NO_SPACE, _MEMORY; of the first call that has one), and has a
 * message; what else servers answer is in answer.status, also what is no error. */
int pool_link_calls(struct pool_link *l, struct pool_call *calls, size_t n, struct error *e);

static inline const char *pool_link_node(const struct pool_link *l, uint32_t server)
{
    return l->nodes + (size_t)server * POINT_NODE_ROOM;
}

#endif
