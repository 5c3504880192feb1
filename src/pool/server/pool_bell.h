/* How a server wakes another on its own node: MPI cannot. It connects to it as a client does, and uses the event alone.
 */
#ifndef DELTAFS_POOL_BELL_H
#define DELTAFS_POOL_BELL_H

#include "pool/pool_point.h"
#include "pool/pool_ring.h"

struct pool_bells;

/* Bells of all servers that are on the node of server `server`; their sockets are there. `nodes` has POINT_NODE_ROOM
 * bytes for each of the `servers`. */
int pool_bells_create(const struct pool_point *p, uint32_t server, const char *nodes, uint32_t servers,
                      struct pool_bells **out, struct error *e);
/* NULL is fine. */
void pool_bells_destroy(struct pool_bells *b);
/* The number of bells. */
uint32_t pool_bells_count(const struct pool_bells *b);
/* Wake a server if it sleeps; one of another node has no bell. */
void pool_bells_ring(struct pool_bells *b, uint32_t server);

#endif
