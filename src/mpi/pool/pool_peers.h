/* How servers of a pool ask each other.
 *
 * A call has a slot, whose buffer for the answer MPI has before the request leaves: so an answer always finds its
 * place. Requests come into buffers that take those of any server. A server has only so many calls under way, and only
 * so many to one other: memory does not depend on the number of servers, and what MPI has to buffer at a server that is
 * asked by all others at once is bounded by small requests, since it sends long ones only when there is a buffer. A
 * request is answered before the next one is taken into its buffer, and nobody waits for another server to do that:
 * there is no deadlock.
 *
 * Calls that a server has not answered in time stay with MPI, and do not count any more; those to servers that are fine
 * wait for them until then. Only these take memory beyond that. Locks of a client that is gone are released when such a
 * server answers again; what the client had is kept until then.
 *
 * To grow a file, one call is under way at a time; what clients ask meanwhile goes in the next one, all at once. */
#ifndef DELTAFS_MPI_POOL_PEERS_H
#define DELTAFS_MPI_POOL_PEERS_H

#include <mpi.h>
#include "pool/server/pool_door.h"
#include "pool/server/pool_service.h"

/* The largest message, and what servers have for each other server. */
#define POOL_PEER_MESSAGE (sizeof(struct pool_request) + 2 * sizeof(uint32_t) + POOL_REMOTE_BYTES)
#define POOL_PEER_BYTES   2

struct pool_peers;

/* Memory of one server for messages; and more for each other server that does not answer. */
uint64_t pool_peers_bytes(void);
uint64_t pool_peers_lost_bytes(void);
int pool_peers_create(MPI_Comm comm, struct pool_service *service, struct pool_door *door, struct pool_peers **out,
                      struct error *e);
/* NULL is fine. */
void pool_peers_destroy(struct pool_peers *p);

/* Pass a client's request on; it will be answered. */
void pool_peers_ask(struct pool_peers *p, struct pool_job *job);
/* Send and receive what can be; *has_moved: there was something. An error is MPI's, and final. */
int pool_peers_poll(struct pool_peers *p, int *has_moved, struct error *e);
/* Whether no call and no answer is under way. */
int pool_peers_are_idle(const struct pool_peers *p);

#endif
