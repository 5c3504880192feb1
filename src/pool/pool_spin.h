/* Waiting without sleep for what another process of this node does: the processor is given to others meanwhile.
 *
 * To switch to another process of the pool takes a fraction of what it takes to sleep and be woken, so this is the
 * fastest where servers and clients are more than the processors. But a program that computes keeps the processor for
 * a whole time slice. Who has met that twice keeps its own for a while, waits shortly and then sleeps: the kernel
 * prefers processes that wake. */
#ifndef DELTAFS_POOL_SPIN_H
#define DELTAFS_POOL_SPIN_H

#include <stdint.h>

/* All zero at the beginning. */
struct pool_spin {
    uint64_t lost;  /* when they last kept it for long */
    uint64_t until; /* when the processor may be given to others again */
};

/* Wait a moment, after having waited since `start`, as thread_clock counts. Returns 0 if it is time to sleep. */
int pool_spin(struct pool_spin *s, uint64_t start);

#endif
