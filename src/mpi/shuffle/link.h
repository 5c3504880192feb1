/* Links: channels between nodes, over nonblocking MPI, with credits.
 *
 * A channel joins this rank and a peer in one stage, both ways. A message leaves only with a credit, and there are as
 * many credits as the receiver has buffers posted for the channel: so nothing is ever received that nobody waits for,
 * and MPI buffers nothing without bound. When the receiver is through with a message it posts the buffer again, and
 * gives the credit back: with the next message that goes the other way, or in a message of its own when half of them
 * are owed. Messages of a channel are received in the order in which they were sent. */
#ifndef DELTAFS_MPI_LINK_H
#define DELTAFS_MPI_LINK_H

#include <mpi.h>
#include "mpi/shuffle/channel.h"
#include "mpi/shuffle/plan.h"

struct link;

/* All channels of `rank`, which is that of `comm`, the library's own. They are numbered by stage, then by peer. */
int link_create(const struct plan *p, uint32_t rank, MPI_Comm comm, struct link **out, struct error *e);
/* Give up what is under way and free. NULL is fine. */
void link_destroy(struct link *l, int is_lost);

/* Send and receive what can be; an error is MPI's, and final. */
int link_poll(struct link *l, struct error *e);

/* A buffer of the plan's message bytes to fill; NULL if there is none, or no credit. The same one until link_send, of
 * its first `bytes`, which begin with a message's header. */
uint8_t *link_acquire(struct link *l, uint32_t index);
int link_send(struct link *l, uint32_t index, uint32_t bytes, struct error *e);
/* Whether it is a credit that is missing. */
int link_lacks_credit(const struct link *l, uint32_t index);
/* The message to take in next; NULL if there is none. The same one until link_release. */
const uint8_t *link_peek(const struct link *l, uint32_t index);
int link_release(struct link *l, uint32_t index, struct error *e);

/* Whether MPI is through with all that was sent. */
int link_is_sent(const struct link *l);
/* Before the end: give all credits back, and say whether all of this rank's have come back and nothing is under way. */
int link_wind_up(struct link *l, struct error *e);

#endif
