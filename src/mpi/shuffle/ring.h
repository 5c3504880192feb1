/* Rings: channels within a node, in memory that its ranks share.
 *
 * A ring has one producer and one consumer. The producer fills the chunk that ring_acquire gives, and ring_send
 * publishes it, one-sided; the consumer reads in place what ring_peek gives and hands it back with ring_release. Where
 * both have the same third-level cache the chunk is the ring's; else it is the producer's own, and copied past the
 * caches into the ring. */
#ifndef DELTAFS_MPI_RING_H
#define DELTAFS_MPI_RING_H

#include <mpi.h>
#include "mpi/shuffle/channel.h"
#include "mpi/shuffle/plan.h"

struct rings;

/* The third-level cache of the processors that the calling thread may run on, as a number that is the same for those of
 * the node that share it; 0: they have several, or the system does not say, or it runs in a virtual machine and cannot
 * know. */
int rings_cache(void);

/* All rings of this rank, both ends, numbered by stage, then by peer. Until rings_share it holds as much shared memory
 * as it is going to need, so that whether there is enough for all ranks of the node shows when all have been here: MPI
 * does not look, and where there is not, the first access beyond what is there ends the program (MPICH 4.0.2, Open
 * MPI 4.1.4). `cache`: see rings_cache; it decides how fast the rings are. The plan must outlive the rings. */
int rings_create(const struct plan *p, uint32_t rank, int cache, struct rings **out, struct error *e);
/* Collective over `node`, the ranks of which are those of this one's node in the layout's order: share the memory.
 * After all ranks of the node are known to have succeeded, the rings can be used. Fails where a system has no room for
 * shared memory. */
int rings_share(struct rings *r, MPI_Comm node, struct error *e);
/* Collective over the node if they are shared, unless `is_lost`: then what is shared is left as it is. NULL is fine. */
void rings_destroy(struct rings *r, int is_lost);

/* A chunk to fill, on a line of its own; NULL if the ring is full. The same one until ring_send. */
uint8_t *ring_acquire(struct rings *r, uint32_t index);
void ring_send(struct rings *r, uint32_t index, uint32_t bytes);
/* The chunk to take in next; NULL if there is none. The same one until ring_release. */
const uint8_t *ring_peek(struct rings *r, uint32_t index);
void ring_release(struct rings *r, uint32_t index);

#endif
