/* How a server lets clients in, and takes their requests. */
#ifndef DELTAFS_POOL_DOOR_H
#define DELTAFS_POOL_DOOR_H

#include "pool/pool_point.h"
#include "pool/pool_ring.h"

struct pool_door;
struct pool_guest;

/* A request of a client. It is copied; its bytes are in memory that the client can change. Valid until the answer. */
struct pool_job {
    struct pool_job *next; /* for the caller */
    struct pool_guest *guest;
    uint32_t slot;
    struct pool_request request;
    uint8_t *bytes; /* POOL_SLOT_BYTES, also for the answer's */
};

struct pool_door_options {
    uint32_t server, servers;
    uint64_t number; /* of the pool */
    int is_local;    /* files are stored on the node where they are created */
    uint64_t memory; /* at most so many bytes for clients */
};

#define POOL_MEMORY (UINT64_C(512) << 20) /* by default */

/* How many clients there can be, and what each of them needs. */
uint64_t pool_door_most(const struct pool_door_options *o);
uint64_t pool_door_bytes(const struct pool_door_options *o);

/* Open the socket of a server at a mount point. DELTAFS_ERR_BUSY: a server answers there. */
int pool_door_open(const struct pool_point *p, const struct pool_door_options *o, struct pool_door **out,
                   struct error *e);
/* Remove the socket and disconnect all. NULL is fine. */
void pool_door_close(struct pool_door *d);

/* The next request; NULL if there is none now. */
struct pool_job *pool_door_next(struct pool_door *d);
/* Answer it; the answer's bytes are at job->bytes. pool_door_wake must follow: waking a client costs more than most
 * requests, and if it were done at once, the system would often let the client run in the server's place. */
void pool_door_answer(struct pool_door *d, struct pool_job *job, const struct pool_answer *answer);

/* Wake the clients that sleep and have got an answer. */
void pool_door_wake(struct pool_door *d);

/* Let clients in, and go. Sleep until a client does something, or for so many nanoseconds, less than a second. */
void pool_door_wait(struct pool_door *d, uint32_t nanoseconds);

uint32_t pool_door_clients(const struct pool_door *d);

#endif
