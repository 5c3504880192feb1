/* A client's connection to one server of its node: calls are put into a ring in shared memory, and then waited for. */
#ifndef DELTAFS_POOL_WIRE_H
#define DELTAFS_POOL_WIRE_H

#include "pool/pool_point.h"
#include "pool/pool_ring.h"
#include "pool/pool_spin.h"

struct pool_wire {
    uint32_t server;
    int socket, event; /* -1: not connected */
    struct pool_shared *shared;
    uint32_t asked, seen; /* requests; answers */
    uint32_t left;        /* bit for each slot: a call that is not answered yet */
    struct pool_spin spin;
};

/* A request and its answer. */
struct pool_call {
    struct pool_request request;
    const void *in; /* the request's bytes */
    void *out;      /* what the answer's bytes are copied to, at most `room`; NULL: they are not needed */
    size_t room;
    struct pool_answer answer;
};

/* What is not connected, to this server. */
static inline struct pool_wire pool_wire_of(uint32_t server)
{
    return (struct pool_wire){.server = server, .socket = -1, .event = -1};
}

/* Connect to a server of the pool with this number. DELTAFS_ERR_NOT_FOUND, without a message: no server answers. */
int pool_wire_open(struct pool_wire *w, const struct pool_point *p, uint64_t number, struct pool_hello *hello,
                   struct error *e);
void pool_wire_close(struct pool_wire *w);

/* Send a call, which has a slot for itself. */
void pool_wire_ask(struct pool_wire *w, const struct pool_call *c, uint32_t slot);
/* Wait until all calls are answered that were sent; that in slot i is calls[i]. Returns -1 if the server does not
 * answer until then, has closed the connection, or breaks the rules. */
int pool_wire_finish(struct pool_wire *w, struct pool_call *calls, uint64_t deadline);
/* Whether the server has closed the connection. */
int pool_wire_is_cut(const struct pool_wire *w);

#endif
