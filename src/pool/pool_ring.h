/* The memory that a client shares with a server of its node: slots, each with a request, its answer and a buffer for
 * their bytes, and two queues of slot numbers. The client chooses slots and waits for its answers; both spin shortly
 * before they sleep. The server trusts nothing that is in there. */
#ifndef DELTAFS_POOL_RING_H
#define DELTAFS_POOL_RING_H

#include <stdatomic.h>
#include "base/error.h"
#include "pool/pool_protocol.h"

#define POOL_SLOTS 16
#define POOL_LINE  64 /* bytes of a cache line */

struct pool_slot {
    _Alignas(POOL_LINE) struct pool_request request;
    _Alignas(POOL_LINE) struct pool_answer answer;
};

struct pool_shared {
    /* The client writes: */
    _Alignas(POOL_LINE) _Atomic uint32_t asked; /* requests so far */
    _Atomic uint32_t is_waiting;                /* the client sleeps until `answered` changes */
    uint8_t request[POOL_SLOTS];                /* slot of request number i: [i % POOL_SLOTS] */
    /* The server writes: */
    _Alignas(POOL_LINE) _Atomic uint32_t answered;
    _Atomic uint32_t is_asleep; /* the server sleeps until the client's event */
    uint8_t answer[POOL_SLOTS];
    struct pool_slot slot[POOL_SLOTS];
    _Alignas(4096) uint8_t buffer[POOL_SLOTS][POOL_SLOT_BYTES];
};

/* What a server sends first, with the descriptors of the memory and of the event that wakes it. */
struct pool_hello {
    uint32_t version, bytes, server;
    uint32_t is_local; /* files are stored on the node where they are created */
    uint64_t number;   /* of the pool */
};

/* Create the memory, which nobody can make shorter. *fd is to be closed, the memory to be unmapped. */
int pool_ring_create(struct pool_shared **out, int *fd, struct error *e);
int pool_ring_map(int fd, struct pool_shared **out, struct error *e);
/* NULL is fine. */
void pool_ring_unmap(struct pool_shared *r);

/* What a server sends to who connects: wait for it so many milliseconds. *memory and *event are descriptors, to be
 * closed. Returns 0, -ETIMEDOUT, -EPROTO: it is of another version, -EMFILE or -ECONNRESET. */
int pool_ring_receive(int socket, int milliseconds, struct pool_hello *hello, int *memory, int *event);

/* Sleep while *word is `seen`, at most so long; or be woken. */
void pool_ring_sleep(_Atomic uint32_t *word, uint32_t seen, uint32_t milliseconds);
void pool_ring_wake(_Atomic uint32_t *word);

#endif
