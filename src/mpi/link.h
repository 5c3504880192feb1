/* Links: records collected into messages between this rank and its peers, over nonblocking MPI.
 *
 * Memory is bounded by two pools, whatever the number of peers. A send slot belongs to one peer while records for it
 * are collected, then to the message under way, and is free again when the peer has begun to receive it (synchronous
 * mode: what MPI may buffer in between is no more than the slots). When no slot is free the fullest open one is sent
 * and the caller waits; and while it waits it receives. Receive slots are posted beforehand and served in the order of
 * posting, which keeps the order of each peer's messages.
 *
 * Message: 0 u32 round   4 u32 records that end in it   then items, all little-endian:
 *     u64 key   u32 value size   u32 offset of this piece in the value   u32 bytes of this piece   the piece
 * (only key and value if the directory's values have one size and fit a message). A value too long for one message goes
 * in pieces. */
#ifndef DELTAFS_MPI_LINK_H
#define DELTAFS_MPI_LINK_H

#include "mpi/agree.h"

struct link;

/* Called for each record that arrived. */
typedef void (*link_deliver)(void *arg, uint64_t key, const void *value, size_t size);

struct link_config {
    MPI_Comm comm;      /* the library's own */
    size_t message;     /* bytes of a message */
    size_t memory;      /* bytes for all slots */
    int peers;          /* ranks that this one sends to */
    int64_t value_size; /* -1: any */
    link_deliver deliver;
    void (*wait)(void *arg); /* called again and again while the link waits; calls link_progress */
    void *arg;
};

int link_create(const struct link_config *c, struct link **out, struct error *e);
/* Give up what is under way and free. NULL is fine. Call when all ranks have drained. */
void link_destroy(struct link *l);

/* Take the first error of the link since it was last taken: MPI's, a message that breaks the protocol, or no memory for
 * a value under way. It spoils the round. But for MPI's, which stays, messages still flow after it, so that no peer is
 * left waiting. Returns its status, or DELTAFS_OK. */
int link_take_error(struct link *l, struct error *e);
/* Stop: nothing is sent or received any more, and nothing waits. For when the ranks have lost each other. */
void link_kill(struct link *l);

/* Send a record. */
void link_send(struct link *l, int peer, uint64_t key, const void *value, size_t size);
/* Receive and deliver what has come, and free what was sent. */
void link_progress(void *link);
/* Send all that is collected, and return when the peers have begun to receive it. */
void link_flush(struct link *l);
/* Collective, after link_flush: return when every message of the round that was sent to this rank has been delivered,
 * and begin the next round. Messages carry the number of their round; those of another are refused. The caller must see
 * to it that no rank sends in the new round before all have drained the old one. */
void link_drain(struct link *l, const struct agree *a);

/* Bytes allocated. */
size_t link_memory(const struct link *l);

#endif
